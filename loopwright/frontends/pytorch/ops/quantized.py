"""Quantized models as torch exports them: numbers of 8 bits between quantize and dequantize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright import relay
from loopwright.frontends.common.rounding import round_half_even
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Operand
from loopwright.relay.expr import Expr

if TYPE_CHECKING:
    import torch


def _along(node: Node, x: Expr, values: Expr, axis: int | None) -> Expr:
    """One value for all, or one for each place along an axis, laid out beside `x`."""
    if axis is None or node.rank(values) == 0:
        return relay.reshape(values, ()) if node.rank(values) else values
    behind = node.rank(x) - axis - 1
    return relay.expand_dims(values, axis=1, num_newaxis=behind) if behind else values


def _quantized(
    node: Node, x: Expr, scale: Operand, zero: Operand, low: int, high: int, axis: int | None = None
) -> Expr:
    x = node.cast(x, "float32")
    inverse = relay.divide(node.like(x, 1), _along(node, x, node.operand(scale, "float32"), axis))
    locations = round_half_even(node, relay.multiply(x, inverse))
    moved = relay.add(locations, _along(node, x, node.operand(zero, "float32"), axis))
    return relay.cast(relay.clip(moved, float(low), float(high)), node.out_dtype())


def _real(node: Node, x: Expr, scale: Operand, zero: Operand | None, axis: int | None = None) -> Expr:
    if zero is None:
        zero = node.const(0, "int32")
    known = all(not isinstance(one, Expr) or node.rank(one) <= 1 for one in (scale, zero))
    if axis is None and known:
        flat = [relay.reshape(node.operand(one, kind), ()) for one, kind in ((scale, "float32"), (zero, "int32"))]
        return relay.qnn.op.dequantize(x, *flat)
    away = relay.subtract(node.cast(x, "int32"), _along(node, x, node.operand(zero, "int32"), axis))
    return relay.multiply(relay.cast(away, "float32"), _along(node, x, node.operand(scale, "float32"), axis))


_SPACE = "quantized_decomposed::"


@converter(_SPACE + "quantize_per_tensor")
def quantize(
    node: Node, x: Expr, scale: Operand, zero: Operand, low: int, high: int, dtype: torch.dtype | None
) -> Expr:
    return _quantized(node, x, scale, zero, low, high)


@converter(_SPACE + "dequantize_per_tensor")
def dequantize(
    node: Node,
    x: Expr,
    scale: Operand,
    zero: Operand,
    low: int,
    high: int,
    dtype: torch.dtype | None,
    out_dtype: torch.dtype | None = None,
) -> Expr:
    return _real(node, x, scale, zero)


@converter(_SPACE + "quantize_per_channel")
def quantize_channels(
    node: Node, x: Expr, scales: Expr, zeros: Expr, axis: int, low: int, high: int, dtype: torch.dtype | None
) -> Expr:
    return _quantized(node, x, scales, zeros, low, high, axis)


@converter(_SPACE + "dequantize_per_channel")
def dequantize_channels(
    node: Node,
    x: Expr,
    scales: Expr,
    zeros: Expr,
    axis: int,
    low: int,
    high: int,
    dtype: torch.dtype | None,
    out_dtype: torch.dtype | None = None,
) -> Expr:
    return _real(node, x, scales, zeros, axis)
