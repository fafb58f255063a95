"""CombineParallelBatchMatmul: products of one batch of matrices with several others become one.

nn.batch_matmul(%x, %a), nn.batch_matmul(%x, %b)    →    slices of nn.batch_matmul(%x, concatenate((%a, %b), axis=1))
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.relay.expr import Call, Expr
from loopwright.relay.transform.fusion.combine_parallel import Siblings, combine_pass, join
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import TensorType


class _Products(Siblings):
    operator = "nn.batch_matmul"

    def key(self, call: Call, data: TensorType, weight: TensorType) -> object | None:
        inner = weight.shape[2 if call.attrs.transpose_b else 1]
        return (call.attrs.key(), str(weight.shape[0]), str(inner), str(weight.dtype))

    def axis(self, call: Call, result: TensorType) -> int:
        return 2

    def joined(self, calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Expr:
        return Call(calls[0].op, [data, join(weights, 1 if calls[0].attrs.transpose_b else 2)], calls[0].attrs)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> GraphPass:
    """Make one product of at least so many with the same left operand."""
    return combine_pass(_Products, "CombineParallelBatchMatmul", min_num_branches)
