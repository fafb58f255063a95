"""dilation2d: grey dilation of pictures, out[y, x] = max over i, j of data[y·s + i·d, x·s + j·d] + filter[i, j]."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Expr, cast
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, infinity, min_value
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.parts.pad_amounts import get_pad_tuple
from loopwright.topi.parts.sizes import check_rank, check_same, each, is_zero, places, simplify, tap_index
from loopwright.topi.registry import operator
from loopwright.topi.testing import image as meaning
from loopwright.topi.types import Dims, Padding


@operator(reference=meaning.dilation2d_nchw, samples=meaning.dilation2d_nchw_samples, name="image.dilation2d_nchw")
def dilation2d_nchw(
    input: te.Tensor, filter: te.Tensor, stride: Dims, padding: Padding, dilations: Dims, out_dtype: str | None = None
) -> te.Tensor:
    """Of `input` (n, c, h, w) by `filter` (c, kh, kw); cells of the padding are never the greatest."""
    return _dilation("dilation2d_nchw", "NCHW", "CHW", input, filter, stride, padding, dilations, out_dtype)


@operator(reference=meaning.dilation2d_nhwc, samples=meaning.dilation2d_nhwc_samples, name="image.dilation2d_nhwc")
def dilation2d_nhwc(
    input: te.Tensor, filter: te.Tensor, stride: Dims, padding: Padding, dilations: Dims, out_dtype: str | None = None
) -> te.Tensor:
    """Of `input` (n, h, w, c) by `filter` (kh, kw, c); cells of the padding are never the greatest."""
    return _dilation("dilation2d_nhwc", "NHWC", "HWC", input, filter, stride, padding, dilations, out_dtype)


def _dilation(
    op: str,
    layout: str,
    filter_layout: str,
    data: te.Tensor,
    weight: te.Tensor,
    stride: Dims,
    padding: Padding,
    dilations: Dims,
    out_dtype: str | None,
) -> te.Tensor:
    check_rank(op, "input", data, layout, 4)
    check_rank(op, "filter", weight, filter_layout, 3)
    channels = data.shape[layout.index("C")], weight.shape[filter_layout.index("C")]
    check_same(op, "channels", ("the input", channels[0]), ("the filter", channels[1]))
    strides, spread = each(op, "stride", stride, 2), each(op, "dilation", dilations, 2)
    kernel = [weight.shape[filter_layout.index(letter)] for letter in "HW"]
    window = [simplify((size - 1) * step + 1) for size, step in zip(kernel, spread, strict=True)]
    pads = get_pad_tuple(padding, window)
    axes = [layout.index(letter) for letter in "HW"]
    shape = list(data.shape)
    for number, axis in enumerate(axes):
        both = pads[number] + pads[number + 2]
        shape[axis] = places(op, data.shape[axis], kernel[number], strides[number], spread[number], both)
    taps = [te.reduce_axis((0, size), name=name) for size, name in zip(kernel, ("ry", "rx"), strict=True)]
    kind = DataType(out_dtype or data.dtype)
    # Integers have no least value that stays the least when something is added to it: it is put in after the addition.
    least = -infinity(kind) if kind.is_float else min_value(kind)

    def body(*at: Expr) -> Expr:
        indices: list[Expr] = list(at)
        inside: list[Expr] = []
        for number, axis in enumerate(axes):
            location = simplify(tap_index(at[axis], strides[number], taps[number], spread[number]) - pads[number])
            indices[axis] = location
            if not is_zero(pads[number]) or not is_zero(pads[number + 2]):
                inside += [location >= 0, location < data.shape[axis]]
        where: dict[str, Expr] = {"H": taps[0].var, "W": taps[1].var, "C": at[layout.index("C")]}
        element = cast(data(*indices), kind) + cast(weight(*[where[letter] for letter in filter_layout]), kind)
        return te.max(if_then_else(all_of(*inside), element, least) if inside else element, axis=taps)

    result: te.Tensor = te.compute(shape, body, name="dilation2d", tag=default_tag(op))
    return result
