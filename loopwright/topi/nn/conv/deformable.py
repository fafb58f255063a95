"""Deformable convolutions: every tap of the window is moved by an offset of its own, for each place.

    out[n, f, y, x] = Σ over c, i, j of weight[f, c, i, j] · data[n, c] at (y·stride + i·dilation + dy, x·stride + …)

Offsets are no whole numbers: the value is interpolated between the four cells around, those outside being zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum, minimum
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadWindow, InvalidShapeError
from loopwright.topi.nn.conv.window import window_over
from loopwright.topi.parts.pad_amounts import get_pad_tuple
from loopwright.topi.parts.sizes import check_rank, check_same, known, multiple_of, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Arguments, Dims, DType, IntPadding, Ints, Padding


def _sampled(image: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values of `image` (channels, height, width) at real places, zero outside."""
    height, width = image.shape[1:]
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    total = np.zeros((image.shape[0], *y.shape))
    for i, j in np.ndindex(2, 2):
        weight = np.abs(1 - i - (y - low_y)) * np.abs(1 - j - (x - low_x))
        at_y, at_x = low_y + i, low_x + j
        inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
        total += np.where(inside, weight * image[:, at_y.clip(0, height - 1), at_x.clip(0, width - 1)], 0.0)
    return total


def _deformable(
    data: np.ndarray,
    offset: np.ndarray,
    kernel: np.ndarray,
    strides: Ints,
    padding: IntPadding,
    dilation: Ints,
    deformable_groups: int,
    groups: int,
    out_dtype: DType | None = None,
) -> np.ndarray:
    steps, spread = ([one, one] if isinstance(one, int) else one for one in (strides, dilation))
    batch, channels = data.shape[:2]
    rows, columns = kernel.shape[2:]
    reach = (rows - 1) * spread[0] + 1, (columns - 1) * spread[1] + 1
    top, left, *_ = get_pad_tuple(padding, reach)
    out = np.zeros((batch, kernel.shape[0], *offset.shape[2:]))
    per_group = channels // deformable_groups
    shifts = offset.reshape(batch, deformable_groups, rows, columns, 2, *offset.shape[2:])
    for n, group, i, j in np.ndindex(batch, deformable_groups, rows, columns):
        y, x = np.indices(offset.shape[2:])
        moved_y = y * steps[0] - top + i * spread[0] + shifts[n, group, i, j, 0]
        moved_x = x * steps[1] - left + j * spread[1] + shifts[n, group, i, j, 1]
        own = slice(group * per_group, (group + 1) * per_group)
        out[n] += np.tensordot(kernel[:, own, i, j], _sampled(data[n, own], moved_y, moved_x), 1)
    return out


def _nhwc(data: np.ndarray, offset: np.ndarray, kernel: np.ndarray, *rest: Any) -> np.ndarray:
    moved = data.transpose(0, 3, 1, 2), offset.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1)
    return _deformable(*moved, *rest).transpose(0, 2, 3, 1)


def _samples(is_last: bool) -> Iterator[Sample]:
    def transposed(data: np.ndarray, offset: np.ndarray, kernel: np.ndarray) -> tuple[np.ndarray, ...]:
        if not is_last:
            return data, offset, kernel
        moved = data.transpose(0, 2, 3, 1), offset.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0)
        return tuple(np.ascontiguousarray(one) for one in moved)

    # Offsets of halves: weights are exact, and so is the sum.
    half = whole_numbers((2, 18, 4, 4)) / 2
    data, kernel = whole_numbers((2, 3, 4, 4)), whole_numbers((2, 3, 3, 3))
    yield Sample((*transposed(data, half.astype("float32"), kernel), 1, 1, 1, 1, 1))
    two = (whole_numbers((1, 2 * 8, 2, 3)) / 2).astype("float32")
    yield Sample((*transposed(whole_numbers((1, 4, 6, 7)), two, whole_numbers((3, 4, 2, 2))), (2, 2), 0, (2, 2), 2, 1))
    real = transposed(real_numbers((1, 3, 5, 5)), real_numbers((1, 18, 5, 5)), real_numbers((2, 3, 3, 3)))
    eps = float(np.finfo("float32").eps)

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        # Places are off by a rounding of theirs, which moves a value by so much of the difference of two cells; then
        # 27 products of interpolated values, each of four terms of three factors.
        x, w = np.abs(args[0]).max(), np.abs(args[2]).sum()
        return (27 + 12 + 16) * eps * x * w * np.ones(exact.shape)

    yield Sample((*real, 1, 1, 1, 1, 1), bound=bound)


@operator(reference=_deformable, samples=lambda: _samples(False), name="nn.deformable_conv2d_nchw")
def deformable_conv2d_nchw(
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    strides: Dims,
    padding: Padding,
    dilation: Dims,
    deformable_groups: int,
    groups: int,
    out_dtype: DType | None = None,
) -> te.Tensor:
    """Of data in NCHW by a weight in OIHW; `offset` is (N, deformable_groups · rows · columns · 2, H', W').

    The last factor is (dy, dx). Channels are in `deformable_groups` that are moved alike; `groups` must be 1.
    """
    args = strides, padding, dilation, deformable_groups, groups, out_dtype
    return _convolve("deformable_conv2d_nchw", data, offset, kernel, "NCHW", "OIHW", *args)


