"""Pooling: the greatest value or the mean of each window.

    out[n, c, y, x] = max over i, j of data[n, c, y·stride + i·dilation - top, x·stride + j·dilation - left]

The spatial axes are found by their letters, so that blocked channels (NCHW16c) work as well. Windows reach past the
data by the padding; a mean counts those cells, or not (`count_include_pad`). With `ceil_mode` the last window may
reach further still; no mean counts the cells that it finds there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Final, NamedTuple

import numpy as np

from loopwright import te
from loopwright.arith.layout import layout as parse_layout
from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import maximum, min_value, minimum
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadPadding, BadWindow, UnsupportedLayout
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic
from loopwright.topi.parts.sizes import check_rank, each, places, simplify, tap_index
from loopwright.topi.registry import Sample, operator, ulps
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Dim, Dims, Padding

TAPS: Final = {"D": "rz", "H": "ry", "W": "rx"}


def _pooled(spatial: str) -> Callable[..., np.ndarray]:
    """What pooling means, in numpy."""

    def pooled(
        data: np.ndarray,
        kernel: Sequence[int],
        stride: Sequence[int],
        dilation: Sequence[int],
        padding: Sequence[int],
        pool_type: str,
        ceil_mode: bool = False,
        layout: str = "NC" + spatial,
        count_include_pad: bool = True,
    ) -> np.ndarray:
        from loopwright.topi.testing.pooling import pool_in_layout  # for tests alone

        pads = padding[: len(kernel)], padding[len(kernel) :]
        layout = "".join(letter for letter in layout if not letter.isdigit())
        return pool_in_layout(
            data, kernel, stride, dilation, *pads, pool_type, count_include_pad, ceil_mode, str(data.dtype), layout
        )

    return pooled


def _pool_samples(spatial: str) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        count = len(spatial)
        sizes, kernel, two, ones = (7, 6, 5)[:count], (3, 2, 3)[:count], (2, 2, 2)[:count], (1, 1, 1)[:count]
        none, around = (0,) * 2 * count, (1,) * 2 * count
        first, last = (2, 3, *sizes), (2, *sizes, 3)
        for dtype in ("float32", "int8") if count < 3 else ("float32",):
            yield Sample((whole_numbers(first, dtype), kernel, two, ones, around, "max"))
            yield Sample((whole_numbers(first, dtype), two, two, ones, around, "avg"))  # 4 and 8 divide exactly
        outside = ("avg", False, "N" + spatial + "C", False)
        yield Sample((whole_numbers(last, "int32"), kernel, ones, ones, around, *outside))
        yield Sample((whole_numbers(first, "int32"), kernel, (3,) * count, ones, around, "avg", True))
        yield Sample((whole_numbers(first, "float64"), kernel, ones, two, none, "max", True))
        yield Sample((whole_numbers((0, 2, *sizes)), two, two, ones, none, "avg"))
        roundings = (prod(kernel) + 1) * float(np.finfo("float32").eps)  # a sum and a division
        yield Sample(
            (real_numbers(first), kernel, ones, ones, around, "avg"),
            bound=lambda args, exact: roundings * _pooled(spatial)(np.abs(args[0]), *args[1:]),
        )

    return samples


@operator(reference=_pooled("W"), samples=_pool_samples("W"), name="nn.pool1d")
def pool1d(
    data: te.Tensor,
    kernel: Dims,
    stride: Dims,
    dilation: Dims,
    padding: Padding,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Pooling along W; `pool_type` is "max" or "avg", `padding` (left, right)."""
    return _pool(
        "pool1d", "W", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad
    )


