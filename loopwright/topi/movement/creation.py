"""Tensors made of numbers: ranges, grids, one-hot vectors, and the shapes of other tensors.

arange(2, 8, 2, "int32")     [2, 4, 6]
one_hot(at, 1, 0, 3, -1, "float32")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

from loopwright import te
from loopwright.ir import Expr, FloatImm, IntImm, as_expr, const
from loopwright.ir.intrinsics import maximum, select
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.indexing import place, places_of
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.row_major import count_as
from loopwright.topi.parts.sizes import known, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers
from loopwright.topi.types import Dim, Scalar, Shape


def _arange_reference(start: float, stop: float | None = None, step: float = 1, dtype: str = "float32") -> np.ndarray:
    if stop is None:
        start, stop = 0, start
    return start + step * np.arange(max(ceil((stop - start) / step), 0))


def _arange_samples() -> Iterator[Sample]:
    yield Sample((5,))
    yield Sample((2, 11), {"step": 3})
    yield Sample((1.5, 4.25, 0.25))  # powers of two: every element is exact
    yield Sample((10, -3, -4), {"dtype": "int32"})
    yield Sample((3, 3), {"dtype": "int64"})
    yield Sample((5, 2), {"dtype": "float64"})
    for dtype in ("float64", "float16", "int8", "int64", "uint8"):
        yield Sample((1, 17, 5), {"dtype": dtype})


@operator(reference=_arange_reference, samples=_arange_samples)
def arange(start: Scalar, stop: Scalar | None = None, step: Scalar = 1, dtype: str = "float32") -> te.Tensor:
    """`start`, `start + step`, and so on up to `stop`, which is left out; one argument is `stop`, from 0.

    Numbers and expressions say how many there are. Tensors of rank 0 are read when the program runs; the result then
    has a size of its own, which whoever calls the program says.
    """
    if stop is None:
        start, stop = 0, start
    given = [as_expr(value) for value in (start, stop, step)]
    if _number(given[2]) == 0:
        raise InvalidShapeError("arange", "step is 0", "give a step that is not 0")
    if any(isinstance(value, te.Tensor) for value in (start, stop, step)):
        count: Expr = te.size_var("count")
    else:
        count = _count(*given)
    first, way = given[0].astype(dtype), given[2].astype(dtype)
    return moved((count,), lambda i: first + way * i.astype(dtype), "T_arange")


def _number(value: Expr) -> float | int | None:
    return value.value if isinstance(value, (IntImm, FloatImm)) else None


def _count(start: Expr, stop: Expr, step: Expr) -> Expr:
    """How many elements a range has."""
    numbers = [_number(value) for value in (start, stop, step)]
    if all(number is not None for number in numbers):
        low, high, way = numbers
        return as_expr(max(ceil((high - low) / way), 0))  # type: ignore[operator]
    if any(not value.dtype.is_int for value in (start, stop, step)):
        raise InvalidShapeError(
            "arange",
            f"the size of a range from {start!r} to {stop!r} by {step!r} is not known",
            "give numbers, integer expressions, or tensors of rank 0",
        )
    return simplify(maximum(-((start - stop) // step), 0))  # rounded up, whichever way it goes


def _meshgrid_samples() -> Iterator[Sample]:
    x, y, z = numbers((3,)), numbers((4,), seed=1), numbers((2,), seed=2)
    yield Sample(([x, y, z], "ij"))
    yield Sample(([x, y, z], "xy"))
    yield Sample(([x, y], "xy"))
    yield Sample(([x], "xy"))
    yield Sample(([x, numbers((), seed=3)], "ij"))
    yield Sample(([x, numbers((0,))], "ij"))
    for dtype in TYPES:
        yield Sample(([numbers((3,), dtype), numbers((2,), dtype, 1)], "ij"))


@operator(reference=lambda a_tuple, indexing: np.meshgrid(*a_tuple, indexing=indexing), samples=_meshgrid_samples)
def meshgrid(a_tuple: Sequence[te.Tensor], indexing: str) -> list[te.Tensor]:
    """For each vector a tensor of the grid that all of them span; with "xy" the first two axes change places."""
    choose("meshgrid", "indexing", indexing, ("ij", "xy"))
    for vector in a_tuple:
        if vector.ndim > 1:
            problem = f"{vector.name} has shape {shape_text(vector.shape)}"
            raise InvalidShapeError("meshgrid", problem, "give vectors, or tensors of rank 0")
    axes = list(range(len(a_tuple)))
    if indexing == "xy" and len(axes) > 1:
        axes[0], axes[1] = 1, 0
    shape: list[Dim] = [1] * len(axes)
    for vector, axis in zip(a_tuple, axes, strict=True):
        shape[axis] = vector.shape[0] if vector.ndim else 1

    def grid(vector: te.Tensor, axis: int) -> te.Tensor:
        return moved(shape, lambda *at: vector(at[axis]) if vector.ndim else vector(), "T_meshgrid")

    return [grid(vector, axis) for vector, axis in zip(a_tuple, axes, strict=True)]


def _shape_samples() -> Iterator[Sample]:
    yield Sample((numbers((3, 1, 7)),))
    yield Sample((numbers((3, 5)), "int64"))
    yield Sample((numbers((0,)),))
    yield Sample((numbers((2, 3)), "float32"))


@operator(reference=lambda array, dtype="int32": np.array(array.shape), samples=_shape_samples)
def shape(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """The sizes of `array`, as a vector."""

    def cell(axis: Expr) -> Expr:
        value: Expr = const(0, dtype)
        for k in range(array.ndim - 1, -1, -1):
            size = count_as(dtype, [array.shape[k]], "shape")
            value = size if k == array.ndim - 1 else select(axis == k, size, value)
        return value

    return moved((array.ndim,), cell, "T_shape")


@operator(reference=lambda array, dtype="int32": np.array(array.size), samples=_shape_samples)
def ndarray_size(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """How many elements `array` has, as a tensor of rank 0."""
    total = count_as(dtype, array.shape, "ndarray_size")
    return moved((), lambda *_: total, "ndarray_size")


def _one_hot_reference(
    indices: np.ndarray, on_value: np.ndarray | float, off_value: np.ndarray | float, depth: int, axis: int, dtype: str
) -> np.ndarray:
    at = indices.ndim if axis == -1 else axis
    hot = np.moveaxis(indices[..., None] == np.arange(depth), -1, at)
    return np.where(hot, on_value, off_value)


def _one_hot_samples() -> Iterator[Sample]:
    at = np.array([[1, 0, 3], [-1, 7, 2]], "int32")
    yield Sample((at, 1, 0, 4, -1, "float32"))
    yield Sample((at, 2.5, -1.5, 5, 0, "float32"))
    yield Sample((at.astype("int64"), 1, 0, 4, 1, "int32"))
    yield Sample((np.array(2, "uint8"), 1, 0, 3, -1, "float32"))
    yield Sample((at, numbers((), seed=1), numbers(()), 4, -1, "float32"))
    yield Sample((at, 1, 0, 0, -1, "float32"))
    for dtype in TYPES:
        yield Sample((at[0], 1, 0, 4, -1, dtype))


@operator(reference=_one_hot_reference, samples=_one_hot_samples)
def one_hot(indices: te.Tensor, on_value: Scalar, off_value: Scalar, depth: Dim, axis: int, dtype: str) -> te.Tensor:
    """`on_value` at each index along a new axis of size `depth`, `off_value` elsewhere; axis -1 comes last.

    An index outside of the new axis gives a line of `off_value`. The values may be tensors of rank 0.
    """
    along = indices.ndim if axis == -1 else axis_of("one_hot", axis, indices.ndim + 1)
    places_of("one_hot", indices)
    on, off = as_expr(on_value).astype(dtype), as_expr(off_value).astype(dtype)

    def cell(*out: Expr) -> Expr:
        at = place(indices(*out[:along], *out[along + 1 :]))
        return select(at == out[along], on, off)

    number = known(depth)
    sizes: Shape = [*indices.shape[:along], depth if number is None else number, *indices.shape[along:]]
    return moved(sizes, cell, "T_one_hot")
