"""Convolutions: Conv, ConvTranspose, DeformConv."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.sizes import divide_up
from loopwright.relay.types import Dim, as_dim, is_any


def same_pads(node: Node, size: Dim, kernel: int, stride: int, dilation: int, lower: bool) -> tuple[Dim, Dim]:
    """How much to pad so that the result has size / stride elements: before and after; with `lower`, more before.

    Of a size that is no number these are expressions, and the one after may be negative: what no window looks at is cut
    off, so that the number of windows is size / stride, rounded up, and is written so.
    """
    reach = (kernel - 1) * dilation + 1
    if is_any(size):
        raise node.unsupported("auto_pad of a size that is known only when the model runs")
    total: int | PrimExpr
    if isinstance(size, int):
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    elif stride == 1:
        total = reach - 1
    else:
        total = (divide_up(size, stride) - 1) * stride + reach - size  # type: ignore[operator]
    before = (maximum(total, 0) + int(lower)) // 2 if isinstance(total, PrimExpr) else (total + int(lower)) // 2
    return as_dim(before), as_dim(total - before)


def window_pads(
    node: Node, sizes: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Sequence[Dim]:
    """Pads of a window that moves over `sizes`: begins, then ends."""
    rank = len(kernel)
    auto = node.attr("auto_pad", "NOTSET") or "NOTSET"
    if auto == "VALID":
        return [0] * (2 * rank)
    if auto == "NOTSET":
        pads = list(node.attr("pads", [0] * (2 * rank)))
        if len(pads) != 2 * rank:
            raise node.bad(f"{len(pads)} pads are given for a window of {rank} dimensions")
        if any(pad < 0 for pad in pads):
            raise node.bad(f"pads are {pads}: none may be negative")
        return pads
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.invalid("auto_pad", auto, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    lower = auto == "SAME_LOWER"
    pairs = [same_pads(node, *one, lower) for one in zip(sizes, kernel, strides, dilations)]
    return [before for before, _ in pairs] + [after for _, after in pairs]


def padded_for_windows(x: Expr, pads: Sequence[Dim], value: float | Constant) -> tuple[Expr, list[int]]:
    """The data with its pads, and those of the operator that follows: none."""
    rank = len(pads) // 2
    widths = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])]
    return relay.nn.pad(x, widths, pad_value=value), [0] * (2 * rank)


def window(node: Node, rank: int, name: str, default: int = 1) -> list[int]:
    """Strides or dilations: one number for each axis that the window moves along."""
    given = list(node.attr(name, None) or [default] * rank)
    if len(given) != rank:
        raise node.bad(f"{name} is {given}, and the window has {rank} dimensions")
    if any(one < 1 for one in given):
        raise node.bad(f"{name} is {given}: each is at least 1")
    return given


def _kernel(node: Node, w: Expr) -> list[int]:
    shape = node.shape(w)[2:]
    if not all(isinstance(size, int) for size in shape):
        raise node.unsupported("a kernel whose sizes are no numbers")
    given = node.attr("kernel_shape", None)
    if given is not None and list(given) != list(shape):
        raise node.bad(f"kernel_shape is {list(given)}, and the weight has {list(shape)}")
    return [int(size) for size in shape if isinstance(size, int)]


@converter("Conv")
def conv(node: Node, x: Expr, w: Expr, b: Expr | None = None) -> Expr:
    result = convolved(node, x, w, out_dtype=node.sum_dtype(x))
    if b is not None:
        result = relay.nn.bias_add(result, node.cast(b, node.sum_dtype(x)), axis=1)
    return node.cast(result, str(node.dtype(x)))


def convolved(node: Node, x: Expr, w: Expr, out_dtype: str = "", pad_value: int = 0) -> Expr:
    """The convolution of a node, without bias; its pads hold `pad_value`."""
    shape = node.shape(x)
    kernel = _kernel(node, w)
    rank = len(kernel)
    if len(shape) != rank + 2:
        raise node.bad(f"the data has {len(shape)} dimensions, and the weight {rank + 2}")
    if rank not in (1, 2, 3):
        raise node.unsupported(f"a convolution of {rank} dimensions")
    strides, dilations = window(node, rank, "strides"), window(node, rank, "dilations")
    pads = window_pads(node, shape[2:], kernel, strides, dilations)
    channels = node.shape(w)[0]
    groups = node.attr("group", 1)
    if isinstance(channels, int) and (groups < 1 or channels % groups):
        raise node.bad(f"{channels} channels cannot be parted into {groups} groups")
    if pad_value or not all(isinstance(pad, int) for pad in pads):
        x, pads = padded_for_windows(x, pads, pad_value)
    function = (relay.nn.conv1d, relay.nn.conv2d, relay.nn.conv3d)[rank - 1]
    return function(
        x,
        w,
        strides=strides,
        padding=pads,
        dilation=dilations,
        groups=groups,
        channels=channels,
        kernel_size=kernel,
        out_dtype=out_dtype,
    )


@converter("ConvTranspose")
def conv_transpose(node: Node, x: Expr, w: Expr, b: Expr | None = None) -> Expr:
    shape = node.shape(x)
    kernel = _kernel(node, w)
    rank = len(kernel)
    if rank not in (1, 2, 3) or len(shape) != rank + 2:
        raise node.unsupported(f"a convolution of {rank} dimensions on data of {len(shape)}")
    strides, dilations = window(node, rank, "strides"), window(node, rank, "dilations")
    groups = node.attr("group", 1)
    extra = list(node.attr("output_padding", None) or [0] * rank)
    pads, extra = _transposed_pads(node, shape[2:], kernel, strides, dilations, extra)
    reach = [(k - 1) * d for k, d in zip(kernel, dilations)]
    # What is cut off more than the kernel reaches over, and what the operator cannot add, is done afterwards.
    cut = [max(pad - most, 0) for pad, most in zip(pads, reach * 2)]
    inner = [pad - less for pad, less in zip(pads, cut)]
    added = [max(one - (s - 1), 0) for one, s in zip(extra, strides)]
    few = [one - more for one, more in zip(extra, added)]
    function = (relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose)[rank - 1]
    channels = node.shape(w)[1]
    result = function(
        x,
        w,
        strides=strides,
        padding=inner,
        output_padding=few,
        dilation=dilations,
        groups=groups,
        channels=channels * groups if isinstance(channels, int) else None,
        kernel_size=kernel,
    )
    if any(added):
        result = relay.nn.pad(result, [(0, 0), (0, 0), *((0, more) for more in added)])
    if any(cut):
        sizes = node.static_shape(result)[2:]
        ends = [size - cut[rank + k] for k, size in enumerate(sizes)]
        result = relay.strided_slice(result, begin=cut[:rank], end=ends, axes=list(range(2, 2 + rank)))
    return result if b is None else relay.nn.bias_add(result, b, axis=1)


def _transposed_pads(
    node: Node,
    sizes: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
) -> tuple[list[int], list[int]]:
    """What is cut off the full result: begins, then ends; and what is added behind it."""
    rank = len(kernel)
    auto = node.attr("auto_pad", "NOTSET") or "NOTSET"
    wanted = node.attr("output_shape", None)
    if wanted is None and auto in ("NOTSET", "VALID"):
        pads = list(node.attr("pads", None) or [0] * (2 * rank)) if auto == "NOTSET" else [0] * (2 * rank)
        if len(pads) != 2 * rank:
            raise node.bad(f"{len(pads)} pads are given for a window of {rank} dimensions")
        return pads, list(extra)
    if not all(isinstance(size, int) for size in sizes):
        raise node.unsupported("an output_shape or auto_pad for sizes that are no numbers")
    given = [int(size) for size in sizes if isinstance(size, int)]
    targets = list(wanted)[-rank:] if wanted is not None else [size * s for size, s in zip(given, strides)]
    begins, ends, more = [], [], []
    for k in range(rank):
        full = (given[k] - 1) * strides[k] + extra[k] + (kernel[k] - 1) * dilations[k] + 1
        total = full - targets[k]
        more.append(extra[k] + max(-total, 0))
        total = max(total, 0)
        less = total // 2
        begins.append(less if auto == "SAME_UPPER" else total - less)
        ends.append(total - begins[-1])
    return [*begins, *ends], more


@converter("DeformConv", since=19)
def deform_conv(node: Node, x: Expr, w: Expr, offset: Expr, b: Expr | None = None, mask: Expr | None = None) -> Expr:
    """A convolution that reads each element of its window at a place of its own, between elements.

    Written out: the data is sampled at the moved places, and the samples are multiplied with the weight.
    """
    batch, channels, height, width = node.static_shape(x)
    out_channels, per_group, *kernel = node.static_shape(w)
    if len(kernel) != 2:
        raise node.unsupported(f"a convolution of {len(kernel)} dimensions")
    strides, dilations = window(node, 2, "strides"), window(node, 2, "dilations")
    pads = list(node.attr("pads", [0] * 4))
    groups, moved = node.attr("group", 1), node.attr("offset_group", 1)
    rows, columns = node.static_shape(offset)[2:]
    area = kernel[0] * kernel[1]
    kind = str(node.dtype(x))
    # The places the window would read, and how far each is moved: (batch, moved groups, window, rows, columns).
    moves = relay.reshape(offset, (batch, moved, area, 2, rows, columns), allowzero=True)
    grid = np.meshgrid(*[np.arange(n) for n in (*kernel, rows, columns)], indexing="ij")
    base_y = grid[2] * strides[0] - pads[0] + grid[0] * dilations[0]
    base_x = grid[3] * strides[1] - pads[1] + grid[1] * dilations[1]

    def location(which: int, base: np.ndarray) -> Expr:
        move = relay.squeeze(relay.strided_slice(moves, begin=[which], end=[which + 1], axes=[3]), axis=[3])
        return relay.add(move, relay.const(base.reshape(area, rows, columns), kind))

    y, x_at = location(0, base_y), location(1, base_x)
    samples = _sampled(node, x, y, x_at, moved, (batch, channels, height, width), (area, rows, columns))
    if mask is not None:
        weights = relay.reshape(mask, (batch, moved, 1, area, rows, columns), allowzero=True)
        samples = relay.multiply(samples, weights)
    # (batch, groups, channels of a group * window, places) with (groups, out channels, channels of a group * window).
    flat = relay.reshape(samples, (batch, groups, channels // groups * area, rows * columns), allowzero=True)
    answer = relay.einsum(
        [relay.reshape(w, (groups, out_channels // groups, per_group * area), allowzero=True), flat], "gok,bgkp->bgop"
    )
    result = relay.reshape(answer, (batch, out_channels, rows, columns), allowzero=True)
    return result if b is None else relay.nn.bias_add(result, b, axis=1)


def _sampled(
    node: Node, x: Expr, y: Expr, x_at: Expr, moved: int, shape: Sequence[int], window_shape: Sequence[int]
) -> Expr:
    """Elements between others, by their distances; zero outside: (batch, moved, channels, window, rows, columns)."""
    batch, channels, height, width = shape
    area, rows, columns = window_shape
    kind = str(node.dtype(x))
    each = channels // moved
    flat = relay.reshape(x, (batch, moved, each, height * width), allowzero=True)
    top, left = relay.floor(y), relay.floor(x_at)
    parts: list[Expr] = []
    for down in (0, 1):
        for right in (0, 1):
            row = relay.add(top, relay.const(down, kind))
            column = relay.add(left, relay.const(right, kind))
            near_y = relay.subtract(relay.const(1, kind), relay.abs(relay.subtract(y, row)))
            near_x = relay.subtract(relay.const(1, kind), relay.abs(relay.subtract(x_at, column)))
            inside = relay.logical_and(
                relay.logical_and(
                    relay.greater_equal(row, relay.const(0, kind)), relay.less(row, relay.const(height, kind))
                ),
                relay.logical_and(
                    relay.greater_equal(column, relay.const(0, kind)), relay.less(column, relay.const(width, kind))
                ),
            )
            weight = relay.where(inside, relay.multiply(near_y, near_x), relay.const(0, kind))
            at = relay.add(
                relay.multiply(relay.clip(row, 0, height - 1), relay.const(width, kind)),
                relay.clip(column, 0, width - 1),
            )
            locations = relay.reshape(relay.cast(at, "int64"), (batch, moved, 1, area * rows * columns), allowzero=True)
            spread = relay.broadcast_to(locations, (batch, moved, each, area * rows * columns))
            used = relay.reshape(
                relay.gather(flat, 3, spread), (batch, moved, each, area, rows, columns), allowzero=True
            )
            part = relay.multiply(used, relay.expand_dims(weight, axis=2))
            parts.append(part)
    return reduce(relay.add, parts)
