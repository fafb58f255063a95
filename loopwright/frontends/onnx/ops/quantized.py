"""Quantised tensors: QuantizeLinear, DequantizeLinear, QLinearConv, MatMulInteger …

A number is scale · (integer - zero point). Scales and zero points are one for a tensor, one for each place along an
axis, or one for each block of places. Products are sums of int32; what they are scaled by afterwards is one float32.
Results are rounded to the nearest integer, halves to the even one.
"""

from __future__ import annotations

import math

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.element_types import ElementType, of_proto
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.casting import converted, decoded
from loopwright.frontends.onnx.ops.convolution import convolved, window, window_pads
from loopwright.frontends.onnx.ops.linear import product
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.shape_values import is_symbolic
from loopwright.relay.expr import Constant, Expr

_WIDE = ("int8", "uint8", "int16", "uint16", "int32")  # types that relay quantises to


def known_as(node: Node, x: Expr, dtype: str) -> Expr:
    """A small tensor in another element type; a constant stays one."""
    result = node.known(x)
    if result is not None and not is_symbolic(result):
        return Constant(result.astype(dtype))
    return node.cast(x, dtype)


def single(node: Node, x: Expr) -> Expr:
    """One number as a scalar: models have it as a tensor of one element too."""
    if node.rank(x) and all(size == 1 for size in node.shape(x)):
        result = node.known(x)
        return relay.reshape(x, ()) if result is None else Constant(result.reshape(()))
    return x


def is_zero(node: Node, x: Expr | None) -> bool:
    """Whether a zero point is known to be 0, or left out."""
    if x is None:
        return True
    result = node.known(x)
    return result is not None and not is_symbolic(result) and not result.any()


