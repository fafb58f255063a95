"""Pooling: MaxPool, AveragePool, LpPool, global pools, MaxUnpool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.convolution import padded_for_windows, window, window_pads
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.values import Results
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.sizes import times
from loopwright.relay.types import Dim


def _window(node: Node, x: Expr) -> tuple[list[int], list[int], list[int], Sequence[Dim], bool]:
    """Kernel, strides, dilations, pads (expressions where sizes are), and whether a last partial window counts."""
    kernel = list(node.attr("kernel_shape"))
    rank = len(kernel)
    if node.rank(x) != rank + 2:
        raise node.bad(f"the data has {node.rank(x)} dimensions, and the window {rank}")
    strides, dilations = window(node, rank, "strides"), window(node, rank, "dilations")
    pads = window_pads(node, node.shape(x)[2:], kernel, strides, dilations)
    return kernel, strides, dilations, pads, bool(node.attr("ceil_mode", 0))


def _are_numbers(pads: Sequence[Dim]) -> TypeGuard[Sequence[int]]:
    return all(isinstance(pad, int) for pad in pads)


def _counts(node: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
            pads: Sequence[int], ceil: bool) -> list[int]:  # fmt: skip
    """How many windows there are along each axis; with `ceil`, none that begins in the padding behind."""
    rank = len(kernel)
    counts = []
    for k, size in enumerate(node.static_shape(x)[2:]):
        room = size + pads[k] + pads[rank + k] - (kernel[k] - 1) * dilations[k] - 1
        if room < 0:
            raise node.bad(f"a window of {kernel} is larger than the padded data")
        count = -(-room // strides[k]) + 1 if ceil else room // strides[k] + 1
        if ceil and (count - 1) * strides[k] >= size + pads[k]:
            count -= 1
        counts.append(count)
    return counts


def _ceil_pads(node: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
               pads: Sequence[int]) -> list[int]:  # fmt: skip
    """Pads that make room for a last partial window, so that no rounding is needed."""
    rank = len(kernel)
    counts = _counts(node, x, kernel, strides, dilations, pads, ceil=True)
    wider = list(pads)
    for k, size in enumerate(node.static_shape(x)[2:]):
        needed = (counts[k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1
        wider[rank + k] = max(needed - size - pads[k], 0)
    return wider


def _pool(name: str, rank: int) -> Callable[..., Expr]:
    return getattr(relay.nn, f"{name}_pool{rank}d")


@converter("MaxPool")
def max_pool(node: Node, x: Expr) -> Results:
    kernel, strides, dilations, pads, ceil = _window(node, x)
    rank = len(kernel)
    if ceil or node.wants(1):
        numbers = _require_numbers(node, x, pads)
        pads = numbers = _ceil_pads(node, x, kernel, strides, dilations, numbers) if ceil else numbers
        if node.wants(1):
            return _max_pool_with_places(node, x, kernel, strides, dilations, numbers)
    if rank > 3:
        raise node.unsupported(f"a window of {rank} dimensions")
    if not _are_numbers(pads):
        x, pads = padded_for_windows(x, pads, _lowest(node, x))
    return _pool("max", rank)(x, pool_size=kernel, strides=strides, dilation=dilations, padding=pads)


def _require_numbers(node: Node, x: Expr, pads: Sequence[Dim]) -> Sequence[int]:
    if not _are_numbers(pads):
        raise node.sizes_needed("pads of windows that are not plain", node.shape(x))
    return pads


def _lowest(node: Node, x: Expr) -> Constant:
    kind = node.dtype(x)
    return node.const(-np.inf if kind.is_float else kind.min_value(), x)


def _patches(node: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
             pads: Sequence[int], fill: Expr) -> tuple[Expr, np.ndarray, list[int]]:  # fmt: skip
    """Each window laid out as a row: (batch, channels, windows, elements of one), and the places of its elements.

    Places count in the unpadded data of one channel; -1 is padding, which holds `fill`.
    """
    rank = len(kernel)
    batch, channels, *sizes = node.static_shape(x)
    counts = _counts(node, x, kernel, strides, dilations, pads, ceil=False)
    axes = []
    for k in range(rank):
        begins = np.arange(counts[k]) * strides[k] - pads[k]
        axes.append(begins[:, None] + np.arange(kernel[k]) * dilations[k])
    total = np.zeros((1,) * (2 * rank), np.int64)
    inside = np.ones((1,) * (2 * rank), bool)
    for k, locations in enumerate(axes):
        form = [1] * (2 * rank)
        form[k], form[rank + k] = locations.shape
        spread = locations.reshape(form)
        total = total * sizes[k] + np.clip(spread, 0, max(sizes[k] - 1, 0))
        inside = inside & (spread >= 0) & (spread < sizes[k])
    full = (int(np.prod(counts)), int(np.prod(kernel)))
    locations = np.where(np.broadcast_to(inside, total.shape), total, -1).reshape(full)
    flat = relay.reshape(x, (batch, channels, int(np.prod(sizes))), allowzero=True)
    used = relay.take(flat, relay.const(np.maximum(locations, 0).reshape(-1), "int64"), axis=2)
    rows = relay.reshape(used, (batch, channels, *full), allowzero=True)
    if (locations < 0).any():
        rows = relay.where(relay.const(locations >= 0, "bool"), rows, fill)
    return rows, locations, counts


def _max_pool_with_places(node: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
                          pads: Sequence[int]) -> list[Expr]:  # fmt: skip
    """The maxima and where they were: places count over the whole tensor, by rows or (storage_order=1) by columns."""
    rows, locations, counts = _patches(node, x, kernel, strides, dilations, pads, _lowest(node, x))
    batch, channels, *sizes = node.static_shape(x)
    shape = (batch, channels, *counts)
    best = relay.argmax(rows, axis=[3])
    result = relay.reshape(relay.max(rows, axis=[3]), shape, allowzero=True)
    if node.attr("storage_order", 0):
        grid = np.unravel_index(np.maximum(locations, 0), sizes)
        locations = np.asarray(np.ravel_multi_index(grid[::-1], sizes[::-1]))
    hot = relay.equal(
        relay.expand_dims(node.cast(best, "int64"), axis=3), relay.const(np.arange(locations.shape[1]), "int64")
    )
    chosen = relay.sum(relay.where(hot, relay.const(locations, "int64"), node.const(0)), axis=[3])
    begins = np.arange(batch * channels).reshape(batch, channels, 1) * int(np.prod(sizes))
    return [result, relay.reshape(relay.add(chosen, relay.const(begins, "int64")), shape, allowzero=True)]


@converter("AveragePool")
def average_pool(node: Node, x: Expr) -> Expr:
    kernel, strides, dilations, pads, ceil = _window(node, x)
    rank = len(kernel)
    counted = bool(node.attr("count_include_pad", 0))
    if not _are_numbers(pads):
        if ceil or rank > 3:
            _require_numbers(node, x, pads)
        return _averaged(node, x, kernel, strides, dilations, pads, counted)
    wider = _ceil_pads(node, x, kernel, strides, dilations, pads) if ceil else pads
    if rank <= 3 and not (counted and wider != pads):
        return _pool("avg", rank)(
            x, pool_size=kernel, strides=strides, dilation=dilations, padding=wider, count_include_pad=counted
        )
    # The pads that the model names count, those of a last partial window do not.
    named = relay.nn.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    rest = [0] * rank + [max(wide - pad, 0) for wide, pad in zip(wider[rank:], pads[rank:])]
    return _pool("avg", rank)(
        named, pool_size=kernel, strides=strides, dilation=dilations, padding=rest, count_include_pad=False
    )


def _averaged(node: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
              pads: Sequence[Dim], counted: bool) -> Expr:  # fmt: skip
    """The average with pads that are expressions: of padded data, divided by the share of a window that is no pad."""
    options: dict[str, object] = {
        "pool_size": kernel,
        "strides": strides,
        "dilation": dilations,
        "count_include_pad": True,
    }
    pool = _pool("avg", len(kernel))
    result = pool(padded_for_windows(x, pads, 0)[0], **options)
    if counted:
        return result
    ones = relay.full(node.const(1, x), (1, 1, *node.shape(x)[2:]), dtype=str(node.dtype(x)))
    return relay.divide(result, pool(padded_for_windows(ones, pads, 0)[0], **options))


@converter("LpPool")
def lp_pool(node: Node, x: Expr) -> Expr:
    """(sum of |x|^p)^(1/p) over each window."""
    kernel, strides, dilations, pads, ceil = _window(node, x)
    rank = len(kernel)
    p = node.attr("p", 2)
    if ceil:
        pads = _ceil_pads(node, x, kernel, strides, dilations, _require_numbers(node, x, pads))
    powered = relay.power(relay.abs(x), node.const(p, x))
    if not _are_numbers(pads):
        powered, pads = padded_for_windows(powered, pads, 0)
    mean = _pool("avg", rank)(
        powered, pool_size=kernel, strides=strides, dilation=dilations, padding=pads, count_include_pad=True
    )
    return relay.power(relay.multiply(mean, node.const(int(np.prod(kernel)), x)), node.const(1 / p, x))


def _spatial(node: Node, x: Expr) -> list[int]:
    rank = node.rank(x)
    if rank < 3:
        raise node.bad(f"the data has {rank} dimensions, and needs 3 or more")
    return list(range(2, rank))


@converter("GlobalAveragePool")
def global_average_pool(node: Node, x: Expr) -> Expr:
    axes = _spatial(node, x)
    return _pool("global_avg", len(axes))(x) if len(axes) <= 3 else relay.mean(x, axis=axes, keepdims=True)


@converter("GlobalMaxPool")
def global_max_pool(node: Node, x: Expr) -> Expr:
    axes = _spatial(node, x)
    return _pool("global_max", len(axes))(x) if len(axes) <= 3 else relay.max(x, axis=axes, keepdims=True)


@converter("GlobalLpPool")
def global_lp_pool(node: Node, x: Expr) -> Expr:
    p = node.attr("p", 2)
    powered = relay.power(relay.abs(x), node.const(p, x))
    return relay.power(relay.sum(powered, axis=_spatial(node, x), keepdims=True), node.const(1 / p, x))


@converter("MaxUnpool", since=9)
def max_unpool(node: Node, x: Expr, indices: Expr, output_shape: Expr | None = None) -> Expr:
    """Elements put back to where a MaxPool took them from; zeros elsewhere."""
    shape = node.static_shape(x)
    kernel = list(node.attr("kernel_shape"))
    rank = len(kernel)
    strides = window(node, rank, "strides")
    pads = list(node.attr("pads", [0] * (2 * rank)))
    sizes = [(size - 1) * strides[k] + kernel[k] - pads[k] - pads[rank + k] for k, size in enumerate(shape[2:])]
    natural = (*shape[:2], *sizes)
    empty = relay.const(np.zeros(int(np.prod(natural))), str(node.dtype(x)))
    count = times(*shape)
    locations = relay.checked_indices(relay.reshape(indices, (count,), allowzero=True), empty, axes=(0,))
    filled = relay.scatter_elements(
        empty, locations, relay.reshape(x, (count,), allowzero=True), axis=0, reduction="update"
    )
    whole = relay.reshape(filled, natural, allowzero=True)
    if output_shape is None:
        return whole
    # Places count in the size that follows from the window; a larger output is padded behind.
    wanted = node.ints(output_shape)
    if len(wanted) != len(natural) or any(large < small for large, small in zip(wanted, natural)):
        raise node.bad(f"output_shape is {wanted}, and what is put back has {list(natural)}")
    return relay.nn.pad(whole, [(0, large - small) for large, small in zip(wanted, natural)])
