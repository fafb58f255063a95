"""CombineParallelConv2D: convolutions of the same data become one with all their filters.

    nn.conv2d(%x, w0), nn.conv2d(%x, w1), nn.conv2d(%x, w2)    →    slices of nn.conv2d(%x, concatenate((w0, w1, w2)))

They agree in strides, padding, dilation, layouts, types and in the size of their windows, and have one group.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.relay.expr import Call, Expr
from loopwright.relay.transform.fusion.combine_parallel import Siblings, combine_pass, join
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import TensorType


class _Convolutions(Siblings):
    operator = "nn.conv2d"

    def key(self, call: Call, data: TensorType, weight: TensorType) -> object | None:
        attrs = call.attrs
        if attrs.groups != 1 or not attrs.kernel_layout.isalpha() or not attrs.data_layout.isalpha():
            return None
        if attrs.out_layout not in ("", attrs.data_layout):
            return None
        window = tuple(str(size) for axis, size in zip(attrs.kernel_layout, weight.shape, strict=True) if axis != "O")
        same = attrs.with_(channels=None, kernel_size=None)
        return (same.key(), window, str(weight.dtype), str(data.dtype))

    def axis(self, call: Call, result: TensorType) -> int:
        return call.attrs.data_layout.index("C")

    def joined(self, calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Expr:
        attrs = calls[0].attrs.with_(channels=None)
        return Call(calls[0].op, [data, join(weights, attrs.kernel_layout.index("O"))], attrs)


def CombineParallelConv2D(min_num_branches: int = 3) -> GraphPass:
    """Make one convolution of at least so many of the same data."""
    return combine_pass(_Convolutions, "CombineParallelConv2d", min_num_branches)
