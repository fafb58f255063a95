"""Sums of products of quantized tensors: convolutions, dense layers, batches of matrix products.

    Σ (d - a) · (k - b)  =  Σ d·k  -  a · Σ k          where the zero point b of the weights is 0

so that the sum runs over the stored integers, and the rest is a number an output channel, known with the weights. The
border of a convolution is filled with the zero point of the data, which stands for 0. Where the weights have a zero
point, the differences are formed first. Results are int32 of the scale (scale of data) · (scale of weights).
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Constant, Expr, const
from loopwright.relay.op.composed import Composed
from loopwright.relay.op.nn.convolutions import windows
from loopwright.relay.op.qnn.scales import along, cast, check_scale, is_zero, rank_of, tensor_type
from loopwright.relay.op.registry import FUNCTIONS, Kind, get, make, register
from loopwright.relay.types import TensorType


def _integers(op: str, *tensors: TensorType) -> None:
    for one in tensors:
        if not one.dtype.is_int:
            raise TypeMismatch(f"{op} takes integers, and not {one}")


def _summed(weight: Expr, axes: tuple[int, ...]) -> Expr:
    """Sums of weights as int32. Those of a constant are one: FoldConstant would first need all of it as int32."""
    if isinstance(weight, Constant):
        return const(weight.data.sum(axes, dtype="int32"), "int32")
    result: Expr = make("sum", cast(weight, "int32"), axis=axes)
    return result


class _Convolution(Composed):
    normal = windows(2)

    kernel_size: int | Sequence[int] | None = None
    channels: object = None
    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    dilation: int | Sequence[int] = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str = "int32"

    def infer(
        self,
        data: TensorType,
        kernel: TensorType,
        input_zero_point: TensorType,
        kernel_zero_point: TensorType,
        input_scale: TensorType,
        kernel_scale: TensorType,
    ) -> Type:
        _integers(self.op_name, data, kernel)
        check_scale(self.op_name, data, self.data_layout.index("C"), input_scale, input_zero_point)
        if len(kernel_zero_point.shape) > 1 or len(kernel_scale.shape) > 1:
            raise TypeMismatch(
                f"{self.op_name}: give one scale and zero point for the weights, or one an output channel"
            )
        plain = self._plain()
        wide = [TensorType(one.shape, "int32") for one in (data, kernel)]
        result = get(plain).attributes(**self._attributes()).infer(*wide)
        assert isinstance(result, TensorType)
        return TensorType(result.shape, self.out_dtype)

    def _plain(self) -> str:
        return self.op_name.replace("qnn.", "nn.")

    def _attributes(self, **changes: object) -> dict[str, object]:
        return {**dict(self.items()), **changes}

    def _differences(self, data: Expr, weight: Expr, input_zero_point: Expr, kernel_zero_point: Expr) -> Expr:
        """The convolution of the differences from the zero points."""
        channel, out_channel = self.data_layout.index("C"), self.kernel_layout.index("O")
        away = cast(data, "int32") - along(input_zero_point, channel, rank_of(data))
        weights = cast(weight, "int32") - along(kernel_zero_point, out_channel, rank_of(weight))
        result: Expr = make(self._plain(), away, weights, **self._attributes())
        return result


@register("qnn.conv2d", Kind.OUT_FUSABLE)
class Conv2d(_Convolution):
    """The convolution of a quantized tensor with quantized weights, as int32."""

    def expand(  # type: ignore[override]
        self,
        data: Expr,
        kernel: Expr,
        input_zero_point: Expr,
        kernel_zero_point: Expr,
        input_scale: Expr,
        kernel_scale: Expr,
    ) -> Expr:
        if is_zero(kernel_zero_point) and is_zero(input_zero_point):
            result: Expr = make("nn.conv2d", data, kernel, **self._attributes())
            return result
        plain_layouts = self.data_layout in ("NCHW", "NHWC") and sorted(self.kernel_layout) == sorted("OIHW")
        if not is_zero(kernel_zero_point) or not plain_layouts or tensor_type(input_zero_point).shape:
            return self._differences(data, kernel, input_zero_point, kernel_zero_point)
        padded = self._padded(data, input_zero_point)
        core = make("nn.conv2d", padded, kernel, **self._attributes(padding=(0, 0, 0, 0)))
        return core - input_zero_point * self._sums_of_weights(kernel)

    def _padded(self, data: Expr, zero_point: Expr) -> Expr:
        """The data with its zero point around it."""
        top, left, bottom, right = self.padding  # type: ignore[misc]
        if not any((top, left, bottom, right)):
            return data
        sides = {"H": (top, bottom), "W": (left, right)}
        widths = tuple(sides.get(letter, (0, 0)) for letter in self.data_layout)
        dtype = str(tensor_type(data).dtype)
        result: Expr = FUNCTIONS["nn.pad"](data, widths, make("cast", zero_point, dtype=dtype))
        return result

    def _sums_of_weights(self, weight: Expr) -> Expr:
        """The sum of the weights of each output channel, along the channels of the result."""
        shape = tensor_type(weight).shape
        outputs, inputs = [self.kernel_layout.index(letter) for letter in "OI"]
        is_depthwise = self.groups != 1 and shape[outputs] == self.groups
        summed = [axis for axis in range(4) if axis != outputs and not (is_depthwise and axis == inputs)]
        total = _summed(weight, tuple(summed))
        if is_depthwise and outputs > inputs:
            total = make("transpose", total, axes=(1, 0))
        layout = self.out_layout or self.data_layout
        result: Expr = make("reshape", total, newshape=(-1, 1, 1) if layout == "NCHW" else (-1,))
        return result


@register("qnn.conv2d_transpose", Kind.OUT_FUSABLE)
class Conv2dTranspose(_Convolution):
    """The transposed convolution of a quantized tensor with quantized weights, as int32."""

    kernel_layout: str = "IOHW"
    output_padding: int | Sequence[int] = (0, 0)

    def infer(
        self,
        data: TensorType,
        weight: TensorType,
        input_zero_point: TensorType,
        kernel_zero_point: TensorType,
        input_scale: TensorType,
        kernel_scale: TensorType,
    ) -> Type:
        return super().infer(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale)

    def expand(  # type: ignore[override]
        self,
        data: Expr,
        weight: Expr,
        input_zero_point: Expr,
        kernel_zero_point: Expr,
        input_scale: Expr,
        kernel_scale: Expr,
    ) -> Expr:
        return self._differences(data, weight, input_zero_point, kernel_zero_point)


@register("qnn.dense", Kind.OUT_FUSABLE)
class Dense(Composed):
    """data · weightᵀ of a quantized tensor and quantized weights (units, inputs), as int32."""

    units: object = None
    out_dtype: str = "int32"

    def infer(
        self,
        data: TensorType,
        weight: TensorType,
        input_zero_point: TensorType,
        kernel_zero_point: TensorType,
        input_scale: TensorType,
        kernel_scale: TensorType,
    ) -> Type:
        _integers("qnn.dense", data, weight)
        check_scale("qnn.dense", data, -1, input_scale, input_zero_point)
        check_scale("qnn.dense", weight, 0, kernel_scale, kernel_zero_point)
        wide = [TensorType(one.shape, "int32") for one in (data, weight)]
        result = get("nn.dense").attributes(units=self.units, out_dtype=self.out_dtype).infer(*wide)
        assert isinstance(result, TensorType)
        return TensorType(result.shape, self.out_dtype)

    def expand(  # type: ignore[override]
        self,
        data: Expr,
        weight: Expr,
        input_zero_point: Expr,
        kernel_zero_point: Expr,
        input_scale: Expr,
        kernel_scale: Expr,
    ) -> Expr:
        given = {"units": self.units, "out_dtype": self.out_dtype}
        if is_zero(kernel_zero_point) and not tensor_type(input_zero_point).shape:
            core: Expr = make("nn.dense", data, weight, **given)
            if is_zero(input_zero_point):
                return core
            return core - input_zero_point * _summed(weight, (1,))
        away = cast(data, "int32") - input_zero_point
        weights = cast(weight, "int32") - along(kernel_zero_point, 0, 2)
        result: Expr = make("nn.dense", away, weights, **given)
        return result


@register("qnn.batch_matmul", Kind.OUT_FUSABLE)
class BatchMatmul(Composed):
    """x · yᵀ for each of a batch of quantized matrices, as int32."""

    out_dtype: str = "int32"

    def infer(
        self,
        x: TensorType,
        y: TensorType,
        x_zero_point: TensorType,
        y_zero_point: TensorType,
        x_scale: TensorType,
        y_scale: TensorType,
    ) -> Type:
        _integers("qnn.batch_matmul", x, y)
        wide = [TensorType(one.shape, "int32") for one in (x, y)]
        result = get("nn.batch_matmul").attributes(out_dtype=self.out_dtype).infer(*wide)
        assert isinstance(result, TensorType)
        return TensorType(result.shape, self.out_dtype)

    def expand(  # type: ignore[override]
        self, x: Expr, y: Expr, x_zero_point: Expr, y_zero_point: Expr, x_scale: Expr, y_scale: Expr
    ) -> Expr:
        if not (is_zero(x_zero_point) and is_zero(y_zero_point)):
            x, y = cast(x, "int32") - x_zero_point, cast(y, "int32") - y_zero_point
        result: Expr = make("nn.batch_matmul", x, y, out_dtype=self.out_dtype)
        return result
