"""Reductions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.ops.pointwise import truth
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Axes
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times
from loopwright.relay.types import AnyDim

if TYPE_CHECKING:
    import torch


def axes_of(node: Node, x: Expr, dim: Axes) -> list[int]:
    """Axes counted from the front; all of them where none are named."""
    rank = node.rank(x)
    if dim is None or dim == []:
        return list(range(rank))
    listed = dim if isinstance(dim, Sequence) else [dim]
    return sorted({node.axis(int(axis), rank) for axis in listed}) if rank else []


def _reduced(node: Node, function: Callable[..., Expr], x: Expr, dim: Axes, keepdim: bool) -> Expr:
    axes = axes_of(node, x, dim)
    return function(x, axis=axes, keepdims=keepdim) if axes else x


def wide_operand(node: Node, x: Expr) -> Expr:
    """Elements in the type that they are added up in: that of the result, float32 for halves."""
    return node.cast(x, node.wide(node.out_dtype()))


@converter("sum")
def sum_(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Expr:
    return _reduced(node, relay.sum, wide_operand(node, x), dim, keepdim)


@converter("mean")
def mean(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Expr:
    return _reduced(node, relay.mean, wide_operand(node, x), dim, keepdim)


@converter("prod")
def prod(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Expr:
    return _reduced(node, relay.prod, wide_operand(node, x), dim, keepdim)


@converter("amax", "max.default")
def amax(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    if node.dtype(x).is_bool:
        return _reduced(node, relay.any, x, dim, keepdim)
    return _reduced(node, relay.max, x, dim, keepdim)


@converter("amin", "min.default")
def amin(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    if node.dtype(x).is_bool:
        return _reduced(node, relay.all, x, dim, keepdim)
    return _reduced(node, relay.min, x, dim, keepdim)


@converter("any")
def any_(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return _reduced(node, relay.any, truth(node, x), dim, keepdim)


@converter("all")
def all_(node: Node, x: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return _reduced(node, relay.all, truth(node, x), dim, keepdim)


def _place(node: Node, name: str, x: Expr, dim: int | None, keepdim: bool) -> Expr:
    """Where the greatest (or least) element is; over all axes, as if they were one."""
    if node.dtype(x).is_bool:
        x = relay.cast(x, "uint8")
    rank = node.rank(x)
    if rank == 0:
        return node.const(0)
    if dim is None:
        flat = relay.reshape(x, (times(*node.shape(x)),), allowzero=True) if rank > 1 else x
        result = getattr(relay, name)(flat, axis=[0])
        return relay.reshape(result, (1,) * rank, allowzero=True) if keepdim else result
    return getattr(relay, name)(x, axis=[node.axis(dim, rank)], keepdims=keepdim)


@converter("argmax")
def argmax(node: Node, x: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    return _place(node, "argmax", x, dim, keepdim)


@converter("argmin")
def argmin(node: Node, x: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    return _place(node, "argmin", x, dim, keepdim)


@converter("max.dim")
def max_dim(node: Node, x: Expr, dim: int, keepdim: bool = False) -> list[Expr | None]:
    return [amax(node, x, dim, keepdim), _place(node, "argmax", x, dim, keepdim) if node.wants(1) else None]


@converter("min.dim")
def min_dim(node: Node, x: Expr, dim: int, keepdim: bool = False) -> list[Expr | None]:
    return [amin(node, x, dim, keepdim), _place(node, "argmin", x, dim, keepdim) if node.wants(1) else None]


# Spread.


@converter("var.correction", "std.correction")
def var(node: Node, x: Expr, dim: Axes = None, correction: float | None = 1, keepdim: bool = False) -> Expr:
    spread, _ = _spread(node, x, dim, correction, keepdim)
    return relay.sqrt(spread) if "::std" in node.op else spread


@converter("var_mean.correction", "std_mean.correction")
def var_mean(node: Node, x: Expr, dim: Axes = None, correction: float | None = 1, keepdim: bool = False) -> list[Expr]:
    spread, middle = _spread(node, x, dim, correction, keepdim)
    return [relay.sqrt(spread) if "::std" in node.op else spread, middle]


@converter("var.dim", "std.dim")
def var_unbiased(node: Node, x: Expr, dim: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Expr:
    return var(node, x, dim, 1 if unbiased else 0, keepdim)


def _spread(node: Node, x: Expr, dim: Axes, correction: float | None, keepdim: bool) -> tuple[Expr, Expr]:
    """The squares of the distances from the mean over their count less `correction`; and the mean."""
    x = node.cast(x, node.sum_dtype(x))
    axes = axes_of(node, x, dim)
    middle = relay.mean(x, axis=axes, keepdims=True) if axes else x
    apart = relay.subtract(x, middle)
    total = _reduced(node, relay.sum, relay.multiply(apart, apart), axes, keepdim) if axes else apart
    count = times(*[node.shape(x)[axis] for axis in axes])
    less = 1 if correction is None else correction
    if isinstance(count, AnyDim):
        raise node.unsupported("the variance of a size that is known only when the model runs")
    if isinstance(count, int):
        divisor: Expr = node.like(x, max(count - less, 0))
    else:
        divisor = relay.subtract(node.operand(count, x), node.like(x, less))
    out = middle if keepdim or not axes else relay.squeeze(middle, axis=axes)
    return relay.divide(total, divisor), out


@converter("logsumexp")
def logsumexp(node: Node, x: Expr, dim: Axes, keepdim: bool = False) -> Expr:
    """log(sum(exp(x))); of no axes, the elements themselves."""
    x = node.float_operand(x)
    axes = axes_of(node, x, dim)
    if not axes:
        return x
    return relay.logsumexp(x, axis=axes, keepdims=keepdim)


@converter("linalg_vector_norm")
def vector_norm(
    node: Node, x: Expr, ord: float = 2, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Expr:
    size = relay.abs(wide_operand(node, x))
    axes = axes_of(node, x, dim)
    if ord == math.inf:
        return _reduced(node, relay.max, size, axes, keepdim)
    if ord == -math.inf:
        return _reduced(node, relay.min, size, axes, keepdim)
    if ord == 0:
        there = relay.cast(relay.not_equal(size, node.like(size, 0)), str(node.dtype(size)))
        return _reduced(node, relay.sum, there, axes, keepdim)
    if ord == 1:
        return _reduced(node, relay.sum, size, axes, keepdim)
    if ord == 2:
        return relay.sqrt(_reduced(node, relay.sum, relay.multiply(size, size), axes, keepdim))
    powered = _reduced(node, relay.sum, relay.power(size, node.like(size, ord)), axes, keepdim)
    return relay.power(powered, node.like(size, 1 / ord))


@converter("cumsum")
def cumsum(node: Node, x: Expr, dim: int, dtype: torch.dtype | None = None) -> Expr:
    return _running(node, relay.cumsum, wide_operand(node, x), dim)


@converter("cumprod")
def cumprod(node: Node, x: Expr, dim: int, dtype: torch.dtype | None = None) -> Expr:
    return _running(node, relay.cumprod, wide_operand(node, x), dim)


def _running(node: Node, function: Callable[..., Expr], x: Expr, dim: int) -> Expr:
    return function(x, axis=node.axis(dim, node.rank(x)), dtype=str(node.dtype(x))) if node.rank(x) else x