@operator(reference=_pooled("HW"), samples=_pool_samples("HW"), name="nn.pool2d")
def pool2d(
    data: te.Tensor,
    kernel: Dims,
    stride: Dims,
    dilation: Dims,
    padding: Padding,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Pooling along H and W; `padding` is (top, left, bottom, right)."""
    return _pool(
        "pool2d", "HW", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad
    )


@operator(reference=_pooled("DHW"), samples=_pool_samples("DHW"), name="nn.pool3d")
def pool3d(
    data: te.Tensor,
    kernel: Dims,
    stride: Dims,
    dilation: Dims,
    padding: Padding,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Pooling along D, H and W; `padding` is (front, top, left, back, bottom, right)."""
    return _pool(
        "pool3d", "DHW", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad
    )


def _pool(
    op: str,
    spatial: str,
    data: te.Tensor,
    kernel: Dims,
    stride: Dims,
    dilation: Dims,
    padding: Padding,
    pool_type: str,
    ceil_mode: bool,
    layout: str,
    count_include_pad: bool,
) -> te.Tensor:
    axes = spatial_axes(op, layout, spatial, data)
    check_type(op, pool_type)
    count = len(axes)
    window = each(op, "kernel", kernel, count)
    strides = each(op, "stride", stride, count)
    dilations = each(op, "dilation", dilation, count)
    if not isinstance(padding, Sequence) or isinstance(padding, str) or len(padding) != 2 * count:
        raise BadPadding(op, f"padding {padding!r} is not {2 * count} numbers", "give all beginnings, then all ends")
    before, after = get_pad_tuple_generic(padding, window)
    # With ceil_mode a window may begin up to a stride before the end of the data.
    beyond = [step - 1 if ceil_mode else 0 for step in strides]
    low, high = [0] * data.ndim, [0] * data.ndim
    shape = list(data.shape)
    for axis, k, step, spread, first, last, more in zip(
        axes, window, strides, dilations, before, after, beyond, strict=True
    ):
        low[axis], high[axis] = first, last + more
        shape[axis] = places(op, data.shape[axis], k, step, spread, first + last + more)
    taps = [te.reduce_axis((0, k), name=TAPS[letter]) for k, letter in zip(window, spatial, strict=True)]

    def reads(indices: Sequence[Expr]) -> list[Expr]:
        at: list[Expr] = list(indices)
        for axis, tap, step, spread in zip(axes, taps, strides, dilations, strict=True):
            at[axis] = tap_index(at[axis], step, tap, spread)
        return at

    if pool_type == "max":
        padded = pad_unless_zero(data, low, high, min_value(data.dtype))
        largest: te.Tensor = te.compute(
            shape, lambda *at: te.max(padded(*reads(at)), axis=taps), name="pool_max", tag=default_tag("pool_max")
        )
        return largest

    padded = pad_unless_zero(data, low, high)
    total = te.compute(
        shape, lambda *at: te.sum(padded(*reads(at)), axis=taps), name="pool_sum", tag=default_tag("pool_sum")
    )

    windows = [
        Counted(axis, data.shape[axis], *numbers)
        for axis, *numbers in zip(axes, window, strides, dilations, before, after, strict=True)
    ]
    by = partial(counted_cells, windows, count_include_pad, any(beyond))
    mean: te.Tensor = te.compute(
        shape, lambda *at: divide(total(*at), by(at)), name="pool_avg", tag=default_tag(tag.ELEMWISE)
    )
    return mean


class Counted(NamedTuple):
    """A window along one axis, for counting the cells that a mean is over."""

    axis: int
    size: Expr
    kernel: int
    stride: int
    dilation: int
    before: Dim
    after: Dim


def counted_cells(
    windows: Sequence[Counted], count_include_pad: bool, goes_beyond: bool, indices: Sequence[Expr]
) -> Expr:
    """How many taps of the window at `indices` a mean counts; `goes_beyond`: some reach past the padding."""
    if count_include_pad and not goes_beyond:
        return as_expr(prod(window.kernel for window in windows))
    number: Expr = as_expr(1)
    for axis, size, kernel, stride, dilation, first, last in windows:
        start = indices[axis] * stride
        if count_include_pad:
            end, begin = simplify(size + first + last), as_expr(0)
        else:
            end, begin = simplify(size + first), maximum(as_expr(0), (first - start + dilation - 1) // dilation)
        number = number * maximum(minimum(as_expr(kernel), (end - 1 - start) // dilation + 1) - begin, 0)
    return simplify(maximum(number, 1))


def divide(total: Expr, count: Expr) -> Expr:
    """The mean, in the type of `total`; integers are divided in a type that holds `count`."""
    if total.dtype.is_float or total.dtype.bits >= 32:
        return te.div(total, count.astype(total.dtype))
    return te.div(total.astype("int32"), count.astype("int32")).astype(total.dtype)


def _global_pool(data: np.ndarray, pool_type: str, layout: str = "NCHW") -> np.ndarray:
    axes = tuple(axis for axis, letter in enumerate(layout) if letter in "DHW")
    if pool_type == "max":
        return data.max(axis=axes, keepdims=True)
    total = data.sum(axis=axes, keepdims=True, dtype=data.dtype)
    return total / prod(data.shape[axis] for axis in axes)


def _global_pool_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 3, 4, 5)), "max"))
    yield Sample((whole_numbers((2, 4, 5, 3), "int8"), "max", "NHWC"))
    yield Sample((whole_numbers((2, 3, 7), "float64"), "max", "NCW"))
    yield Sample((whole_numbers((2, 3, 4, 2), "float16"), "avg"))  # divided by a power of two
    yield Sample((whole_numbers((1, 2, 2, 4, 4)), "avg", "NCDHW"))
    yield Sample((whole_numbers((0, 2, 4, 4)), "avg"))
    yield Sample((whole_numbers((2, 3, 5, 7)), "avg"), bound=ulps(0.5, "float32"))  # an exact sum, divided