@operator(reference=_nhwc, samples=lambda: _samples(True), name="nn.deformable_conv2d_nhwc")
def deformable_conv2d_nhwc(
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    strides: Dims,
    padding: Padding,
    dilation: Dims,
    deformable_groups: int,
    groups: int,
    out_dtype: DType | None = None,
) -> te.Tensor:
    """The same of data and offsets in NHWC by a weight in HWIO."""
    args = strides, padding, dilation, deformable_groups, groups, out_dtype
    return _convolve("deformable_conv2d_nhwc", data, offset, kernel, "NHWC", "HWIO", *args)


def _convolve(
    op: str,
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    layout: str,
    kernel_layout: str,
    strides: Dims,
    padding: Padding,
    dilation: Dims,
    deformable_groups: int,
    groups: int,
    out_dtype: DType | None,
) -> te.Tensor:
    check_rank(op, "data", data, layout, 4)
    check_rank(op, "offset", offset, layout, 4)
    check_rank(op, "weight", kernel, kernel_layout, 4)
    if groups != 1:
        raise BadWindow(op, f"groups is {groups}", "deformable convolutions have 1 group")
    sizes = dict(zip(layout, data.shape, strict=True))
    weight = dict(zip(kernel_layout, kernel.shape, strict=True))
    moved = dict(zip(layout, offset.shape, strict=True))
    rows, columns, channels = weight["H"], weight["W"], sizes["C"]
    check_same(op, "input channels differ", ("the data", channels), ("the weight", weight["I"]))
    check_same(op, "batches differ", ("the data", sizes["N"]), ("the offset", moved["N"]))
    if deformable_groups < 1 or not multiple_of(channels, deformable_groups):
        problem = f"{known(channels)} channels are not divisible into {deformable_groups} deformable groups"
        raise InvalidShapeError(op, problem)
    per_group = simplify(channels // deformable_groups)
    window = window_over(op, (sizes["H"], sizes["W"]), (rows, columns), strides, padding, dilation)
    check_same(
        op,
        "offsets differ",
        ("the offset", moved["C"]),
        ("rows · columns · 2 for each group", rows * columns * (2 * deformable_groups)),
    )
    for axis, location in zip("HW", window.places, strict=True):
        check_same(op, f"places along {axis} differ", ("the offset", moved[axis]), ("the result", location))
    dtype = out_dtype or data.dtype
    real = offset.dtype

    def at(letters: str, **index: Expr) -> list[Expr]:
        return [index[letter] for letter in letters]

    def deformed(n: Expr, c: Expr, i: Expr, j: Expr, y: Expr, x: Expr) -> Expr:
        first = ((c // per_group) * rows * columns + i * columns + j) * 2
        spots: list[tuple[Expr, Expr]] = []
        for which, (location, tap, axis) in enumerate(((y, i, "H"), (x, j, "W"))):
            step, spread, before = window.strides[which], window.dilations[which], window.before[which]
            shift = offset(*at(layout, N=n, C=first + which, H=y, W=x))
            whole = (location * step + tap * spread - before).astype(real)
            # Far outside all is zero; a number that no index holds is never turned into one.
            limit = sizes[axis].astype(real) + const(1, real)
            spot = minimum(maximum(whole + shift, const(-2, real)), limit)
            low = te.floor(spot)
            spots.append((low.astype("int32"), spot - low))
        (low_y, part_y), (low_x, part_x) = spots
        total = const(0, real)
        for di in range(2):
            for dj in range(2):
                cell_y, cell_x = low_y + di, low_x + dj
                inside = all_of(cell_y >= 0, cell_y < sizes["H"], cell_x >= 0, cell_x < sizes["W"])
                read = data(*at(layout, N=n, C=c, H=cell_y, W=cell_x))
                value = if_then_else(inside, read, const(0, data.dtype)).astype(real)
                one = const(1, real)
                share = (part_y if di else one - part_y) * (part_x if dj else one - part_x)
                total = total + value * share
        return total.astype(data.dtype)

    batch = sizes["N"]
    shape = (batch, channels, rows, columns, *window.places)
    gathered = te.compute(shape, deformed, name="data_deform", tag=default_tag(tag.INJECTIVE))
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = te.reduce_axis((0, rows), name="ry"), te.reduce_axis((0, columns), name="rx")

    def element(*indices: Expr) -> Expr:
        location = dict(zip(layout, indices, strict=True))
        value = gathered(location["N"], rc.var, ry.var, rx.var, location["H"], location["W"]).astype(dtype)
        factor = kernel(*at(kernel_layout, O=location["C"], I=rc.var, H=ry.var, W=rx.var)).astype(dtype)
        total: Expr = te.sum(value * factor, axis=[rc, ry, rx])
        return total

    sizes_out = {"N": batch, "C": weight["O"], "H": window.places[0], "W": window.places[1]}
    out: te.Tensor = te.compute([sizes_out[axis] for axis in layout], element, name=op, tag=default_tag(op))
    return out
