"""What the brackets after a buffer mean: an element, a region, a vector of elements."""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import Buffer, BufferLoad, BufferRegion, Expr, IntImm, Ramp, Range, WrongIndexCount, as_expr, const
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.differences import extent_between
from loopwright.script.parser.errors import BadValueType

Place = Callable[[], SourceLine]


def read(buffer: Buffer, indices: tuple[object, ...], location: Place) -> BufferLoad | BufferRegion:
    """`buffer[indices]`: a load, a region when slices have no step, or a vector load."""
    _check_count(buffer, indices)
    slices = [index for index in indices if type(index) is slice]
    if not slices:
        return BufferLoad(buffer, _integers(buffer, indices, location))
    if any(one.step is not None for one in slices):
        return BufferLoad(buffer, indices_of(buffer, indices, location))
    return BufferRegion(buffer, tuple([_range(buffer, axis, index) for axis, index in enumerate(indices)]))


def vector_of(region: BufferRegion, location: Place) -> BufferLoad:
    """The values of a region as one vector."""
    buffer = region.buffer
    return BufferLoad(buffer, tuple([_lanes(buffer, part, 1, location) for part in region.region]))


def indices_of(buffer: Buffer, indices: tuple[object, ...], location: Place) -> tuple[Expr, ...]:
    """Indices as expressions; slices become vectors of indices."""
    _check_count(buffer, indices)
    if any(type(index) is slice for index in indices):
        return tuple([_ramp(buffer, axis, index, location) for axis, index in enumerate(indices)])
    return _integers(buffer, indices, location)


def _check_count(buffer: Buffer, indices: tuple[object, ...]) -> None:
    if len(indices) != len(buffer.shape):
        raise WrongIndexCount(buffer.name, len(buffer.shape), len(indices))


def _integers(buffer: Buffer, indices: tuple[object, ...], location: Place) -> tuple[Expr, ...]:
    result = []
    for axis, index in enumerate(indices):
        value = as_expr(index)
        if not value.dtype.is_int and not value.dtype.is_bool:
            raise BadValueType(
                f"index {axis} of {buffer.name} must be an integer, got {value.dtype}",
                location(),
                'convert it with .astype("int32")',
            )
        result.append(value)
    return tuple(result)


def _range(buffer: Buffer, axis: int, index: object) -> Range:
    if type(index) is not slice:
        value = as_expr(index)
        return Range.from_min_extent(value, const(1, value.dtype))
    low = 0 if index.start is None else index.start
    high = buffer.shape[axis] if index.stop is None else index.stop
    return Range.from_min_extent(*extent_between(low, high))


def _ramp(buffer: Buffer, axis: int, index: object, location: Place) -> Expr:
    if type(index) is not slice:
        return as_expr(index)
    step = 1 if index.step is None else index.step
    if isinstance(step, IntImm):
        step = step.value
    if not isinstance(step, int) or step == 0:
        raise BadValueType(f"the step of a slice must be a constant other than 0, got {step!r}", location())
    return _lanes(buffer, _range(buffer, axis, slice(index.start, index.stop)), step, location)


def _lanes(buffer: Buffer, part: Range, step: int, location: Place) -> Expr:
    if not isinstance(part.extent, IntImm):
        raise BadValueType(
            f"a slice of {buffer.name} that is used as a vector needs a constant length",
            location(),
            "write both bounds so that their difference is constant, or use a loop",
        )
    lanes = -(-part.extent.value // step)
    if lanes < 1:
        raise BadValueType(f"a slice of {buffer.name} that is used as a vector is empty", location())
    return part.min if lanes == 1 else Ramp(part.min, const(step, part.min.dtype), lanes)
