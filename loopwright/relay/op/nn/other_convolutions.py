"""Convolutions in graphs that are not one window over one layout: transposed, deformable, by winograd; correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.op.from_topi import FromTopi, type_of_compute
from loopwright.relay.op.nn.convolutions import Convolution, each, windows
from loopwright.relay.op.registry import Kind, Operator, register
from loopwright.relay.op.sizes import divide_down
from loopwright.relay.types import Dim, TensorType
from loopwright.topi.nn.conv.transposed import conv_transpose
from loopwright.topi.nn.conv.winograd import TILE
from loopwright.topi.testing.convolution import conv_transpose_python, dilate_python


class TransposedConvolution(Operator):
    """Each input cell adds its window of weights: (in - 1) · stride - padding + window + output_padding results."""

    spatial: ClassVar[str]

    strides: int | Sequence[int]
    padding: int | Sequence[int]
    dilation: int | Sequence[int]
    channels: int | None = None
    kernel_size: int | Sequence[int] | None = None
    groups: int = 1
    data_layout: str
    kernel_layout: str
    out_layout: str = ""
    output_padding: int | Sequence[int]
    out_dtype: str = ""

    check_weight = Convolution.check_weight
    infer_inputs = Convolution.infer_inputs

    def weight_sizes(self, channels: Dim) -> dict[str, Dim]:
        window = dict(zip(self.spatial, each(self.kernel_size, len(self.spatial)), strict=True))
        return {"I": channels, "O": divide_down(self.channels or 0, self.groups), **window}

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        Convolution.check_weight(self, weight)  # type: ignore[arg-type]
        return type_of_compute(self, data, weight)

    def compute(self, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
        plain, count = "NC" + self.spatial, len(self.spatial)
        x = topi.layout_transform(data, self.data_layout, plain) if self.data_layout != plain else data
        w = weight
        if self.kernel_layout != "IO" + self.spatial:
            w = topi.transpose(w, [self.kernel_layout.index(axis) for axis in "IO" + self.spatial])
        out = conv_transpose(
            f"conv{count}d_transpose_{plain.lower()}",
            x,
            w,
            each(self.strides, count),
            self.padding,
            self.out_dtype or None,
            each(self.output_padding, count),
            self.groups,
            self.spatial,
            each(self.dilation, count),
        )
        layout = self.out_layout or self.data_layout
        return topi.layout_transform(out, plain, layout) if layout != plain else out

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        plain, count = "NC" + self.spatial, len(self.spatial)
        dtype = self.out_dtype or data.dtype
        x = data.astype(dtype).transpose([self.data_layout.index(axis) for axis in plain])
        w = weight.astype(dtype).transpose([self.kernel_layout.index(axis) for axis in "IO" + self.spatial])
        w = dilate_python(w, [1, 1, *each(self.dilation, count)])
        window = list(each(self.strides, count)), self.padding, list(each(self.output_padding, count))
        out = conv_transpose_python(x, w, *window, self.groups)
        return out.transpose([plain.index(axis) for axis in self.out_layout or self.data_layout])


@register("nn.conv1d_transpose", Kind.OUT_FUSABLE)
class Conv1dTranspose(TransposedConvolution):
    """The transposed convolution along W."""

    spatial = "W"
    normal = windows(1)
    strides = (1,)
    padding = (0,)
    dilation = (1,)
    data_layout = "NCW"
    kernel_layout = "IOW"
    output_padding = (0,)


@register("nn.conv2d_transpose", Kind.OUT_FUSABLE)
class Conv2dTranspose(TransposedConvolution):
    """The transposed convolution along H and W."""

    spatial = "HW"
    normal = windows(2)
    strides = (1, 1)
    padding = (0, 0)
    dilation = (1, 1)
    data_layout = "NCHW"
    kernel_layout = "IOHW"
    output_padding = (0, 0)


@register("nn.conv3d_transpose", Kind.OUT_FUSABLE)
class Conv3dTranspose(TransposedConvolution):
    """The transposed convolution along D, H and W."""

    spatial = "DHW"
    normal = windows(3)
    strides = (1, 1, 1)
    padding = (0, 0, 0)
    dilation = (1, 1, 1)
    data_layout = "NCDHW"
    kernel_layout = "IODHW"
    output_padding = (0, 0, 0)


@register("nn.deformable_conv2d", Kind.OUT_FUSABLE)
class DeformableConv2d(FromTopi):
    """A convolution whose taps are moved by offsets: (N, deformable_groups · rows · columns · 2, H, W)."""

    normal = windows(2)

    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    dilation: int | Sequence[int] = (1, 1)
    deformable_groups: int = 1
    groups: int = 1
    channels: int | None = None
    kernel_size: int | Sequence[int] | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str = ""

    def infer(self, data: TensorType, offset: TensorType, weight: TensorType) -> Type:
        if (self.data_layout, self.kernel_layout) not in (("NCHW", "OIHW"), ("NHWC", "HWIO")):
            raise TypeMismatch(
                f"nn.deformable_conv2d: layouts {self.data_layout} and {self.kernel_layout} are not known",
                hint="they are NCHW and OIHW, or NHWC and HWIO",
            )
        return self.type_of_compute(data, offset, weight)

    @property
    def _name(self) -> str:
        return f"nn.deformable_conv2d_{self.data_layout.lower()}"

    def arguments(self, *inputs: object) -> list[object]:
        window = self.strides, self.padding, self.dilation, self.deformable_groups, self.groups
        return [*inputs, *window, self.out_dtype or None]


@register("nn.correlation", Kind.OUT_FUSABLE)
class Correlation(FromTopi):
    """How well patches of one picture fit displaced patches of another."""

    topi_name = "nn.correlation_nchw"

    kernel_size: int
    max_displacement: int
    stride1: int
    stride2: int
    padding: int | Sequence[int]
    is_multiply: bool = True
    layout: str = "NCHW"

    def infer(self, data1: TensorType, data2: TensorType) -> Type:
        if self.layout != "NCHW":
            raise TypeMismatch(f"nn.correlation: the layout is {self.layout}, and there is NCHW alone")
        return self.type_of_compute(data1, data2)

    def arguments(self, *inputs: object) -> list[object]:
        return [*inputs, *self.values()[:-1]]


@register("nn.contrib_conv2d_winograd_weight_transform", Kind.OUT_FUSABLE)
class Conv2dWinogradWeightTransform(FromTopi):
    """A weight in OIHW made ready for winograd: (size, size, O, I)."""

    topi_name = "nn.conv2d_winograd_weight_transform"

    tile_size: int

    def infer(self, weight: TensorType) -> Type:
        return self.type_of_compute(weight)


@register("nn.contrib_conv3d_winograd_weight_transform", Kind.OUT_FUSABLE)
class Conv3dWinogradWeightTransform(Conv2dWinogradWeightTransform):
    """A weight in OIDHW made ready for winograd."""

    topi_name = "nn.conv3d_winograd_weight_transform"

    def infer(self, weight: TensorType) -> Type:
        return self.type_of_compute(weight)


@register("nn.contrib_conv2d_gemm_weight_transform", Kind.OUT_FUSABLE)
class Conv2dGemmWeightTransform(FromTopi):
    """A weight in HWIO as tiles of a matrix."""

    topi_name = "nn.conv2d_gemm_weight_transform"

    tile_N: int
    tile_K: int

    def infer(self, weight: TensorType) -> Type:
        return self.type_of_compute(weight)


@register("nn.contrib_conv2d_winograd_without_weight_transform", Kind.OUT_FUSABLE)
class Conv2dWinograd(FromTopi):
    """The convolution of stride 1 by a weight that was made ready for winograd."""

    normal = windows(2)

    tile_size: int
    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    dilation: int | Sequence[int] = (1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: int | Sequence[int] | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str = ""

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        if self.tile_size != TILE or self.groups != 1:
            raise TypeMismatch(
                f"{self.op_name}: tile_size is {self.tile_size} and groups {self.groups}",
                hint=f"tiles are {TILE} × {TILE}, and there is one group",
            )
        return self.type_of_compute(data, weight)

    @property
    def _name(self) -> str:
        return f"nn.conv2d_winograd_{self.data_layout.lower()}_without_weight_transform"

    def arguments(self, *inputs: object) -> list[object]:
        return [*inputs, self.strides, self.padding, self.dilation, self.out_dtype or None]
