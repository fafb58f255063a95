"""Convolutions of any number of dimensions, in any order of the axes; grouped or not.

    out[n, f, y, x] = Σ over c, i, j of data[n, c, y·stride + i·dilation, x·stride + j·dilation] · weight[f, c, i, j]

`conv` is the general one, the others are its names for particular layouts. A zero padding adds no stage; any other is
the stage `pad_temp`. With groups, the channels are so many convolutions side by side, and the weight's input channels
are those of one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi.errors import BadWindow, InvalidShapeError, UnsupportedLayout
from loopwright.topi.nn.conv.convolution_samples import convolution, products_sample
from loopwright.topi.nn.conv.window import window_over
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.sizes import check_rank, check_same, known, multiple_of, simplify, tap_index
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.testing.convolution import conv_python
from loopwright.topi.types import Dims, DType, IntPadding, Ints, Padding

_SPATIAL: Final = ("DHW", "HW", "W")
# The names of a stage's axes: batch, feature, depth, row, column; and those of the window.
_AXES: Final = {"N": "nn", "C": "ff", "D": "zz", "H": "yy", "W": "xx"}
_WINDOW: Final = {"D": "rz", "H": "ry", "W": "rx"}


def _conv(
    x: np.ndarray,
    w: np.ndarray,
    stride: Ints,
    padding: IntPadding,
    dilation: Ints,
    groups: int,
    layout: str,
    kernel_layout: str = "",
) -> np.ndarray:
    return conv_python(x, w, stride, padding, dilation, groups, layout, kernel_layout)


def _conv_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((5, 2, 4, 6)), whole_numbers((3, 3, 6, 4)), 1, 1, 1, 1, "HNWC"))
    yield Sample((whole_numbers((1, 4, 7)), whole_numbers((6, 2, 3)), 2, 1, 1, 2, "NCW"))
    yield Sample((whole_numbers((1, 4, 3, 5, 2)), whole_numbers((3, 2, 2, 2, 2)), 1, 0, (1, 2, 1), 1, "NDHWC", "OIDHW"))
    yield products_sample(_conv, real_numbers((1, 5, 4, 4)), real_numbers((3, 5, 3, 3)), 45, 1, 1, 1, 1, "NCHW")


@operator(reference=_conv, samples=_conv_samples, name="nn.conv")
def conv(
    inp: te.Tensor,
    filt: te.Tensor,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    groups: int,
    data_layout: str,
    kernel_layout: str = "",
    out_dtype: DType | None = None,
    out_layout: str = "",
) -> te.Tensor:
    """The convolution of `inp` by `filt`; `data_layout` orders N, C and D, H, W, for the result too unless
    `out_layout` orders them otherwise there.

    `kernel_layout` orders O, I and D, H, W; by default O and I lead where C stands before the spatial axes, and follow
    otherwise.
    """
    spatial = _spatial_of("conv", data_layout)
    op = f"{'group_' if groups != 1 else ''}conv{len(spatial)}d_{data_layout.lower()}"
    if not kernel_layout:
        channels_first = data_layout.index("C") < data_layout.index(spatial[0])
        kernel_layout = "OI" + spatial if channels_first else spatial + "IO"
    if sorted(kernel_layout) != sorted("OI" + spatial):
        raise UnsupportedLayout(op, kernel_layout, f"order the letters O, I, {', '.join(spatial)}")
    check_rank(op, "data", inp, data_layout, len(data_layout))
    check_rank(op, "weight", filt, kernel_layout, len(kernel_layout))
    sizes = dict(zip(data_layout, inp.shape, strict=True))
    kernel = dict(zip(kernel_layout, filt.shape, strict=True))
    per_group = _check_groups(op, groups, sizes["C"], kernel)

    over = [sizes[axis] for axis in spatial], [kernel[axis] for axis in spatial]
    window = window_over(op, *over, stride, padding, dilation)
    strides, dilations = (dict(zip(spatial, numbers, strict=True)) for numbers in (window.strides, window.dilations))
    low, high = (dict(zip(spatial, cells, strict=True)) for cells in (window.before, window.after))
    locations = dict(zip(spatial, window.places, strict=True))
    out_layout = out_layout or data_layout
    if sorted(out_layout) != sorted(data_layout):
        raise UnsupportedLayout(op, out_layout, f"order the letters {', '.join(data_layout)}")
    shape = [{"N": sizes["N"], "C": kernel["O"], **locations}[axis] for axis in out_layout]
    padded = pad_unless_zero(inp, [low.get(a, 0) for a in data_layout], [high.get(a, 0) for a in data_layout])

    dtype = out_dtype or inp.dtype
    channel = te.reduce_axis((0, sizes["C"] if groups == 1 else kernel["I"]), name="rc")
    taps = {axis: te.reduce_axis((0, kernel[axis]), name=_WINDOW[axis]) for axis in spatial}

    def element(*indices: Expr) -> Expr:
        at = dict(zip(out_layout, indices, strict=True))
        read: dict[str, Expr] = {
            axis: tap_index(at[axis], strides[axis], taps[axis], dilations[axis]) for axis in spatial
        }
        read["N"] = at["N"]
        read["C"] = channel.var if groups == 1 else at["C"] // per_group * kernel["I"] + channel.var
        weight: dict[str, Expr] = {"O": at["C"], "I": channel.var, **{axis: taps[axis].var for axis in spatial}}
        x = padded(*[read[axis] for axis in data_layout]).astype(dtype)
        w = filt(*[weight[axis] for axis in kernel_layout]).astype(dtype)
        # Stages run in the order in which they are named: a weight that is computed comes before the padding, so that
        # this stands next to the convolution that it is done for, piece by piece.
        value = w * x if isinstance(filt.op, te.ComputeOp) else x * w
        total: Expr = te.sum(value, axis=[channel, *taps.values()])
        return total

    out: te.Tensor = te.compute(
        shape, element, name=op, tag=default_tag(op), varargs_names=[_AXES[axis] for axis in out_layout]
    )
    return out


def _spatial_of(op: str, layout: object) -> str:
    """The spatial letters of a layout of N, C and one to three of them."""
    if isinstance(layout, str):
        for spatial in _SPATIAL:
            if sorted(layout) == sorted("NC" + spatial) and [a for a in layout if a in spatial] == list(spatial):
                return spatial
    raise UnsupportedLayout(op, layout, 'layouts of data look like "NCHW", "NHWC", "HWCN", "NCW" or "NDHWC"')


def _check_groups(op: str, groups: object, channels: Expr, kernel: dict[str, Expr]) -> Expr:
    """How many output channels a group has; refuses channels that do not fit."""
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise BadWindow(op, f"groups is {groups!r}", "there is at least 1 group", groups=groups)
    for what, size in (("input", channels), ("output", kernel["O"])):
        if not multiple_of(size, groups):
            raise InvalidShapeError(
                op, f"{known(size)} {what} channels are not divisible into {groups} groups", None, groups=groups
            )
    hint = f"the weight has the input channels of one of the {groups} groups" if groups != 1 else None
    check_same(op, "input channels differ", ("the data", channels), ("the weight", kernel["I"] * groups), hint)
    return simplify(kernel["O"] // groups)


def _conv2d(
    x: np.ndarray,
    w: np.ndarray,
    strides: Ints,
    padding: IntPadding,
    dilation: Ints,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
) -> np.ndarray:
    return conv_python(x, w, strides, padding, dilation, 1, data_layout, kernel_layout)


def _conv2d_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((1, 3, 5, 5)), whole_numbers((4, 3, 3, 3)), 1, 1, 1))
    yield Sample((whole_numbers((1, 5, 5, 3)), whole_numbers((4, 3, 3, 3)), 2, "SAME", 1, "NHWC", "OIHW"))
    yield Sample((whole_numbers((5, 6, 3, 2), "int32"), whole_numbers((3, 3, 3, 4), "int32"), 1, 0, 2, "HWCN"))


@operator(reference=_conv2d, samples=_conv2d_samples, name="nn.conv2d")
def conv2d(
    input: te.Tensor,
    filter: te.Tensor,
    strides: Dims,
    padding: Padding,
    dilation: Dims,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: DType | None = None,
) -> te.Tensor:
    """The convolution of two spatial dimensions, whichever the layout."""
    _check_layout("conv2d", data_layout, "HW")
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def _conv1d(
    x: np.ndarray,
    w: np.ndarray,
    strides: Ints = 1,
    padding: IntPadding = "VALID",
    dilation: Ints = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
) -> np.ndarray:
    return conv_python(x, w, strides, padding, dilation, groups, data_layout, kernel_layout)


def _conv1d_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 3, 7)), whole_numbers((4, 3, 3))))
    yield Sample((whole_numbers((2, 7, 4)), whole_numbers((3, 2, 6)), 2, 1, 1, 2, "NWC"))
    yield Sample((whole_numbers((1, 2, 5), "float64"), whole_numbers((1, 2, 2), "float64"), 1, "SAME", 3))


@operator(reference=_conv1d, samples=_conv1d_samples, name="nn.conv1d")
def conv1d(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Dims = 1,
    padding: Padding = "VALID",
    dilation: Dims = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: DType | None = None,
) -> te.Tensor:
    """The convolution of one spatial dimension, whichever the layout."""
    _check_layout("conv1d", data_layout, "W")
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def _check_layout(op: str, layout: object, spatial: str) -> None:
    if _spatial_of(op, layout) != spatial:
        raise UnsupportedLayout(op, layout, f"order the letters N, C, {', '.join(spatial)}")


def _named_1d(layout: str) -> Callable[..., te.Tensor]:
    def named(
        data: te.Tensor,
        kernel: te.Tensor,
        strides: Dims = 1,
        padding: Padding = "VALID",
        dilation: Dims = 1,
        out_dtype: DType | None = None,
    ) -> te.Tensor:
        return conv(data, kernel, strides, padding, dilation, 1, layout, "", out_dtype)

    return _called(named, f"conv1d_{layout.lower()}", layout, "OIW" if layout == "NCW" else "WIO")


def _named_grouped_1d(layout: str) -> Callable[..., te.Tensor]:
    def named(
        data: te.Tensor,
        kernel: te.Tensor,
        strides: Dims = 1,
        padding: Padding = "VALID",
        dilation: Dims = 1,
        groups: int = 1,
        out_dtype: DType | None = None,
    ) -> te.Tensor:
        return conv(data, kernel, strides, padding, dilation, groups, layout, "", out_dtype)

    return _called(named, f"group_conv1d_{layout.lower()}", layout, "OIW" if layout == "NCW" else "WIO")


def _named_2d(layout: str, kernel_layout: str) -> Callable[..., te.Tensor]:
    def named(
        Input: te.Tensor,
        Filter: te.Tensor,
        stride: Dims,
        padding: Padding,
        dilation: Dims,
        out_dtype: DType | None = None,
    ) -> te.Tensor:
        return conv(Input, Filter, stride, padding, dilation, 1, layout, kernel_layout, out_dtype)

    return _called(named, f"conv2d_{layout.lower()}", layout, kernel_layout)


def _named_grouped_2d(layout: str, kernel_layout: str) -> Callable[..., te.Tensor]:
    def named(
        Input: te.Tensor,
        Filter: te.Tensor,
        stride: Dims,
        padding: Padding,
        dilation: Dims,
        groups: int,
        out_dtype: DType | None = None,
    ) -> te.Tensor:
        return conv(Input, Filter, stride, padding, dilation, groups, layout, kernel_layout, out_dtype)

    return _called(named, f"group_conv2d_{layout.lower()}", layout, kernel_layout)


def _named_3d(layout: str, kernel_layout: str) -> Callable[..., te.Tensor]:
    def named(
        Input: te.Tensor,
        Filter: te.Tensor,
        stride: Dims,
        padding: Padding,
        dilation: Dims,
        groups: int = 1,
        out_dtype: DType | None = None,
    ) -> te.Tensor:
        return conv(Input, Filter, stride, padding, dilation, groups, layout, kernel_layout, out_dtype)

    return _called(named, f"conv3d_{layout.lower()}", layout, kernel_layout)


def _called(function: Callable[..., te.Tensor], name: str, layout: str, kernel_layout: str) -> Callable[..., te.Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`conv` of data in {layout} by a weight in {kernel_layout}."
    takes_groups = name.startswith("group_") or len(layout) == 5
    reference, samples = convolution(layout, kernel_layout, takes_groups)
    return operator(reference=reference, samples=samples, name=f"nn.{name}")(function)


conv1d_ncw, conv1d_nwc = _named_1d("NCW"), _named_1d("NWC")
group_conv1d_ncw, group_conv1d_nwc = _named_grouped_1d("NCW"), _named_grouped_1d("NWC")
conv2d_nchw, conv2d_nhwc = _named_2d("NCHW", "OIHW"), _named_2d("NHWC", "HWIO")
conv2d_hwcn = _named_2d("HWCN", "HWIO")
group_conv2d_nchw, group_conv2d_nhwc = _named_grouped_2d("NCHW", "OIHW"), _named_grouped_2d("NHWC", "HWIO")
conv3d_ncdhw, conv3d_ndhwc = _named_3d("NCDHW", "OIDHW"), _named_3d("NDHWC", "DHWIO")
