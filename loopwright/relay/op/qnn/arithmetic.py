"""Arithmetic on quantized tensors: sums, products, joins, functions of one tensor.

    qnn.add(lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point)

Sums are formed in the scale of the result, products in that of the operands and requantized; functions of real numbers
go by way of float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Constant, Expr, TupleGetItem, const
from loopwright.relay.op.composed import Composed
from loopwright.relay.op.nn.convolutions import windows
from loopwright.relay.op.qnn.requantize import requantize
from loopwright.relay.op.qnn.scales import cast, check_scale, saturated, tensor_type
from loopwright.relay.op.registry import Kind, calls, get, make, register
from loopwright.relay.op.sizes import broadcast, same_dtype
from loopwright.relay.types import TensorType


class _Binary(Composed):
    """Two quantized tensors repeated to one shape."""

    lhs_axis: int = -1
    rhs_axis: int = -1

    def infer(
        self,
        lhs: TensorType,
        rhs: TensorType,
        lhs_scale: TensorType,
        lhs_zero_point: TensorType,
        rhs_scale: TensorType,
        rhs_zero_point: TensorType,
        output_scale: TensorType,
        output_zero_point: TensorType,
    ) -> Type:
        same_dtype(self.op_name, lhs, rhs)
        check_scale(self.op_name, lhs, self.lhs_axis, lhs_scale, lhs_zero_point)
        check_scale(self.op_name, rhs, self.rhs_axis, rhs_scale, rhs_zero_point)
        check_scale(self.op_name, lhs, -1, output_scale, output_zero_point)
        return TensorType(broadcast(self.op_name, lhs.shape, rhs.shape), str(lhs.dtype))


class _Sum(_Binary):
    def expand(  # type: ignore[override]
        self,
        lhs: Expr,
        rhs: Expr,
        lhs_scale: Expr,
        lhs_zero_point: Expr,
        rhs_scale: Expr,
        rhs_zero_point: Expr,
        output_scale: Expr,
        output_zero_point: Expr,
    ) -> Expr:
        dtype = str(tensor_type(lhs).dtype)
        # Both without a zero point, which is then added once.
        none = const(0, "int32")
        one = requantize(lhs, lhs_scale, lhs_zero_point, output_scale, none, axis=self.lhs_axis, out_dtype="int32")
        other = requantize(rhs, rhs_scale, rhs_zero_point, output_scale, none, axis=self.rhs_axis, out_dtype="int32")
        total = make("add" if self.op_name == "qnn.add" else "subtract", one, other)
        return saturated(total + output_zero_point, dtype)


@register("qnn.add", Kind.BROADCAST)
class Add(_Sum):
    """The sum of two quantized tensors."""


@register("qnn.subtract", Kind.BROADCAST)
class Subtract(_Sum):
    """The difference of two quantized tensors."""


@register("qnn.mul", Kind.BROADCAST)
class Multiply(_Binary):
    """The product of two quantized tensors."""

    def expand(  # type: ignore[override]
        self,
        lhs: Expr,
        rhs: Expr,
        lhs_scale: Expr,
        lhs_zero_point: Expr,
        rhs_scale: Expr,
        rhs_zero_point: Expr,
        output_scale: Expr,
        output_zero_point: Expr,
    ) -> Expr:
        dtype = str(tensor_type(lhs).dtype)
        product = (cast(lhs, "int32") - lhs_zero_point) * (cast(rhs, "int32") - rhs_zero_point)
        scale = _product(lhs_scale, rhs_scale)
        return requantize(product, scale, const(0, "int32"), output_scale, output_zero_point, out_dtype=dtype)


def _product(one: Expr, other: Expr) -> Expr:
    """The product of two scales; of constants, a constant."""
    if isinstance(one, Constant) and isinstance(other, Constant):
        return const(one.data * other.data, "float32")
    return one * other


@register("qnn.concatenate", Kind.INJECTIVE)
class Concatenate(Composed):
    """Quantized tensors joined along `axis`, each requantized to the scale of the result."""

    axis: int = 0

    def infer(
        self,
        data: TupleType,
        input_scales: TupleType,
        input_zero_points: TupleType,
        output_scale: TensorType,
        output_zero_point: TensorType,
    ) -> Type:
        if not len(data.fields) == len(input_scales.fields) == len(input_zero_points.fields):
            counts = [len(part.fields) for part in (data, input_scales, input_zero_points)]
            raise TypeMismatch(f"qnn.concatenate: {counts[0]} tensors have {counts[1]} scales, {counts[2]} zero points")
        return get("concatenate").attributes(axis=self.axis).infer(data)

    def expand(  # type: ignore[override]
        self, data: Expr, input_scales: Expr, input_zero_points: Expr, output_scale: Expr, output_zero_point: Expr
    ) -> Expr:
        types = data.checked_type
        assert isinstance(types, TupleType)
        parts = []
        for k, field in enumerate(types.fields):
            assert isinstance(field, TensorType)
            part, scale, zero = [_field(value, k) for value in (data, input_scales, input_zero_points)]
            dtype = str(field.dtype)
            parts.append(requantize(part, scale, zero, output_scale, output_zero_point, out_dtype=dtype))
        result: Expr = make("concatenate", parts, axis=self.axis)
        return result


def _field(value: Expr, index: int) -> Expr:
    fields = getattr(value, "fields", None)
    if fields is not None:
        one: Expr = fields[index]
        return one
    return TupleGetItem(value, index)


class _OneTensor(Composed):
    """A function of real numbers on a quantized tensor."""

    def infer(
        self,
        x: TensorType,
        scale: TensorType,
        zero_point: TensorType,
        output_scale: TensorType,
        output_zero_point: TensorType,
    ) -> Type:
        check_scale(self.op_name, x, -1, scale, zero_point)
        check_scale(self.op_name, x, -1, output_scale, output_zero_point)
        return self._of(x)

    def _of(self, x: TensorType) -> Type:
        return x

    def expand(  # type: ignore[override]
        self, x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
    ) -> Expr:
        real = make("qnn.dequantize", x, scale, zero_point)
        result: Expr = make(
            "qnn.quantize",
            self._function(real),
            output_scale,
            output_zero_point,
            out_dtype=str(tensor_type(x).dtype),
        )
        return result

    def _function(self, x: Expr) -> Expr:
        result: Expr = make(self.op_name.removeprefix("qnn."), x)
        return result


for _name in "tanh exp sqrt rsqrt erf abs sigmoid log".split():
    _held = {"__doc__": f"{_name} of a quantized tensor, by way of float32."}
    register(f"qnn.{_name}", Kind.BROADCAST)(type(_name.title(), (_OneTensor,), _held))


@register("qnn.hardswish", Kind.BROADCAST)
class HardSwish(_OneTensor):
    """x · min(max(x + 3, 0), 6) / 6 of a quantized tensor."""

    def _function(self, x: Expr) -> Expr:
        return x * make("clip", x + const(3.0), a_min=0.0, a_max=6.0) / const(6.0)


@register("qnn.leaky_relu", Kind.BROADCAST)
class LeakyRelu(_OneTensor):
    """x where it is positive, `alpha` · x elsewhere, of a quantized tensor."""

    alpha: float

    def _function(self, x: Expr) -> Expr:
        result: Expr = make("where", make("less", x, const(0.0)), x * const(self.alpha), x)
        return result


@register("qnn.softmax", Kind.OPAQUE)
class Softmax(_OneTensor):
    """softmax along `axis` of a quantized tensor."""

    axis: int = -1

    def _function(self, x: Expr) -> Expr:
        result: Expr = make("nn.softmax", x, axis=self.axis)
        return result


@register("qnn.avg_pool2d", Kind.OUT_FUSABLE)
class AvgPool2d(_OneTensor):
    """The means of windows of a quantized tensor, by way of float32."""

    normal = windows(2)

    pool_size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    ceil_mode: bool = False
    count_include_pad: bool = True
    layout: str = "NCHW"  # the attribute that scripts know
    out_layout: str = ""

    def _of(self, x: TensorType) -> Type:
        real = TensorType(x.shape, "float32")
        result = get("nn.avg_pool2d").attributes(**dict(self.items())).infer(real)
        assert isinstance(result, TensorType)
        return TensorType(result.shape, str(x.dtype))

    def _function(self, x: Expr) -> Expr:
        result: Expr = make("nn.avg_pool2d", x, **dict(self.items()))
        return result


# Functions whose attributes stand between the inputs, or after them by position.


@calls("qnn.leaky_relu")
def leaky_relu(
    x: Expr, alpha: float, input_scale: Expr, input_zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """x where it is positive, `alpha` · x elsewhere."""
    scales = input_scale, input_zero_point, output_scale, output_zero_point
    result: Expr = make("qnn.leaky_relu", x, *scales, alpha=alpha)
    return result


@calls("qnn.softmax")
def softmax(x: Expr, axis: int, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr) -> Expr:
    """softmax along `axis`."""
    result: Expr = make("qnn.softmax", x, scale, zero_point, output_scale, output_zero_point, axis=axis)
    return result


@calls("qnn.avg_pool2d")
def avg_pool2d(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    pool_size: object,
    strides: object,
    padding: object = (0, 0, 0, 0),
    dilation: object = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
    out_layout: str = "",
) -> Expr:
    """The means of windows."""
    result: Expr = make(
        "qnn.avg_pool2d",
        data,
        input_scale,
        input_zero_point,
        output_scale,
        output_zero_point,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return result


@calls("qnn.concatenate")
def concatenate(
    data: Expr | Sequence[Expr],
    input_scales: object,
    input_zero_points: object,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> Expr:
    """Quantized tensors (a list, or a tuple of the graph) joined along `axis`."""
    if isinstance(data, (list, tuple)) and not data:
        raise ValueError("qnn.concatenate: there is nothing to join")
    result: Expr = make(
        "qnn.concatenate", data, input_scales, input_zero_points, output_scale, output_zero_point, axis=axis
    )
    return result
