"""Scattering: a copy of a tensor into which updates are put at places that another tensor holds.

    scatter_elements(a, at, u, axis=1)    out[i, at[i, j]] = u[i, j]
    scatter_nd(a, at, u, "update")        out[at[0, j…], at[1, j…], k…] = u[j…, k…]

Updates are put in one after another, in the order of their indices; lines that no update leaves are independent, and
run in parallel. A negative place counts from the end; an update whose place lies outside is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import numpy as np

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, const, ir_builder
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.ir.operators import truncdiv
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.indexing import from_the_end, places_of
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.choices import UnknownChoice
from loopwright.topi.parts.sizes import known, no_larger, one_size, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers
from loopwright.topi.types import Shape


class UnknownReduction(UnknownChoice, NotImplementedError):
    """A scatter was asked to combine values in a way that it does not know.

    For example:

        from loopwright import te, topi

        data = te.placeholder((4,), name="data")
        at = te.placeholder((1, 2), "int64", name="at")
        topi.scatter_nd(data, at, te.placeholder((2,), name="updates"), mode="or")
    """

    code = "LW1124"


Combine = Callable[[Expr, Expr], Expr]


def _half(value: Expr) -> Expr:
    return value * const(0.5, value.dtype) if value.dtype.is_float else truncdiv(value, 2)


_LINE: Final = 64  # elements of a last dimension that one thread takes at least

# How an update joins what is there already.
_COMBINED: Final[dict[str, Combine]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "mean": lambda old, new: _half(old + new),
    "min": minimum,
    "max": maximum,
}


def _combine(op: str, option: str, given: str, known_ones: Sequence[str]) -> Combine:
    if given not in known_ones:
        raise UnknownReduction(op, option, given, known_ones)
    return _COMBINED[given]


def _joined(reduction: str, old: np.ndarray, new: np.ndarray) -> np.ndarray | int:
    """What the element becomes, in numpy."""
    if reduction == "mean":
        return (old + new) / 2 if np.asarray(old).dtype.kind == "f" else int((old + new) / 2)
    return {"update": new, "add": old + new, "mul": old * new, "min": min(old, new), "max": max(old, new)}[reduction]


def _elements_reference(
    data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int = 0, reduction: str = "update"
) -> np.ndarray:
    result = data.copy()
    for at in np.ndindex(*indices.shape):
        where = list(at)
        where[axis] = int(indices[at])
        if -data.shape[axis] <= where[axis] < data.shape[axis]:
            result[tuple(where)] = _joined(reduction, result[tuple(where)], updates[at])
    return result


def _elements_samples() -> Iterator[Sample]:
    at = np.array([[1, 0, -1], [2, 2, 0]], "int32")
    once = np.array([[1, 0, -1], [0, 2, 0]], "int64")
    new = numbers((2, 3), seed=1)
    yield Sample((numbers((3, 3)), once, new))
    yield Sample((numbers((4, 5)), at, new), {"axis": -1, "reduction": "add"})
    yield Sample((numbers((3, 4)), at, new, 0, "mul"))
    yield Sample((numbers((1, 3, 3)), at[None], new[None], 1, "mean"))
    yield Sample((numbers((3, 3), "int32"), at, numbers((2, 3), "int32", 1), 0, "min"))
    yield Sample((numbers((3, 3), "int64"), at, numbers((2, 3), "int64", 1), 0, "mean"))
    yield Sample((numbers((2, 67, 3)), np.array([[[1]] * 5], "int32"), numbers((1, 5, 1), seed=1), 2))
    yield Sample((numbers((3, 67)), np.array([[1] * 66, [2] * 66], "int32"), numbers((2, 66), seed=1)))
    yield Sample((numbers((3, 3), "int8"), at, numbers((2, 3), "int8", 1), 0, "max"))
    yield Sample((numbers((3,)), np.array([5, -4, 1], "int64"), numbers((3,), seed=1)))
    yield Sample((numbers((3, 2)), np.zeros((0, 2), "int64"), numbers((0, 2))))
    for dtype in TYPES:
        yield Sample((numbers((3, 3), dtype), once, numbers((2, 3), dtype, 1)))


@operator(reference=_elements_reference, samples=_elements_samples)
def scatter_elements(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0, reduction: str = "update"
) -> te.Tensor:
    """`data` with each update put where `indices` says along `axis`, at its own place along the others.

    `reduction` is how it joins what is there: "update", "add", "mul", "min", "max", or "mean", half of the sum of what
    is there and the update. Of several updates of one place, "update" keeps the last.
    """
    op = "scatter_elements"
    combine = _combine(op, "reduction", reduction, tuple(_COMBINED))
    along = axis_of(op, axis, data.ndim)
    places_of(op, indices)
    _check_updates(op, data, indices, updates, indices.shape, data.ndim)
    for k in range(data.ndim):
        if k != along and not no_larger(indices.shape[k], data.shape[k]):
            raise InvalidShapeError(
                op,
                f"{indices.name} of shape {shape_text(indices.shape)} reaches past {data.name} of shape "
                f"{shape_text(data.shape)} in dimension {k}",
                f"only dimension {along}, the axis, may be longer than that of the data",
            )
    # Lines that differ in an index other than the axis are independent: of those axes, the first longer than 1.
    shared = next((k for k in range(data.ndim) if k != along and known(data.shape[k]) != 1), None)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        old, where, new = (ib.buffer_ptr(buffer) for buffer in ins)
        out = ib.buffer_ptr(outs[0])
        with _parts(ib, data.shape, shared) as part, ExitStack() as loops:
            with _loops(ib, data.shape, part) as index:
                out[index] = old[index]
            if shared is not None and known(data.shape[shared] - indices.shape[shared]) != 0:
                low, high = part[shared]
                loops.enter_context(ib.if_scope(low < indices.shape[shared]))
                part = {shared: (low, minimum(high, indices.shape[shared]))}
            with _loops(ib, indices.shape, part) as index:
                location = ib.let("place", from_the_end(where[index], data.shape[along]))
                target = (*index[:along], location, *index[along + 1 :])
                with ib.if_scope(all_of(location >= 0, location < data.shape[along])):
                    out[target] = combine(out[target], new[index])
        return ib.get()

    return _extern(op, data, indices, updates, body)


Part = dict[int, tuple[Expr, Expr]]  # of some dimensions, the indices to go through


@contextmanager
def _parts(ib: IRBuilder, shape: Sequence[Expr], along: int | None) -> Iterator[Part]:
    """A parallel loop over parts of dimension `along`: single indices, or lines of cache of a last dimension."""
    if along is None:
        yield {}
        return
    size = shape[along]
    width = _LINE if along == len(shape) - 1 else 1
    with ib.for_range(0, simplify((size + (width - 1)) // width), "part", kind="parallel") as part:
        low = part * width
        yield {along: (low, minimum(low + width, size) if width > 1 else low + 1)}


@contextmanager
def _loops(ib: IRBuilder, shape: Sequence[Expr], part: Part) -> Iterator[tuple[Expr, ...]]:
    """Loops over `shape`, or over a part of it; gives the indices."""
    with ExitStack() as loops:
        ranges = [part.get(k, (0, size)) for k, size in enumerate(shape)]
        yield tuple(loops.enter_context(ib.for_range(low, high, f"i{k}")) for k, (low, high) in enumerate(ranges))


def _extern(
    op: str,
    data: te.Tensor,
    indices: te.Tensor,
    updates: te.Tensor,
    body: Callable[[list[Buffer], list[Buffer]], Stmt],
) -> te.Tensor:
    result: te.Tensor = te.extern(data.shape, [data, indices, updates], body, name=op, dtype=data.dtype)
    return result


def _check_updates(op: str, data: te.Tensor, indices: te.Tensor, updates: te.Tensor, wanted: Shape, rank: int) -> None:
    fits = len(wanted) == updates.ndim and all([one_size(one, own) for one, own in zip(wanted, updates.shape)])
    if indices.ndim != rank or not fits or updates.dtype != data.dtype:
        message = ", ".join(
            f"{what} {tensor.dtype} {shape_text(tensor.shape)}"
            for what, tensor in (("data", data), ("indices", indices), ("updates", updates))
        )
        raise InvalidShapeError(
            op,
            f"{message} do not fit together",
            f"updates are {data.dtype} of shape {shape_text([as_expr(size) for size in wanted])}"
            + (f", indices have {rank} dimensions" if indices.ndim != rank else ""),
        )


def _nd_reference(data: np.ndarray, indices: np.ndarray, updates: np.ndarray, mode: str) -> np.ndarray:
    result = data.copy()
    for at in np.ndindex(*indices.shape[1:]):
        where = tuple(int(k) for k in indices[(slice(None), *at)])
        if all(-size <= k < size for k, size in zip(where, data.shape, strict=False)):
            for inner in np.ndindex(*data.shape[len(where) :]):
                location = (*where, *inner)
                result[location] = _joined(mode, result[location], updates[(*at, *inner)])
    return result


def _nd_samples() -> Iterator[Sample]:
    pairs = np.array([[1, 0, 1], [3, 1, 3]], "int64")
    once = np.array([[1, 0, -1], [3, 1, 0]], "int32")
    yield Sample((numbers((3, 4)), once, numbers((3,), seed=1), "update"))
    yield Sample((numbers((3, 4)), pairs, numbers((3,), seed=1), "add"))
    yield Sample((numbers((3, 4, 5)), pairs, numbers((3, 5), seed=1), "mul"))
    yield Sample((numbers((3, 2, 67)), np.array([[0, 2, 2]], "int32"), numbers((3, 2, 67), seed=1), "add"))
    some = np.array([[[1, 9], [1, 0]]], "int64")
    yield Sample((numbers((4, 3), "int32"), some, numbers((2, 2, 3), "int32", 1), "min"))
    yield Sample((numbers((3, 4), "int8"), pairs, numbers((3,), "int8", 1), "max"))
    yield Sample((numbers((3, 4)), np.zeros((2, 0), "int64"), numbers((0,)), "update"))
    for dtype in TYPES:
        yield Sample((numbers((3, 4), dtype), once, numbers((3,), dtype, 1), "update"))


@operator(reference=_nd_reference, samples=_nd_samples)
def scatter_nd(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, mode: str) -> te.Tensor:
    """`data` with each update, an element or a slice, put where a column of `indices` says.

    Dimension 0 of `indices` goes through the first axes of `data`. `mode` is how an update joins what is there:
    "update", "add", "mul", "min" or "max".
    """
    op = "scatter_nd"
    combine = _combine(op, "mode", mode, tuple(word for word in _COMBINED if word != "mean"))
    places_of(op, indices)
    count = known(indices.shape[0]) if indices.ndim else None
    if count is None or count > data.ndim:
        raise InvalidShapeError(
            op,
            f"{indices.name} of shape {shape_text(indices.shape)} does not index {data.name} of shape "
            f"{shape_text(data.shape)}",
            "dimension 0 of the indices is known, and names at most all axes of the data",
        )
    outer, inner = indices.shape[1:], data.shape[count:]
    _check_updates(op, data, indices, updates, (*outer, *inner), indices.ndim)
    # Updates of one place must stay in order, so what runs in parallel is what they hold.
    shared = next((k for k in range(count, data.ndim) if known(data.shape[k]) != 1), None)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        old, where, new = (ib.buffer_ptr(buffer) for buffer in ins)
        out = ib.buffer_ptr(outs[0])
        with _parts(ib, data.shape, shared) as part:
            with _loops(ib, data.shape, part) as index:
                out[index] = old[index]
            with _loops(ib, outer, {}) as update:
                location = _place(ib, where, update, data.shape[:count])
                inside = [check for at, size in zip(location, data.shape) for check in (at >= 0, at < size)]
                with (
                    ib.if_scope(all_of(*inside) if inside else const(True)),
                    _loops(ib, inner, {k - count: reach for k, reach in part.items()}) as rest,
                ):
                    out[(*location, *rest)] = combine(out[(*location, *rest)], new[(*update, *rest)])
        return ib.get()

    return _extern(op, data, indices, updates, body)


def _place(ib: IRBuilder, where: BufferVar, update: Sequence[Expr], sizes: Sequence[Expr]) -> list[Expr]:
    return [ib.let(f"p{k}", from_the_end(where[(k, *update)], size)) for k, size in enumerate(sizes)]


def _inverse_reference(data: np.ndarray) -> np.ndarray:
    return np.argsort(data).astype(data.dtype)


def _inverse_samples() -> Iterator[Sample]:
    yield Sample((np.array([2, 0, 3, 1], "int32"),))
    yield Sample((np.random.default_rng(0).permutation(101),))
    yield Sample((np.array([0], "int64"),))
    yield Sample((np.zeros((0,), "int32"),))


@operator(reference=_inverse_reference, samples=_inverse_samples)
def invert_permutation(data: te.Tensor) -> te.Tensor:
    """The permutation that undoes `data`: `out[data[i]] = i`. What is no permutation leaves elements 0."""
    op = "invert_permutation"
    places_of(op, data)
    if data.ndim != 1:
        raise InvalidShapeError(op, f"{data.name} has {data.ndim} dimensions", "give a vector")
    size = data.shape[0]

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        order, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, size, "i") as i:
            out[i] = 0
        with ib.for_range(0, size, "i") as i:
            at = ib.let("at", from_the_end(order[i], size))
            with ib.if_scope(all_of(at >= 0, at < size)):
                out[at] = i.astype(data.dtype)
        return ib.get()

    result: te.Tensor = te.extern(data.shape, [data], body, name=op, dtype=data.dtype)
    return result
