"""Reductions: ReduceSum and its kin, ArgMax, ArgMin."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx import dynamic_axes
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr

_NAMES = [
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
]


def _over(node: Node, x: Expr, axes: Expr | None) -> list[int] | None:
    """The axes to reduce, as an attribute or as an input; None where the tensor stays as it is."""
    rank = node.rank(x)
    listed = node.attr("axes", None) if axes is None else node.ints(axes)
    if not listed:
        return None if node.attr("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({node.axis(axis, rank) for axis in listed})


@converter(*_NAMES)
def reduce(node: Node, x: Expr, axes: Expr | None = None) -> Expr:
    keep = bool(node.attr("keepdims", 1))
    if axes is not None and node.importer.dynamic and node.known(axes) is None:
        return _nothing_reduced(node, x, axes, keep) if _is_empty(node, x) else _reduced_dynamic(node, x, axes, keep)
    over = _over(node, x, axes)
    if not over:
        return _of_each(node, x)
    if node.op in ("ReduceMax", "ReduceMin"):
        return _reduced(node, x, over, keep)
    return node.cast(_reduced(node, node.cast(x, node.sum_dtype(x)), over, keep), str(node.dtype(x)))


# What comes before and after the sums along single axes.
_BEFORE = {
    "ReduceL1": relay.abs,
    "ReduceL2": lambda x: relay.multiply(x, x),
    "ReduceSumSquare": lambda x: relay.multiply(x, x),
}
_AFTER = {"ReduceL2": relay.sqrt, "ReduceLogSum": relay.log}


def _reduced_dynamic(node: Node, x: Expr, axes: Expr, keep: bool) -> Expr:
    """Axes found when the model runs: every axis is reduced in turn, and the result taken where the axis is named."""
    rank, kind = node.rank(x), node.dtype(x)
    which = {"ReduceMean": relay.mean, "ReduceProd": relay.prod, "ReduceLogSumExp": relay.logsumexp}
    along = which.get(node.op, relay.sum)
    if node.op in ("ReduceMax", "ReduceMin"):
        largest = node.op == "ReduceMax"
        along = (relay.any if largest else relay.all) if kind.is_bool else (relay.max if largest else relay.min)
        result = x
    elif node.op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp") and not kind.is_float:
        result = relay.cast(x, "float64")
    else:
        result = node.cast(x, node.sum_dtype(x))
    result = _BEFORE.get(node.op, lambda one: one)(result)
    is_named = relay.greater(dynamic_axes.named(node, axes, rank), node.const(0))
    for axis in range(rank):
        taken = relay.reshape(relay.strided_slice(is_named, begin=[axis], end=[axis + 1]), ())
        whole = along(result, axis=[axis], keepdims=True)
        result = relay.where(taken, relay.broadcast_to_like(whole, result), result)
    # Along an axis that was reduced all elements are the same: the first stands for them.
    sizes = relay.shape_of(result, dtype="int64")
    end = relay.where(is_named, node.const([1] * rank), sizes)
    result = relay.strided_slice(result, node.const([0] * rank), end, node.const([1] * rank))
    result = node.cast(_AFTER.get(node.op, lambda one: one)(result), str(kind))
    return result if keep else dynamic_axes.squeezed(node, result, axes)


# What is made of no elements.
_OF_NONE = {
    "ReduceProd": 1.0,
    "ReduceMean": np.nan,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
}


def _nothing_reduced(node: Node, x: Expr, axes: Expr, keep: bool) -> Expr:
    """A tensor without elements along axes found when the model runs: the result has none, or is made of none."""
    rank, kind = node.rank(x), node.dtype(x)
    value = _OF_NONE.get(node.op, 0.0)
    if not kind.is_float and not np.isfinite(value):
        if node.op not in ("ReduceMax", "ReduceMin"):
            raise node.unsupported(f"{node.op} of no elements of type {kind}")
        value = int(node.op == "ReduceMin") if kind.is_bool else kind.min_value() if value < 0 else kind.max_value()
    is_named = relay.greater(dynamic_axes.named(node, axes, rank), node.const(0))
    sizes = relay.where(is_named, node.const([1] * rank), relay.shape_of(x, dtype="int64"))
    result = relay.full(node.const(value, x), sizes, dtype=str(kind))
    return result if keep else dynamic_axes.squeezed(node, result, axes)


def _of_each(node: Node, x: Expr) -> Expr:
    """No axis is reduced: what the operator makes of single elements."""
    match node.op:
        case "ReduceL1" | "ReduceL2":
            return relay.abs(x)
        case "ReduceSumSquare":
            return relay.multiply(x, x)
        case "ReduceLogSum":
            return relay.log(x)
        case _:
            return x


def _reduced(node: Node, x: Expr, over: list[int], keep: bool) -> Expr:
    options = {"axis": over, "keepdims": keep}
    kind = node.dtype(x)
    match node.op:
        case "ReduceSum":
            return relay.sum(x, **options)
        case "ReduceMean":
            return relay.mean(x, **options)
        case "ReduceMax" | "ReduceMin":
            return _extreme(node, x, over, keep)
        case "ReduceProd":
            return relay.prod(x, **options)
        case "ReduceL1":
            return relay.sum(relay.abs(x), **options)
        case "ReduceSumSquare":
            return relay.sum(relay.multiply(x, x), **options)
        case "ReduceL2":
            total = relay.sum(relay.multiply(x, x), **options)
            return relay.sqrt(total) if kind.is_float else node.cast(relay.sqrt(node.cast(total, "float64")), kind)
        case "ReduceLogSum":
            total = relay.sum(x, **options)
            return relay.log(total) if kind.is_float else node.cast(relay.log(node.cast(total, "float64")), kind)
        case _:
            if _is_empty(node, x):
                return relay.log(relay.sum(relay.exp(x), **options))
            if kind.is_float:
                return relay.logsumexp(x, axis=over, keepdims=keep)
            return node.cast(relay.logsumexp(node.cast(x, "float64"), axis=over, keepdims=keep), kind)


def _is_empty(node: Node, x: Expr) -> bool:
    return any(isinstance(size, int) and size == 0 for size in node.shape(x))


def _extreme(node: Node, x: Expr, over: list[int], keep: bool) -> Expr:
    """The largest or smallest; of no elements, the one that any number exceeds. Truth values are numbers 0 and 1."""
    options = {"axis": over, "keepdims": keep}
    kind = node.dtype(x)
    largest = node.op == "ReduceMax"
    if kind.is_bool:
        return relay.any(x, **options) if largest else relay.all(x, **options)
    if _is_empty(node, x) and kind.is_float:
        shape = [
            (1 if axis in over else size)
            for axis, size in enumerate(node.static_shape(x))
            if keep or axis not in over
        ]
        return relay.const(np.full(shape, -np.inf if largest else np.inf), str(kind))
    return relay.max(x, **options) if largest else relay.min(x, **options)


@converter("ArgMax", "ArgMin")
def arg_extreme(node: Node, x: Expr) -> Expr:
    function = relay.argmax if node.op == "ArgMax" else relay.argmin
    location = function(
        x,
        axis=node.axis(node.attr("axis", 0), node.rank(x)),
        keepdims=bool(node.attr("keepdims", 1)),
        select_last_index=bool(node.attr("select_last_index", 0)),
    )
    return relay.cast(location, "int64")