def _spread(node: Node, x: Expr, values: Expr, axis: int) -> Expr:
    """Scales or zero points laid out beside `x`: one, one a place along `axis`, or one a block."""
    values = single(node, values)
    rank, count = node.rank(x), node.rank(values)
    if count == 0:
        return values
    if count == 1:
        behind = rank - 1 - axis
        return relay.expand_dims(values, axis=1, num_newaxis=behind) if behind else values
    if count != rank:
        raise node.bad(f"scales of shape {node.shape(values)} are given for data of shape {node.shape(x)}")
    size, blocks = node.static_shape(x)[axis], node.static_shape(values)[axis]
    block = node.attr("block_size", 0) or -(-size // max(blocks, 1))
    if math.ceil(size / block) != blocks:
        raise node.bad(f"axis {axis} has {size} places in blocks of {block}, and {blocks} scales")
    locations = node.const(np.arange(size) // block)
    return values if blocks == size else relay.take(values, locations, axis=axis)


def limits(kind: ElementType) -> tuple[int, int]:
    """The least and the greatest integer of a type, those of 4 and 2 bits included."""
    if kind.dtype.startswith("uint"):
        return 0, (1 << kind.bits) - 1
    return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1


def _is_integer(kind: ElementType) -> bool:
    return not kind.coded and kind.dtype.startswith(("int", "uint"))


def rounded(node: Node, real: Expr, zero_point: Expr | None, kind: ElementType) -> Expr:
    """Numbers in units of the scale as integers of that type: rounded, moved by the zero point, within the limits."""
    low, high = limits(kind)
    locations = relay.rint(real)
    if zero_point is not None and not is_zero(node, zero_point):
        locations = relay.add(locations, known_as(node, zero_point, str(node.dtype(real))))
    # The greatest float32 that an int32 holds is not its limit.
    top = float(high) if high < 1 << 24 else float(high - 127)
    return node.carries(relay.cast(relay.clip(locations, float(low), top), kind.dtype), kind)


# QuantizeLinear, DequantizeLinear.


def _axis(node: Node, x: Expr) -> int:
    rank = node.rank(x)
    axis = node.attr("axis", 1)
    return 0 if rank <= 1 else node.axis(axis, rank)


@converter("QuantizeLinear", since=10)
def quantize_linear(node: Node, x: Expr, scale: Expr, zero_point: Expr | None = None) -> Expr:
    if zero_point is not None:
        kind = node.element(zero_point)
    else:
        kind = of_proto(node.attr("output_dtype", 0) or 2, f"the result of node {node.name!r}")
    return quantized(node, x, scale, zero_point, kind)


def quantized(node: Node, x: Expr, scale: Expr, zero_point: Expr | None, kind: ElementType) -> Expr:
    """`x` in integers (or small floats) of a scale."""
    axis = _axis(node, x)
    scale = single(node, scale)
    wanted = node.attr("precision", 0)
    by_relay = (
        node.rank(scale) <= 1
        and kind.dtype in _WIDE
        and not kind.carried
        and not wanted
        and str(node.dtype(x)) == str(node.dtype(scale)) == "float32"
    )
    if by_relay:
        zero = node.const(0, "int32") if zero_point is None else known_as(node, single(node, zero_point), "int32")
        return relay.qnn.op.quantize(x, scale, zero, axis=axis, out_dtype=kind.dtype, rounding="TONEAREST_EVEN")
    real = of_proto(wanted).dtype if wanted else str(node.dtype(x)) if node.is_float(x) else str(node.dtype(scale))
    part = relay.divide(node.cast(x, real), node.cast(_spread(node, x, scale, axis), real))
    if not _is_integer(kind):
        return converted(node, part, kind, bool(node.attr("saturate", 1)))
    moved = None if zero_point is None else _spread(node, x, zero_point, axis)
    return rounded(node, node.cast(part, "float32"), moved, kind)


@converter("DequantizeLinear", since=10, fold=False)  # integers that stay integers are the point
def dequantize_linear(node: Node, x: Expr, scale: Expr, zero_point: Expr | None = None) -> Expr:
    to = node.attr("output_dtype", 0)
    return dequantized(node, x, scale, zero_point, of_proto(to).dtype if to else str(node.dtype(scale)))


def dequantized(node: Node, x: Expr, scale: Expr, zero_point: Expr | None, out: str = "float32") -> Expr:
    """The numbers that integers (or small floats) of a scale stand for."""
    kind = node.element(x)
    axis = _axis(node, x)
    scale = single(node, scale)
    if _is_integer(kind) and node.rank(scale) <= 1 and str(node.dtype(scale)) == out == "float32":
        moved = node.const(0, "int32") if zero_point is None else known_as(node, single(node, zero_point), "int32")
        return relay.qnn.op.dequantize(x, scale, moved, axis=axis)
    real = node.cast(decoded(node, x, kind), "float32")
    if _is_integer(kind) and zero_point is not None and not is_zero(node, zero_point):
        real = relay.subtract(real, _spread(node, x, known_as(node, zero_point, "float32"), axis))
    return node.cast(relay.multiply(real, node.cast(_spread(node, x, scale, axis), "float32")), out)


@converter("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Node, x: Expr) -> list[Expr]:
    """To uint8, with a scale for what the tensor holds; 0 is always among it."""
    zero, top = node.const(0, x), node.const(255, x)
    axes = list(range(node.rank(x)))
    least = relay.minimum(relay.min(x, axis=axes), zero)
    most = relay.maximum(relay.max(x, axis=axes), zero)
    span = relay.divide(relay.subtract(most, least), top)
    # A tensor of zeros has no range, and the formula of the operator's text divides 0 by its scale, which is 0. We
    # return 1, as ONNX Runtime does and as the reference implementation notes in its comment; its code has 1/255.
    scale = relay.where(relay.equal(span, zero), node.const(1, x), span)
    location = relay.rint(relay.clip(relay.divide(relay.negative(least), scale), 0.0, 255.0))
    numbers = relay.clip(relay.add(relay.rint(relay.divide(x, scale)), location), 0.0, 255.0)
    return [relay.cast(numbers, "uint8"), scale, relay.cast(location, "uint8")]


# Products.


def _ratio(node: Node, over: Expr, *scales: Expr) -> Expr:
    """The product of scales over another one, as float32; of known ones a constant."""
    values = [node.known(one) for one in (*scales, over)]
    if all(value is not None for value in values):
        *parts, last = (np.asarray(value, np.float32) for value in values)
        total = parts[0]
        for part in parts[1:]:
            total = total * part
        return Constant(np.asarray(total / last, np.float32))
    total_expr = node.cast(scales[0], "float32")
    for one in scales[1:]:
        total_expr = relay.multiply(total_expr, node.cast(one, "float32"))
    return relay.divide(total_expr, node.cast(over, "float32"))


def integer_product(node: Node, a: Expr, b: Expr, a_zero: Expr | None, b_zero: Expr | None) -> Expr:
    """The product of matrices of integers less their zero points, one or one a row of `a` or a column of `b`, as int32.

    Σ (a - p)(b - q) = Σ a·b - p·Σ b - q·Σ a + n·p·q: the large sum is of the narrow integers as they are stored.
    """
    p = None if a_zero is None or is_zero(node, a_zero) else known_as(node, single(node, a_zero), "int32")
    q = None if b_zero is None or is_zero(node, b_zero) else known_as(node, single(node, b_zero), "int32")
    if p is not None and node.rank(p) == 1:
        p = relay.expand_dims(p, axis=1)
    if (p is not None or q is not None) and (node.rank(a) < 2 or node.rank(b) < 2):
        left = node.cast(a, "int32") if p is None else relay.subtract(node.cast(a, "int32"), p)
        right = node.cast(b, "int32") if q is None else relay.subtract(node.cast(b, "int32"), q)
        return product(node, left, right, "int32")
    total = product(node, a, b, "int32")
    if p is not None:
        columns = relay.sum(relay.cast(b, "int32"), axis=[node.rank(b) - 2], keepdims=True)
        if node.rank(b) == 2:
            columns = relay.reshape(columns, (1, node.shape(b)[1]), allowzero=True)
        total = relay.subtract(total, relay.multiply(p, columns))
    if q is not None:
        rows = relay.sum(relay.cast(a, "int32"), axis=[node.rank(a) - 1], keepdims=True)
        total = relay.subtract(total, relay.multiply(rows, q))
    if p is not None and q is not None:
        inner = node.shape(a)[-1]
        if not isinstance(inner, int):
            raise node.sizes_needed(f"the size {inner} is summed over", [inner])
        total = relay.add(total, relay.multiply(relay.multiply(p, q), node.const(inner, "int32")))
    return total


@converter("MatMulInteger", since=10)
@converter("MatMulInteger16", domain="com.microsoft")
def matmul_integer(node: Node, a: Expr, b: Expr, a_zero: Expr | None = None, b_zero: Expr | None = None) -> Expr:
    return integer_product(node, a, b, a_zero, b_zero)


@converter("QLinearMatMul", since=10)
def qlinear_matmul(
    node: Node, a: Expr, a_scale: Expr, a_zero: Expr, b: Expr, b_scale: Expr, b_zero: Expr, y_scale: Expr, y_zero: Expr
) -> Expr:
    total = integer_product(node, a, b, a_zero, b_zero)
    rows = single(node, a_scale)
    if node.rank(rows) == 1:
        rows = known_as(node, relay.expand_dims(rows, axis=1), "float32")
    ratio = _ratio(node, single(node, y_scale), rows, single(node, b_scale))
    real = relay.multiply(relay.cast(total, "float32"), ratio)
    return rounded(node, real, single(node, y_zero), node.element(y_zero))


def integer_convolution(node: Node, x: Expr, w: Expr, x_zero: Expr | None, w_zero: Expr | None) -> Expr:
    """The convolution of integers less their zero points, as int32; pads stand for 0."""
    shape = node.shape(w)
    p = node.const(0, "int32") if x_zero is None else known_as(node, single(node, x_zero), "int32")
    q = node.const(0, "int32") if w_zero is None else known_as(node, single(node, w_zero), "int32")
    if len(shape) == 4 and node.rank(p) == 0:
        kernel = [int(size) for size in node.static_shape(w)[2:]]
        strides, dilations = window(node, 2, "strides"), window(node, 2, "dilations")
        pads = window_pads(node, node.shape(x)[2:], kernel, strides, dilations)
        if all(isinstance(pad, int) for pad in pads):
            one = node.const(1.0, "float32")
            return relay.qnn.op.conv2d(
                x,
                w,
                p,
                q,
                one,
                one,
                kernel_size=tuple(kernel),
                channels=shape[0],
                strides=tuple(strides),
                padding=tuple(pads),
                dilation=tuple(dilations),
                groups=node.attr("group", 1),
            )
    if node.rank(q) == 1:
        q = relay.expand_dims(q, axis=1, num_newaxis=len(shape) - 1)
    data = relay.subtract(node.cast(x, "int32"), p)
    weights = relay.subtract(node.cast(w, "int32"), q)
    return convolved(node, data, weights, out_dtype="int32")


@converter("ConvInteger", since=10)
def conv_integer(node: Node, x: Expr, w: Expr, x_zero: Expr | None = None, w_zero: Expr | None = None) -> Expr:
    return integer_convolution(node, x, w, x_zero, w_zero)


@converter("QLinearConv", since=10)
def qlinear_conv(
    node: Node,
    x: Expr,
    x_scale: Expr,
    x_zero: Expr,
    w: Expr,
    w_scale: Expr,
    w_zero: Expr,
    y_scale: Expr,
    y_zero: Expr,
    bias: Expr | None = None,
) -> Expr:
    total = integer_convolution(node, x, w, x_zero, w_zero)
    if bias is not None:
        total = relay.nn.bias_add(total, bias, axis=1)
    ratio = _ratio(node, single(node, y_scale), single(node, x_scale), single(node, w_scale))
    if node.rank(ratio) == 1:
        behind = node.rank(x) - 2
        ratio = relay.expand_dims(ratio, axis=1, num_newaxis=behind) if behind else ratio
    real = relay.multiply(relay.cast(total, "float32"), ratio)
    return rounded(node, real, single(node, y_zero), node.element(y_zero))
