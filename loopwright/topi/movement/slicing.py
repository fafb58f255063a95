"""Slices: every so many elements of each axis, from a beginning to an end; and windows that slide along axes.

    strided_slice(a, [1, 0], [5, -1], [2, 1])    a[1:5:2, 0:-1:1]

What may be given is what Python's slices take: negative bounds count from the end, bounds past the ends are moved to
them, strides may be negative. Beginnings, ends and strides that are known only when the program runs come as tensors;
then the shape of the result is known only then, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum, minimum, select
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.tensor import dim_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import axes_of, axis_of
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import each, known, no_larger, places, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.types import Dim, Shape

_FAR = 2**31 - 1  # bounds this far out mean "to the end", however long the axis is


Bounds: TypeAlias = te.Tensor | Dim | Sequence[Dim | None]  # of a slice, one an axis; None takes everything


class BadSlice(LoopwrightError, ValueError, TypeError):
    """The bounds of a slice do not fit: too many of them, a stride of 0, or tensors of the wrong kind.

    For example:

        from loopwright import te, topi

        topi.strided_slice(te.placeholder((4,), name="data"), [0], [4], [0])
    """

    code = "LW1123"

    def __init__(self, op: str, problem: str, hint: str, **fields: object) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op, **fields})


def _slice_reference(
    a: np.ndarray,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> np.ndarray:
    cuts = [slice(None)] * a.ndim
    for k, axis in enumerate(range(len(begin)) if axes is None else axes):
        size = a.shape[axis]
        low = begin[k]
        step = 1 if strides is None or k >= len(strides) or slice_mode == "size" else strides[k]
        high = end[k] if k < len(end) else None
        if slice_mode == "size" and high is not None:
            low = low + size if low < 0 else low
            high = size if high == -1 else low + high
        cuts[axis] = slice(low, high, step)
    return a[tuple(cuts)]


def _slice_samples() -> Iterator[Sample]:
    yield Sample((numbers((3, 4, 3)), [0, 0, 0], [4, -5, 4], [1, -1, 2]))
    yield Sample((numbers((3, 4, 3)), [1, -1, 0], [2, -3, 3], [1, -1, 1]))
    yield Sample((numbers((3, 4, 3)), [1, 1], [4, 4]))
    yield Sample((numbers((7,)), [5], [-100], [-2]))
    yield Sample((numbers((3, 7)), [-2, 9], [_FAR, -_FAR], [1, -3]))
    yield Sample((numbers((3, 7, 2)), [1], [6], [2]), {"axes": [-2]})
    yield Sample((numbers((5, 6)), [1, -3], [-1, 2], [9]), {"slice_mode": "size"})
    yield Sample((numbers((4, 3)), [2], [1]))
    yield Sample((numbers((4, 3)), [0, 3], [4, 0], [2**31, -(2**31)]))
    yield Sample((numbers((4, 3)), [1, 3], [4, -9], [2**63 - 1, -(2**63)]))
    yield Sample((numbers((0, 3)), [0, 1], [5, 3]))
    yield from of_each_type((6,), [1], [5], [2])


@operator(reference=_slice_reference, samples=_slice_samples)
def strided_slice(
    a: te.Tensor,
    begin: Bounds,
    end: Bounds,
    strides: Bounds | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> te.Tensor:
    """`a[begin:end:strides]`, axis by axis; missing entries take everything.

    With `slice_mode="size"`, `end` holds how many elements to take, -1 for all that are left, and strides do not
    count. With tensors for the bounds, all are taken as they are when the program runs, negative ones too.
    """
    op = "strided_slice"
    choose(op, "slice_mode", slice_mode, ("end", "size"))
    if any(isinstance(bound, te.Tensor) for bound in (begin, end, strides)):
        if axes is not None:
            raise BadSlice(op, "axes are given, and bounds that are tensors", "leave axes out: bounds go by position")
        count = _count(op, next(bound for bound in (begin, end, strides) if isinstance(bound, te.Tensor)))
        sizes = [te.size_var(f"size_{k}") if k < count else size for k, size in enumerate(a.shape)]
        return dynamic_strided_slice(a, begin, end, [1] * count if strides is None else strides, sizes)
    lows, highs = _listed(op, "begin", begin), _listed(op, "end", end)
    steps = [] if strides is None or slice_mode == "size" else _listed(op, "strides", strides)
    along = list(range(a.ndim)) if axes is None else axes_of(op, axes, a.ndim, "axes")
    for what, given in (("begin", lows), ("end", highs), ("strides", steps)):
        if len(given) > len(along):
            hint = f"give at most {len(along)}"
            raise BadSlice(op, f"{what} has {len(given)} entries for {len(along)} axes", hint)
    starts: list[Dim] = [as_expr(0)] * a.ndim
    every: list[Dim] = [1] * a.ndim
    shape = list(a.shape)
    for k, axis in enumerate(along):
        low, high = (bounds[k] if k < len(bounds) else None for bounds in (lows, highs))
        given_step = steps[k] if k < len(steps) else None
        step = 1 if given_step is None else known(given_step)
        if not step:
            raise BadSlice(op, f"the stride of axis {axis} is {steps[k]!r}", "a stride is an integer other than 0")
        step = _no_longer(step, a.shape[axis])
        if slice_mode == "size" and low is not None and high is not None:
            low = _from_end(low, a.shape[axis])
            high = None if known(high) == -1 else simplify(low + high)
        starts[axis], shape[axis] = _cut(a.shape[axis], low, high, step)
        every[axis] = step
    return slice_at(a, starts, every, shape, "T_strided_slice")


def _listed(op: str, what: str, given: Bounds) -> list[Dim | None]:
    if isinstance(given, (str, float, te.Tensor)) or given is None:
        raise BadSlice(op, f"{what} is {type(given).__name__} {given!r}", "give one integer an axis")
    return list(given) if isinstance(given, Sequence) else [given]


def _from_end(bound: Dim, size: Expr) -> Expr:
    """`bound`, counted from the end where it is negative."""
    number = known(bound)
    if number is not None:
        return simplify(size + number if number < 0 else number)
    return simplify(select(as_expr(bound) < 0, as_expr(bound) + size, as_expr(bound)))


def _no_longer(step: int, size: Expr) -> int:
    """A stride that takes the same elements, and is no longer than the axis: sums with it stay inside its type."""
    number = known(size)
    longest = max(number, 1) if number is not None else _FAR if size.dtype.bits <= 32 else 2**62
    return max(min(step, longest), -longest)


def _cut(size: Expr, low: Dim | None, high: Dim | None, step: int) -> tuple[Expr, Expr]:
    """The first element that a slice of an axis of `size` takes, and how many it takes."""
    first, last = (as_expr(0), size) if step > 0 else (as_expr(-1), simplify(size - 1))

    def inside(bound: Dim | None, default: Expr) -> Expr:
        if bound is None:
            return default
        number = known(bound)
        if number is not None and abs(number) >= _FAR:
            return last if number > 0 else first
        location = _from_end(bound, size)
        if number is not None:  # it can be past one end only
            return simplify(minimum(location, last) if number >= 0 else maximum(location, first))
        return simplify(maximum(minimum(location, last), first))

    start, stop = inside(low, first if step > 0 else last), inside(high, last if step > 0 else first)
    gap = stop - start if step > 0 else start - stop
    count = simplify((gap + (abs(step) - 1)) // abs(step))
    return start, simplify(maximum(count, 0))


def slice_at(a: te.Tensor, starts: Shape, strides: Shape, shape: Shape, name: str) -> te.Tensor:
    """The tensor of `shape` whose index `i` along an axis is `start + i * stride` in `a`."""

    def cell(*indices: Expr) -> Expr:
        at = [index * step + start for index, step, start in zip(indices, strides, starts, strict=True)]
        return a(*[simplify(location) for location in at])

    return moved(shape, cell, name)


def _count(op: str, bound: te.Tensor) -> int:
    """How many axes a bound is given for."""
    count = known(bound.shape[0]) if bound.ndim == 1 else None
    if count is None:
        hint = "give one whose size is known"
        raise BadSlice(op, f"{bound.name}, a tensor of bounds, is no vector of a known size", hint)
    return count


def read_bounds(op: str, bound: Bounds, rank: int) -> list[Expr]:
    """The entries of a vector or a list of bounds as expressions; at most `rank` of them."""
    if isinstance(bound, te.Tensor):
        entries: list[Expr] = [bound(k) for k in range(_count(op, bound))]
    else:
        entries = [as_expr(entry) for entry in ([bound] if isinstance(bound, Expr | int) else bound)]
    if len(entries) > rank:
        raise BadSlice(op, f"there are bounds for {len(entries)} axes of a tensor of {rank}", f"give at most {rank}")
    return list(entries)


def _dynamic_reference(
    a: np.ndarray, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], output_shape: Sequence[int]
) -> np.ndarray:
    return a[tuple(slice(*cut) for cut in zip(begin, end, strides, strict=True))]


def _dynamic_samples() -> Iterator[Sample]:
    def bounds(dtype: str, *vectors: list[int]) -> list[np.ndarray]:
        return [np.array(vector, dtype) for vector in vectors]

    yield Sample((numbers((6, 5)), *bounds("int64", [1, 0], [5, 4], [2, 1]), (2, 4)))
    yield Sample((numbers((6, 5)), *bounds("int32", [5], [1], [-3]), (2, 5)))
    yield Sample((numbers((6,), "int8"), *bounds("int64", [3], [3], [1]), (0,)))


@operator(reference=_dynamic_reference, samples=_dynamic_samples)
def dynamic_strided_slice(a: te.Tensor, begin: Bounds, end: Bounds, strides: Bounds, output_shape: Shape) -> te.Tensor:
    """The part of `a` that begins at `begin` and has `output_shape`: how far `end` reaches is in that shape."""
    op = "dynamic_strided_slice"
    starts, steps = read_bounds(op, begin, a.ndim), read_bounds(op, strides, a.ndim)
    read_bounds(op, end, a.ndim)
    starts = starts + [as_expr(0)] * (a.ndim - len(starts))
    steps = steps + [as_expr(1)] * (a.ndim - len(steps))
    for axis, (size, wanted) in enumerate(zip(a.shape, output_shape, strict=True)):
        if not no_larger(wanted, size):
            problem = f"{dim_text(as_expr(wanted))} elements of axis {axis} are asked for, which has {dim_text(size)}"
            raise BadSlice(op, problem, "a slice is no longer than what it is cut from")

    def cell(*indices: Expr) -> Expr:
        # Bounds are data: what would lie outside is read at the nearest end.
        locations = zip(indices, steps, starts, a.shape, strict=True)
        return a(*[maximum(minimum(index * step + start, size - 1), 0) for index, step, start, size in locations])

    return moved(output_shape, cell, "T_dynamic_strided_slice")


def _set_reference(
    a: np.ndarray, v: np.ndarray, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
) -> np.ndarray:
    result = a.copy()
    result[tuple(slice(*cut) for cut in zip_longest(begin, end, [] if strides is None else strides))] = v
    return result


def _set_samples() -> Iterator[Sample]:
    def bounds(*values: int) -> np.ndarray:
        return np.array(values, "int32")

    yield Sample((numbers((3, 4)), numbers((2, 2), seed=1), bounds(1, 0), bounds(3, 4), bounds(1, 2)))
    yield Sample((numbers((3, 4)), numbers((3, 2), seed=1), bounds(-3, -1), bounds(9, -5), bounds(1, -2)))
    yield Sample((numbers((5, 2)), numbers((2, 2), seed=1), bounds(1), bounds(3)))
    yield Sample((numbers((5, 2)), numbers((3, 1), seed=1), bounds(9, 0), bounds(1, 2), bounds(-1, 1)))
    yield Sample((numbers((4,), "int64"), numbers((0,), "int64"), bounds(2), bounds(2)))
    yield Sample((numbers((3, 4)), numbers((2, 4), seed=1), bounds(1, 0), bounds(3)))
    yield Sample((numbers((3, 4)), numbers((2, 2), seed=1), bounds(1), bounds(3), bounds(1, -2)))


@operator(reference=_set_reference, samples=_set_samples)
def strided_set(
    a: te.Tensor, v: te.Tensor, begin: te.Tensor, end: te.Tensor, strides: te.Tensor | None = None
) -> te.Tensor:
    """`a` with the part that the bounds name replaced by `v`; a dimension of `v` that is 1 is repeated.

    The bounds are vectors of int32, read when the program runs; they mean what they mean in a slice of Python.
    """
    op = "strided_set"
    for what, bound in (("begin", begin), ("end", end), ("strides", strides)):
        if bound is None and what == "strides":
            continue
        kind = f"{bound.dtype} of {bound.ndim} dimensions" if isinstance(bound, te.Tensor) else type(bound).__name__
        if not isinstance(bound, te.Tensor) or bound.ndim != 1 or bound.dtype != "int32":
            raise BadSlice(op, f"{what} is {kind}, not a vector of int32", "give a tensor of one dimension, of int32")
    if v.ndim != a.ndim or v.dtype != a.dtype:
        raise InvalidShapeError(
            op,
            f"{v.dtype} {v.name} of {v.ndim} dimensions cannot be set into {a.dtype} {a.name} of {a.ndim}",
            "give values of the same type and rank",
        )
    lows, highs = read_bounds(op, begin, a.ndim), read_bounds(op, end, a.ndim)
    steps = [] if strides is None else read_bounds(op, strides, a.ndim)
    cut = max(len(lows), len(highs), len(steps))
    # What is not given is as in a slice of Python: from the front to the end, in steps of 1.
    steps += [as_expr(1)] * (cut - len(steps))
    lows += [select(step < 0, size - 1, 0) for size, step in zip(a.shape[len(lows) : cut], steps[len(lows) :])]
    highs += [select(step < 0, -1 - size, size) for size, step in zip(a.shape[len(highs) : cut], steps[len(highs) :])]

    def bounded(bound: Expr, size: Expr, step: Expr) -> Expr:
        location = select(bound < 0, bound + size, bound)
        back = select(step < 0, as_expr(-1), as_expr(0))
        return maximum(minimum(location, size + back), back)

    def cell(*indices: Expr) -> Expr:
        inside: list[Expr] = []
        at: list[Expr] = list(indices)
        for k, (low, high, step) in enumerate(zip(lows, highs, steps, strict=True)):
            first, last = bounded(low, a.shape[k], step), bounded(high, a.shape[k], step)
            way = select(step < 0, first - indices[k], indices[k] - first)
            length = select(step < 0, first - last, last - first)
            stride = maximum(select(step < 0, -step, step), 1)  # data may say 0
            inside += [way >= 0, way < length, way % stride == 0]
            at[k] = way // stride
        for k, size in enumerate(v.shape):
            if known(size) == 1:
                at[k] = as_expr(0)
                continue
            if known(size) is None:
                at[k] = select(size.equal(1), as_expr(0).astype(at[k].dtype), at[k])
            inside.append(at[k] < size)  # bounds are data: a part that is longer than `v` stays as it is behind it
        return if_then_else(all_of(*inside), v(*at), a(*indices)) if inside else v(*at)

    return moved(a.shape, cell, "strided_set")


def _window_reference(data: np.ndarray, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    first = axis % data.ndim
    axes = tuple(range(first, data.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(data, tuple(window_shape), axes)
    return windows[(slice(None),) * first + tuple(slice(None, None, step) for step in strides)]


def _window_samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 3, 7, 8)), 2, (3, 2), (2, 3)))
    yield Sample((numbers((5, 4)), 0, (5, 1), (1, 1)))
    yield Sample((numbers((3, 11)), -1, (4,), (3,)))
    yield from of_each_type((5,), 0, (2,), (2,))


@operator(reference=_window_reference, samples=_window_samples)
def sliding_window(data: te.Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> te.Tensor:
    """The windows of `window_shape` over `axis` and all axes after it: where they stand, then what they hold."""
    op = "sliding_window"
    first = axis_of(op, axis, data.ndim)
    count = data.ndim - first
    window, steps = each(op, "window_shape", window_shape, count), each(op, "strides", strides, count)
    counts = [places(op, data.shape[first + k], window[k], steps[k], 1, 0) for k in range(count)]

    def cell(*indices: Expr) -> Expr:
        at, inner = indices[first : first + count], indices[first + count :]
        moves = [location * step + offset for location, step, offset in zip(at, steps, inner, strict=True)]
        return data(*indices[:first], *moves)

    return moved((*data.shape[:first], *counts, *window), cell, op)
