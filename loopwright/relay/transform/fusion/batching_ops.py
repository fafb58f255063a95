"""BatchingOps: convolutions, dense layers and products of matrices of the same data become one of each kind."""

from __future__ import annotations

from loopwright.ir.passes import Sequential
from loopwright.relay.transform.fusion.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from loopwright.relay.transform.fusion.combine_parallel_conv2d import CombineParallelConv2D
from loopwright.relay.transform.fusion.combine_parallel_dense import CombineParallelDense


def BatchingOps() -> Sequential:
    """The three passes that combine what runs side by side, one after the other."""
    passes = [CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()]
    return Sequential(passes, name="BatchingOps")