@operator(reference=_global_pool, samples=_global_pool_samples, name="nn.global_pool")
def global_pool(data: te.Tensor, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """The greatest value or the mean over all spatial axes, which stay with size 1."""
    op = "global_pool"
    spatial = "".join(letter for letter in "DHW" if letter in str(layout))
    axes = spatial_axes(op, layout, spatial, data)
    check_type(op, pool_type)
    shape = [as_expr(1) if axis in axes else size for axis, size in enumerate(data.shape)]
    taps = {
        axis: te.reduce_axis((0, data.shape[axis]), name=TAPS[letter])
        for axis, letter in zip(axes, spatial, strict=True)
    }

    def reads(indices: Sequence[Expr]) -> list[Expr]:
        return [taps[axis].var if axis in taps else index for axis, index in enumerate(indices)]

    reduce = list(taps.values())
    if pool_type == "max":
        largest: te.Tensor = te.compute(
            shape,
            lambda *at: te.max(data(*reads(at)), axis=reduce),
            name="adaptive_pool_max",
            tag=default_tag("adaptive_pool_max"),
        )
        return largest
    total = te.compute(
        shape,
        lambda *at: te.sum(data(*reads(at)), axis=reduce),
        name="adaptive_pool_sum",
        tag=default_tag("adaptive_pool_sum"),
    )
    cells = as_expr(1)
    for axis in axes:
        cells = cells * data.shape[axis]
    mean: te.Tensor = te.compute(
        shape,
        lambda *at: divide(total(*at), simplify(cells)),
        name="adaptive_pool_avg",
        tag=default_tag(tag.ELEMWISE),
    )
    return mean


def spatial_axes(op: str, layout: str, spatial: str, data: te.Tensor) -> list[int]:
    """Where the spatial axes are; refuses layouts that lack one, or split one into parts."""
    hint = f"the layout has {' and '.join(spatial) or 'spatial axes'} whole, as in NCW, NCHW, NHWC, NCDHW or NCHW16c"
    if not isinstance(layout, str) or not spatial:
        raise UnsupportedLayout(op, layout, hint)
    parsed = parse_layout(layout)
    if any(letter not in parsed or parsed.factor_of(letter) != -1 for letter in spatial):
        raise UnsupportedLayout(op, layout, hint)
    check_rank(op, "data", data, layout, len(parsed))
    return [parsed.index_of(letter) for letter in spatial]


def check_type(op: str, pool_type: object) -> None:
    """Refuse what is no kind of pooling."""
    if pool_type not in ("max", "avg"):
        raise BadWindow(op, f"pool_type is {pool_type!r}", 'it is "max" or "avg"')
