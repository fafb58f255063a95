"""Reductions: sums, products, extremes and their places along axes of a tensor.

    topi.sum(x, axis=(0, -1))                 the others remain
    topi.argmax(x, axis=1, keepdims=True)     reduced dimensions remain as 1

`axis=None` reduces all of them, `axis=()` none. A result is a stage `<input>_red` tagged `comm_reduce` that runs over
`k0`, `k1`, …; values are combined in the type of the input. Places are found by a stage `<input>_red_temp` of (place,
value) pairs, tagged `comm_reduce_idx`, of which `<input>_red` keeps the places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from loopwright import te
from loopwright.ir import Expr, IterVar, as_expr, const, intrinsics, logical_and, logical_or
from loopwright.ir.operators import bitwise_and, bitwise_or
from loopwright.te.tags import default_tag
from loopwright.te.tensor import dim_text, shape_text
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.row_major import count_as, product, ravel
from loopwright.topi.parts.sizes import at_least, known, one_size
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.testing.reduction import (
    arg_python,
    arg_samples,
    collapse_sum_python,
    collapse_sum_samples,
    extreme_samples,
    prod_samples,
    reduced_python,
    sum_python,
    sum_samples,
    truth_samples,
)
from loopwright.topi.types import Axes, Shape

Reducer = Callable[..., Any]

_product = te.comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype), name="prod")
_NEAR = 1 << 20  # bytes that caches surely hold: what is longer is read once, though that takes more instructions
_all = te.comm_reducer(bitwise_and, lambda dtype: const(1, dtype), name="all")
_any = te.comm_reducer(bitwise_or, lambda dtype: const(0, dtype), name="any")


def _row(
    name: str, reducer: Reducer, reference: Reference, samples: Callable[[], Iterable[Sample]], doc: str
) -> Callable[..., te.Tensor]:
    """The operator of a reducer."""

    def compute(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
        chosen = reducer
        if name in ("all", "any") and not data.dtype.is_bool:
            raise UnsuitableType(name, f"{data.name} has elements of type {data.dtype}", "compare them with something")
        if name == "sum" and data.dtype.is_bool:
            chosen = _any
        return _reduced(name, chosen, data, axis, keepdims)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{doc} along `axis`: a number, several, or None for all; `keepdims` leaves dimensions of 1."
    return operator(reference=reference, samples=samples)(compute)


def _reduced(op: str, reducer: Reducer, data: te.Tensor, axis: Axes, keepdims: bool) -> te.Tensor:
    axes = _axes(op, data, axis)
    taps, shape, read = _plan(data, axes, keepdims)
    # Truth values are joined as bytes: `and` and `or` ask for the next one only where it matters, so they cannot be
    # divided into partial results, and a vector of them is a mask that each row would be turned into and back from.
    is_bool = data.dtype.is_bool and bool(taps)

    def cell(*indices: Expr) -> Expr:
        value: Expr = data(*read(indices))
        if is_bool:
            value = value.astype("uint8")
        return reducer(value, axis=taps) if taps else value

    kind = default_tag(tag.COMM_REDUCE if taps else tag.ELEMWISE)
    name = f"{data.name}_red"
    result: te.Tensor = te.compute(shape, cell, name=f"{name}_bytes" if is_bool else name, tag=kind)
    if is_bool:
        joined = result
        result = te.compute(shape, lambda *at: joined(*at).astype("bool"), name=name, tag=kind)
    return result


def _axes(op: str, data: te.Tensor, axis: Axes) -> list[int]:
    """Which dimensions are reduced, in their order."""
    if not data.ndim:
        raise InvalidShapeError(op, f"{data.name} is one number: there is nothing to reduce", "give it a dimension")
    if axis is None:
        return list(range(data.ndim))
    given = list(axis) if isinstance(axis, Sequence) else [axis]
    return sorted({axis_of(op, one, data.ndim) for one in given})


def _plan(
    data: te.Tensor, axes: Sequence[int], keepdims: bool
) -> tuple[list[IterVar], list[Expr], Callable[[Sequence[Expr]], list[Expr]]]:
    """The axes that run, the shape of the result, and where `data` is read for an element of it."""
    taps = {axis: te.reduce_axis((0, data.shape[axis]), name=f"k{number}") for number, axis in enumerate(axes)}
    if keepdims:
        shape = [as_expr(1) if axis in taps else size for axis, size in enumerate(data.shape)]
    else:
        shape = [size for axis, size in enumerate(data.shape) if axis not in taps]

    def read(indices: Sequence[Expr]) -> list[Expr]:
        rest = iter(indices)
        locations: list[Expr] = []
        for axis in range(data.ndim):
            if axis in taps:
                locations.append(taps[axis].var)
                if keepdims:
                    next(rest)
            else:
                locations.append(next(rest))
        return locations

    return list(taps.values()), shape, read


sum = _row("sum", te.sum, sum_python, sum_samples, "The sum (of truth values: whether any holds)")
max = _row("max", te.max, reduced_python(np.max, -np.inf), extreme_samples, "The greatest value, NaN if there is one,")
min = _row("min", te.min, reduced_python(np.min, np.inf), extreme_samples, "The least value, NaN if there is one,")
prod = _row("prod", _product, reduced_python(np.prod), prod_samples, "The product")
all = _row("all", _all, reduced_python(np.all), truth_samples, "Whether all truth values hold")
any = _row("any", _any, reduced_python(np.any), truth_samples, "Whether any truth value holds")


@operator(reference=arg_python(np.argmax), samples=arg_samples)
def argmax(data: te.Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False) -> te.Tensor:
    """The place of the greatest value along `axis` as int32; of equal ones the first, or the last.

    Along several axes it is the place when they are read row after row. A NaN counts as the greatest.
    """
    return _place("argmax", data, axis, keepdims, select_last_index)


@operator(reference=arg_python(np.argmin), samples=arg_samples)
def argmin(data: te.Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False) -> te.Tensor:
    """The place of the least value along `axis` as int32; of equal ones the first, or the last.

    Along several axes it is the place when they are read row after row. A NaN counts as the least.
    """
    return _place("argmin", data, axis, keepdims, select_last_index)


def _place(op: str, data: te.Tensor, axis: Axes, keepdims: bool, last: bool) -> te.Tensor:
    axes = _axes(op, data, axis)
    if not axes:
        raise InvalidShapeError(op, "axis is (), and a place is one along an axis", "name an axis, or leave it out")
    for at in axes:
        if not at_least(data.shape[at], 1):
            problem = f"axis {at} of {data.name}, of shape {shape_text(data.shape)}, has no elements"
            raise InvalidShapeError(op, problem, "there is no place in it")
    taps, shape, read = _plan(data, axes, keepdims)
    sizes = [data.shape[at] for at in axes]
    count_as("int32", sizes, op)  # an int32 has to say which of them it is
    offset = ravel([tap.var for tap in taps], sizes).astype("int32")
    name, kind = f"{data.name}_red", default_tag(tag.COMM_REDUCE_IDX)
    length = known(product(sizes))
    if length == 1:
        return te.compute(shape, lambda *_: const(0, "int32"), name=name, tag=default_tag(tag.INJECTIVE))
    is_large = length is not None and length * data.dtype.nbytes > _NEAR
    if data.dtype.is_bool or is_large:
        of_pairs = place_reducer(op, last)
        pairs = te.compute(shape, lambda *at: of_pairs((offset, data(*read(at))), axis=taps), f"{name}_temp", kind)
        return te.compute(shape, lambda *at: pairs[0](*at), name=name, tag=kind)
    # The best value first, then where it is: two reductions of a few instructions each, where pairs take a dozen.
    before, _, read_before = _plan(data, axes, keepdims)
    extremum = te.max if op == "argmax" else te.min
    best = te.compute(shape, lambda *at: extremum(data(*read_before(at)), axis=before), name=f"{name}_temp", tag=kind)
    nowhere, nearest = (const(-1, "int32"), te.max) if last else (intrinsics.max_value("int32"), te.min)

    def cell(*at: Expr) -> Expr:
        value = data(*read(at))
        found = value.equal(best(*at))
        if data.dtype.is_float:
            found = logical_or(found, intrinsics.isnan(value))  # the best is NaN where one is
        return nearest(intrinsics.select(found, offset, nowhere), axis=taps)

    result: te.Tensor = te.compute(shape, cell, name=name, tag=kind)
    return result


def place_reducer(op: str, last: bool = False) -> Reducer:
    """The reducer of (place, value) pairs for argmax or argmin; of equal values it keeps the first place, or the last.

    It is commutative and associative for all pairs, so that schedules may combine them in any order: ties are broken by
    the place, a NaN counts as the greatest (or least), and so does the value itself, of which +0 is above -0.
    """
    best = intrinsics.maximum if op == "argmax" else intrinsics.minimum

    def combine(left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, Expr]:
        (i, a), (j, b) = left, right
        wins, ties = a > b if op == "argmax" else a < b, a.equal(b)
        if a.dtype.is_float:
            a_nan, b_nan = intrinsics.isnan(a), intrinsics.isnan(b)
            wins = logical_or(wins, logical_and(a_nan, intrinsics.logical_not(b_nan)))
            ties = logical_or(ties, logical_and(a_nan, b_nan))
        takes = logical_or(wins, logical_and(ties, i > j if last else i < j))
        return intrinsics.select(takes, i, j), best(a, b)

    def identity(location: str, value: str) -> tuple[Expr, Expr]:
        # It must lose against every pair, also against one of the same value.
        nowhere = const(-1, location) if last else intrinsics.max_value(location)
        start = const(0, value).dtype
        if start.is_float:
            return nowhere, const(float("-inf" if op == "argmax" else "inf"), value)
        return nowhere, (intrinsics.min_value if op == "argmax" else intrinsics.max_value)(value)

    return te.comm_reducer(combine, identity, name=op)


@operator(reference=collapse_sum_python, samples=collapse_sum_samples)
def collapse_sum(data: te.Tensor, target_shape: Shape) -> te.Tensor:
    """`data` summed to `target_shape`: along the dimensions that `broadcast_to` repeats to get back to its shape."""
    wanted = [as_expr(size) for size in target_shape]
    message = f"{data.name} of shape {shape_text(data.shape)} does not collapse to {shape_text(wanted)}"
    if len(wanted) > data.ndim:
        raise InvalidShapeError("collapse_sum", message, f"the target has at most {data.ndim} dimensions")
    skipped = data.ndim - len(wanted)
    axes = list(range(skipped))
    for axis, size in enumerate(wanted, skipped):
        if known(size) == 1 and known(data.shape[axis]) != 1:
            axes.append(axis)
        elif not one_size(data.shape[axis], size):
            raise InvalidShapeError("collapse_sum", f"{message}: {dim_text(data.shape[axis])} is not {dim_text(size)}")
    taps, _, _ = _plan(data, axes, False)
    along = dict(zip(axes, taps, strict=True))

    def cell(*indices: Expr) -> Expr:
        full = [*[as_expr(0)] * skipped, *indices]
        value = data(*[along[axis].var if axis in along else full[axis] for axis in range(data.ndim)])
        return te.sum(value, axis=taps) if taps else value

    kind = default_tag(tag.COMM_REDUCE if taps else tag.ELEMWISE)
    result: te.Tensor = te.compute(wanted, cell, name=f"{data.name}_red", tag=kind)
    return result
