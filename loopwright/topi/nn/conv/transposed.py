"""Transposed convolutions: each input cell adds its window of weights to the output.

    out size = (in size - 1) · stride - padding + kernel + output_padding

They are computed as a convolution of stride 1 whose results are put between each other (`phases.py`,
`phase_convolutions.py`); where sizes are not known, as one of the data with `stride - 1` zeros between its cells. The
weight has its input channels first (IOW, IOHW, IODHW).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.topi.errors import BadWindow, InvalidShapeError
from loopwright.topi.nn.conv.convolution import conv
from loopwright.topi.nn.conv.convolution_samples import transposed
from loopwright.topi.nn.conv.dilate import dilate
from loopwright.topi.nn.conv.phase_convolutions import conv_by_phases
from loopwright.topi.nn.conv.phases import Line, choose_forms
from loopwright.topi.nn.padding import pad
from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic
from loopwright.topi.parts.sizes import at_least, check_rank, check_same, each, known, multiple_of, simplify
from loopwright.topi.registry import operator
from loopwright.topi.types import Dim, Dims, DType, Padding


def conv_transpose(
    op: str,
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Dims,
    padding: Padding,
    out_dtype: DType | None,
    output_padding: Dims,
    groups: int,
    spatial: str,
    dilation: Dims = 1,
) -> te.Tensor:
    """The transposed convolution over the axes named in `spatial`; `op` names it in messages."""
    count = len(spatial)
    check_rank(op, "data", data, "NC" + spatial, count + 2)
    check_rank(op, "weight", kernel, "IO" + spatial, count + 2)
    steps = each(op, "strides", strides, count)
    apart = each(op, "dilation", dilation, count)
    extra = each(op, "output_padding", output_padding, count, least=0)
    for step, more in zip(steps, extra, strict=True):
        if more >= step:
            raise BadWindow(op, f"output_padding {more} is not less than the stride {step}", None)
    channels, per_group, *window = kernel.shape
    check_same(op, "input channels differ", ("the data", data.shape[1]), ("the weight", channels))
    if isinstance(groups, int) and groups > 0 and not multiple_of(channels, groups):
        raise InvalidShapeError(op, f"{known(channels)} input channels are not divisible into {groups} groups")
    reaches = [simplify((taps - 1) * step + 1) for taps, step in zip(window, apart, strict=True)]
    before, after = get_pad_tuple_generic(padding, reaches)
    low, high = [], []
    for axis, size, first, last, more in zip(spatial, reaches, before, after, extra, strict=True):
        low.append(simplify(size - 1 - first))
        high.append(simplify(size - 1 - last + more))
        if not all([at_least(amount, 0) for amount in (low[-1], high[-1])]):
            problem = f"padding ({first}, {last}) along {axis} leaves nothing of a window of {known(size)}"
            raise BadWindow(op, problem, "pad by less than the window's size")

    for axis, size in zip(spatial, data.shape[2:], strict=True):
        if not at_least(size, 1):
            raise InvalidShapeError(op, f"{data.name} has no cells along {axis}", "there is nothing to spread out")
    lines = None
    if isinstance(groups, int) and groups > 0 and known(per_group) is not None and known(channels) is not None:
        lines = _lines(data.shape[2:], window, steps, apart, before, after, extra)
    if lines is not None:
        forms = choose_forms(lines, known(per_group) or 0, (known(channels) or 0) // groups)
        if forms is not None:
            return conv_by_phases(data, kernel, lines, forms, groups, spatial, out_dtype)
    if any(step != 1 for step in apart):
        kernel = dilate(kernel, [1, 1, *apart], name="kernel_dilate")
    return _by_zeros(data, kernel, steps, low, high, groups, spatial, out_dtype)


def _lines(
    sizes: Sequence[Dim],
    window: Sequence[Dim],
    steps: Sequence[int],
    apart: Sequence[int],
    before: Sequence[Dim],
    after: Sequence[Dim],
    extra: Sequence[int],
) -> list[Line] | None:
    """The transposed convolution along each dimension; None when not all numbers are known, or nothing is made."""
    result = []
    for *given, more in zip(sizes, window, steps, apart, before, after, extra, strict=True):
        numbers = [number for number in map(known, given) if number is not None]
        if len(numbers) != len(given):
            return None
        size, taps, step, spread, first, last = numbers
        places = (size - 1) * step - first - last + (taps - 1) * spread + 1 + more
        if places < 1 or taps < 1:
            return None
        result.append(Line(size, taps, step, spread, first, places))
    return result


def _by_zeros(
    data: te.Tensor,
    kernel: te.Tensor,
    steps: Sequence[int],
    low: Sequence[Dim],
    high: Sequence[Dim],
    groups: int,
    spatial: str,
    out_dtype: DType | None,
) -> te.Tensor:
    """One convolution of the data with `stride - 1` zeros between its cells, for sizes that are not known."""
    channels, per_group, *window = kernel.shape
    between = dilate(data, [1, 1, *steps], name="data_dilate") if any(step != 1 for step in steps) else data
    between = pad(between, [0, 0, *low], [0, 0, *high], name="data_pad")
    inner = simplify(channels // groups) if isinstance(groups, int) and groups > 0 else channels

    def flipped(o: Expr, i: Expr, *taps: Expr) -> Expr:
        # The weight of output channel o: those of its group's inputs.
        group = o // per_group
        channel = i if groups == 1 else group * inner + i
        feature = o if groups == 1 else o % per_group
        value: Expr = kernel(channel, feature, *[size - 1 - tap for size, tap in zip(window, taps, strict=True)])
        return value

    transposed = te.compute(
        (simplify(per_group * groups), inner, *window), flipped, name="kernel_transform", tag=default_tag("injective")
    )
    return conv(between, transposed, 1, 0, 1, groups, "NC" + spatial, "OI" + spatial, out_dtype)


def _named(spatial: str, grouped: bool) -> Callable[..., te.Tensor]:
    name = f"{'group_' if grouped else ''}conv{len(spatial)}d_transpose_nc{spatial.lower()}"

    def plain(
        Input: te.Tensor,
        Filter: te.Tensor,
        strides: Dims,
        padding: Padding,
        out_dtype: DType | None = None,
        output_padding: Dims = 0,
    ) -> te.Tensor:
        return conv_transpose(name, Input, Filter, strides, padding, out_dtype, output_padding, 1, spatial)

    def in_groups(
        Input: te.Tensor,
        Filter: te.Tensor,
        strides: Dims,
        padding: Padding,
        out_dtype: DType | None = None,
        output_padding: Dims = 0,
        groups: int = 1,
    ) -> te.Tensor:
        return conv_transpose(name, Input, Filter, strides, padding, out_dtype, output_padding, groups, spatial)

    function = in_groups if grouped else plain
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The transposed convolution of data in NC{spatial} by a weight in IO{spatial}."
    reference, samples = transposed(spatial, grouped)
    return operator(reference=reference, samples=samples, name=f"nn.{name}")(function)


conv1d_transpose_ncw, group_conv1d_transpose_ncw = _named("W", False), _named("W", True)
conv2d_transpose_nchw, group_conv2d_transpose_nchw = _named("HW", False), _named("HW", True)
conv3d_transpose_ncdhw, group_conv3d_transpose_ncdhw = _named("DHW", False), _named("DHW", True)
