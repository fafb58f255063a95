"""Convolutions in graphs, of one to three dimensions, and the gradient of one by its weight.

Layouts order the letters N, C, D, H, W and O, I, D, H, W. Where there are as many groups as input channels and as first
indices of the weight, the convolution is depthwise: a weight (channels, multiplier, …) has several windows a channel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.from_topi import FromTopi, type_of_compute
from loopwright.relay.op.registry import Kind, Operator, get, make, register
from loopwright.relay.op.sizes import divide_down, equal_dim, tensor_type_of, times
from loopwright.relay.types import Dim, TensorType, same_dim
from loopwright.topi.registry import OPERATORS
from loopwright.topi.testing.convolution import conv_python

Shaped = te.Tensor | TensorType | np.ndarray  # what has a shape


class Convolution(Operator):
    """The convolution of data by a weight, in groups."""

    spatial: ClassVar[str]

    strides: int | Sequence[int]
    padding: int | Sequence[int]
    dilation: int | Sequence[int]
    groups: int = 1
    channels: int | None = None
    kernel_size: int | Sequence[int] | None = None
    data_layout: str
    kernel_layout: str
    out_layout: str = ""
    out_dtype: str = ""

    def infer_inputs(self, data: TensorType | None, weight: TensorType | None) -> list[Type | None]:
        if data is not None and weight is None and self.channels is not None and self.kernel_size is not None:
            sizes = self.weight_sizes(_channels(self.data_layout, data))
            weight = TensorType(_in_blocks(sizes, self.kernel_layout), str(data.dtype))
        return [data, weight]

    def _plain(self) -> Convolution | None:
        """The same convolution without blocks; None where it has none."""
        layouts = _upper(self.data_layout), _upper(self.kernel_layout)
        if layouts == (self.data_layout, self.kernel_layout):
            return None
        result = self.with_(data_layout=layouts[0], kernel_layout=layouts[1], out_layout="")
        assert isinstance(result, Convolution)
        return result

    def weight_sizes(self, channels: Dim) -> dict[str, Dim]:
        """The sizes of a weight that only the attributes know."""
        window = dict(zip(self.spatial, each(self.kernel_size, len(self.spatial)), strict=True))
        if self.groups != 1 and same_dim(channels, self.groups):
            return {"O": channels, "I": divide_down(self.channels or 0, self.groups), **window}
        return {"O": self.channels or 0, "I": divide_down(channels, self.groups), **window}

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        self.check_weight(weight)
        return type_of_compute(self, data, weight)

    def check_weight(self, weight: TensorType) -> None:
        """The attributes say again what the weight says: refuse those that say something else."""
        if len(weight.shape) != len(self.kernel_layout) or self.kernel_size is None or not self.kernel_layout.isalpha():
            return
        sizes = dict(zip(self.kernel_layout, weight.shape, strict=True))
        for axis, size in zip(self.spatial, each(self.kernel_size, len(self.spatial)), strict=True):
            if not equal_dim(sizes[axis], size):
                has = f"the weight {weight} has {sizes[axis]} along {axis}"
                raise TypeMismatch(
                    f"{self.op_name}: kernel_size is {self.kernel_size}, and {has}",
                    hint="leave kernel_size out, or give that of the weight",
                )

    def is_depthwise(self, data: Shaped, weight: Shaped) -> bool:
        if self.groups == 1:
            return False
        channels = data.shape[self.data_layout.index("C")]
        features = weight.shape[self.kernel_layout.index("O")]
        return _number(channels) == self.groups == _number(features)

    def compute(self, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
        plain = self._plain()
        if plain is not None:
            out = plain.compute(
                topi.layout_transform(data, self.data_layout, plain.data_layout),
                topi.layout_transform(weight, self.kernel_layout, plain.kernel_layout),
            )
            return topi.layout_transform(out, plain.data_layout, self.out_layout or self.data_layout)
        window = self.strides, self.padding, self.dilation
        layouts = self.data_layout, self.kernel_layout
        out_layout = self.out_layout or self.data_layout
        if sorted(out_layout) != sorted(self.data_layout):  # in blocks
            out = topi.nn.conv(data, weight, *window, self.groups, *layouts, self.out_dtype or None)
            return topi.layout_transform(out, self.data_layout, out_layout)
        return topi.nn.conv(data, weight, *window, self.groups, *layouts, self.out_dtype or None, out_layout=out_layout)

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        plain = self._plain()
        if plain is not None:
            moved = _moved(weight, self.kernel_layout, plain.kernel_layout)
            out = plain.reference(_moved(data, self.data_layout, plain.data_layout), moved)
            return _moved(out, plain.data_layout, self.out_layout or self.data_layout)
        dtype = self.out_dtype or data.dtype
        x, w = data.astype(dtype), weight.astype(dtype)
        layout = self.kernel_layout
        if self.is_depthwise(data, weight) and w.shape[layout.index("I")] != 1:
            # (channels, multiplier) → as many outputs of one input channel each
            order = [layout.index(axis) for axis in "OI" + self.spatial]
            w = w.transpose(order)
            w, layout = w.reshape(w.shape[0] * w.shape[1], 1, *w.shape[2:]), "OI" + self.spatial
        out = conv_python(x, w, self.strides, self.padding, self.dilation, self.groups, self.data_layout, layout)
        if self.out_layout and self.out_layout != self.data_layout:
            out = out.transpose([self.data_layout.index(axis) for axis in self.out_layout])
        return out


def _axes(layout: str) -> list[tuple[int, str]]:
    """The axes of a layout, each with the size of its block: `NC4c` has (1, N), (1, C), (4, c)."""
    return [(int(size or 1), axis) for size, axis in re.findall(r"(\d*)([A-Za-z])", layout)]


def _channels(layout: str, data: TensorType) -> Dim:
    """How many channels the data has, in blocks or not."""
    result: Dim = 1
    for (_, axis), size in zip(_axes(layout), data.shape, strict=True):
        result = times(result, size) if axis in "Cc" else result
    return result


def _upper(layout: str) -> str:
    """A layout without blocks."""
    return "".join(axis for axis in layout if axis.isupper())


def _in_blocks(sizes: dict[str, Dim], layout: str) -> list[Dim]:
    """The shape of a tensor of these sizes in a layout that may have blocks."""
    blocks: dict[str, int] = {}
    for size, axis in _axes(layout):
        if axis.islower():
            blocks[axis.upper()] = blocks.get(axis.upper(), 1) * size
    return [
        size if axis.islower() else divide_down(sizes[axis], blocks.get(axis, 1)) for size, axis in _axes(layout)
    ]


def _moved(array: np.ndarray, source: str, layout: str) -> np.ndarray:
    attrs = get("layout_transform").attributes(src_layout=source, dst_layout=layout)
    result: np.ndarray = attrs.reference(array)
    return result


def each(given: int | Sequence[int] | None, count: int) -> list[Any]:
    """One number a dimension."""
    values = list(given) if isinstance(given, Sequence) else [given]
    return values * count if len(values) == 1 else values


def windows(count: int) -> dict[str, Callable[[Any], Any]]:
    """The one form of the attributes of a window of `count` dimensions: a number each, and padding on both sides.

    What has a length that fits neither stays as it is, for `infer` to refuse it.
    """

    def numbers(given: Any) -> Any:
        return given if given is None or isinstance(given, str) else tuple(each(given, count))

    def sides(given: Any) -> Any:
        if isinstance(given, str):  # "SAME"
            return given
        values = tuple(each(given, count))
        return values * 2 if len(values) == count else values

    same = dict.fromkeys(("strides", "dilation", "dilations", "kernel_size", "pool_size", "output_padding"), numbers)
    return {**same, "padding": sides}


def _number(size: Any) -> int | None:
    return int(size) if isinstance(size, int) or hasattr(size, "value") else None


@register("nn.conv1d", Kind.OUT_FUSABLE)
class Conv1d(Convolution):
    """The convolution along W."""

    spatial = "W"
    normal = windows(1)
    strides = (1,)
    padding = (0,)
    dilation = (1,)
    data_layout = "NCW"
    kernel_layout = "OIW"


@register("nn.conv2d", Kind.OUT_FUSABLE)
class Conv2d(Convolution):
    """The convolution along H and W."""

    spatial = "HW"
    normal = windows(2)
    strides = (1, 1)
    padding = (0, 0)
    dilation = (1, 1)
    data_layout = "NCHW"
    kernel_layout = "OIHW"

    def compute(self, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
        if self._plain() is not None:
            return super().compute(data, weight)
        window = self.strides, self.padding, self.dilation
        if self.is_depthwise(data, weight) and self.out_layout in ("", self.data_layout):
            if (self.data_layout, self.kernel_layout) == ("NCHW", "OIHW"):
                return topi.nn.depthwise_conv2d_nchw(data, weight, *window, self.out_dtype or None)
            if self.data_layout == "NHWC" and self.kernel_layout in ("HWOI", "HWIO"):
                return topi.nn.depthwise_conv2d_nhwc(data, weight, *window, self.kernel_layout, self.out_dtype or None)
        return super().compute(data, weight)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        if (self.data_layout, self.kernel_layout, self.out_layout or "NCHW") != ("NCHW", "OIHW", "NCHW"):
            raise TypeMismatch("nn.conv2d: gradients are there for data in NCHW and weights in OIHW alone")
        data, weight = call.args
        sizes: Sequence[Any] = tensor_type_of(data).shape[2:]
        window: Sequence[Any] = tensor_type_of(weight).shape[2:]
        steps, spread = each(self.strides, 2), each(self.dilation, 2)
        reach = [(taps - 1) * step + 1 for taps, step in zip(window, spread, strict=True)]
        pads = topi.nn.get_pad_tuple(self.padding, reach)
        out: Sequence[Any] = tensor_type_of(call).shape[2:]
        # What the last windows did not reach: the transposed convolution must be told, as it cannot know.
        extra = []
        for axis in range(2):
            covered = (out[axis] - 1) * steps[axis] - pads[axis] - pads[axis + 2] + reach[axis]
            extra.append(sizes[axis] - covered)
        by_data = make(
            "nn.conv2d_transpose",
            grad,
            weight,
            strides=self.strides,
            padding=pads,
            dilation=self.dilation,
            groups=self.groups,
            output_padding=tuple(extra),
        )
        by_weight = make(
            "nn.conv2d_backward_weight",
            grad,
            data,
            strides=self.strides,
            padding=pads,
            dilation=self.dilation,
            groups=self.groups,
            kernel_size=tuple(window),
        )
        return [by_data, by_weight]


@register("nn.conv3d", Kind.OUT_FUSABLE)
class Conv3d(Convolution):
    """The convolution along D, H and W."""

    spatial = "DHW"
    normal = windows(3)
    strides = (1, 1, 1)
    padding = (0, 0, 0)
    dilation = (1, 1, 1)
    data_layout = "NCDHW"
    kernel_layout = "OIDHW"


@register("nn.conv2d_backward_weight", Kind.OUT_FUSABLE)
class Conv2dBackwardWeight(FromTopi):
    """The gradient of nn.conv2d by its weight, from that of its result and its data, both in NCHW."""

    topi_name = "nn.conv2d_backward_weight_nchw"
    normal = windows(2)

    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    dilation: int | Sequence[int] = (1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: int | Sequence[int] | None = None
    grad_layout: str = "NCHW"
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_dtype: str = ""

    def infer(self, grad: TensorType, data: TensorType) -> Type:
        if self.kernel_size is None:
            raise TypeMismatch("nn.conv2d_backward_weight: kernel_size is not given, and nothing else says it")
        if (self.grad_layout, self.data_layout, self.kernel_layout) != ("NCHW", "NCHW", "OIHW"):
            raise TypeMismatch("nn.conv2d_backward_weight: data is in NCHW and the weight in OIHW")
        return self.type_of_compute(grad, data)

    def arguments(self, grad: object, data: object) -> list[object]:
        window = self.strides, self.padding, self.dilation
        return [grad, data, tuple(each(self.kernel_size, 2)), *window, self.groups, self.out_dtype or None]


class _Blocked(FromTopi):
    """A convolution of blocked data (NCHW16c) by a blocked weight (OIHW16i16o)."""

    normal = windows(2)

    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    dilation: int | Sequence[int] = (1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: int | Sequence[int] | None = None
    data_layout: str = "NCHW8c"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str = ""

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        return self.type_of_compute(data, weight)

    def arguments(self, data: object, weight: object) -> list[Any]:
        window = self.strides, self.padding, self.dilation
        return [data, weight, *window, self.data_layout, self.out_layout or self.data_layout, self.out_dtype or None]


@register("nn.contrib_conv2d_nchwc", Kind.OUT_FUSABLE)
class Conv2dBlocked(_Blocked):
    """The convolution of blocked data; a weight of 7 dimensions has its input channels in parts, for int8."""

    topi_name = "nn.conv2d_NCHWc"

    def compute(self, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
        if weight.ndim == 7:
            elems = _number(weight.shape[-1]) or 4
            return topi.nn.conv2d_NCHWc_int8(*self.arguments(data, weight), n_elems=elems)  # type: ignore[misc]
        return super().compute(data, weight)


@register("nn.contrib_depthwise_conv2d_nchwc", Kind.OUT_FUSABLE)
class DepthwiseConv2dBlocked(_Blocked):
    """The depthwise convolution of blocked data."""

    topi_name = "nn.depthwise_conv2d_NCHWc"

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return OPERATORS[self.topi_name].reference(data, weight, self.strides, self.padding, self.dilation)
