"""Windows that move over a tensor: how many there are, and where their elements come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright import relay
from loopwright.frontends.common.tensors import Tensors
from loopwright.relay.expr import Expr


@dataclass(frozen=True)
class Window:
    """The sizes of a window, and how it moves: one number for each axis; of pads, begins and then ends."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]

    @property
    def rank(self) -> int:
        return len(self.kernel)

    def reach(self, axis: int) -> int:
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def counts(self, sizes: Sequence[int], ceil: bool = False) -> list[int]:
        """How many windows there are along each axis; with `ceil`, none that begins in the padding behind."""
        counts = []
        for k, size in enumerate(sizes):
            room = size + self.pads[k] + self.pads[self.rank + k] - self.reach(k)
            count = -(-room // self.strides[k]) + 1 if ceil else room // self.strides[k] + 1
            if ceil and (count - 1) * self.strides[k] >= size + self.pads[k]:
                count -= 1
            counts.append(count)
        return counts

    def with_partial(self, sizes: Sequence[int]) -> Window:
        """The window with pads that make room for a last partial one, so that no rounding is needed."""
        wider = list(self.pads)
        for k, (size, count) in enumerate(zip(sizes, self.counts(sizes, ceil=True))):
            wider[self.rank + k] = max((count - 1) * self.strides[k] + self.reach(k) - size - self.pads[k], 0)
        return Window(self.kernel, self.strides, self.dilations, wider)


def places_of(window: Window, sizes: Sequence[int]) -> np.ndarray:
    """Where the elements of each window are: (windows, elements of one), counted over `sizes`; -1 is padding."""
    rank = window.rank
    total = np.zeros((1,) * (2 * rank), np.int64)
    inside = np.ones((1,) * (2 * rank), bool)
    for k, count in enumerate(window.counts(sizes)):
        begins = np.arange(count) * window.strides[k] - window.pads[k]
        along = begins[:, None] + np.arange(window.kernel[k]) * window.dilations[k]
        form = [1] * (2 * rank)
        form[k], form[rank + k] = along.shape
        spread = along.reshape(form)
        total = total * sizes[k] + np.clip(spread, 0, max(sizes[k] - 1, 0))
        inside = inside & (spread >= 0) & (spread < sizes[k])
    rows = int(np.prod(window.counts(sizes)))
    return np.where(np.broadcast_to(inside, total.shape), total, -1).reshape(rows, int(np.prod(window.kernel)))


def max_with_indices(node: Tensors, x: Expr, window: Window, sizes: Sequence[int]) -> tuple[Expr, Expr]:
    """The greatest element of each window, and where it is in its channel; `sizes` are those of the last axes."""
    lead = node.shape(x)[: -window.rank]
    kind = node.dtype(x)
    lowest = node.const(-np.inf if kind.is_float else kind.min_value(), x)
    locations = places_of(window, sizes)
    flat = relay.reshape(x, (*lead, int(np.prod(sizes))), allowzero=True)
    used = relay.take(flat, node.const(np.maximum(locations, 0).reshape(-1)), axis=len(lead))
    rows = relay.reshape(used, (*lead, *locations.shape), allowzero=True)
    if (locations < 0).any():
        rows = relay.where(node.const(locations >= 0, "bool"), rows, lowest)
    last = len(lead) + 1
    best = relay.argmax(rows, axis=[last])
    shape = (*lead, *window.counts(sizes))
    hot = relay.equal(relay.expand_dims(node.cast(best, "int64"), axis=last), node.const(np.arange(locations.shape[1])))
    chosen = relay.sum(relay.where(hot, node.const(locations), node.const(0)), axis=[last])
    return relay.reshape(relay.max(rows, axis=[last]), shape, allowzero=True), relay.reshape(
        chosen, shape, allowzero=True
    )


def transposed_convolution(
    node: Tensors, x: Expr, weight: Expr, window: Window, output_padding: Sequence[int], groups: int
) -> Expr:
    """A convolution the other way: each element of `x` (batch, channels, …) adds a kernel's worth to the result.

    The pads are cut off the full result, `output_padding` is added behind it.
    """
    rank = window.rank
    reach = [window.reach(k) for k in range(rank)]
    # What is cut off more than the kernel reaches over, and what the operator cannot add, is done afterwards.
    cut = [max(pad - (k - 1), 0) for pad, k in zip(window.pads, reach * 2)]
    added = [max(one - (s - 1), 0) for one, s in zip(output_padding, window.strides)]
    function = (relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose)[rank - 1]
    channels = node.shape(weight)[1]
    result = function(
        x,
        weight,
        strides=list(window.strides),
        padding=[pad - less for pad, less in zip(window.pads, cut)],
        output_padding=[one - more for one, more in zip(output_padding, added)],
        groups=groups,
        dilation=list(window.dilations),
        channels=channels * groups if isinstance(channels, int) else None,
        kernel_size=list(window.kernel),
    )
    if any(added):
        result = relay.nn.pad(result, [(0, 0), (0, 0), *((0, more) for more in added)])
    if any(cut):
        sizes: Any = node.shape(result)[2:]
        ends = [size - cut[rank + k] for k, size in enumerate(sizes)]
        result = relay.strided_slice(result, begin=cut[:rank], end=ends, axes=list(range(2, 2 + rank)))
    return result
