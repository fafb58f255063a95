"""Postprocs, one file each, and those for CPUs in their order."""

from __future__ import annotations

from loopwright.tune.sketches.postprocs.disallow_dynamic_loop import DisallowDynamicLoop
from loopwright.tune.sketches.postprocs.disallow_recomputation import DisallowRecomputation
from loopwright.tune.sketches.postprocs.postproc import Postproc
from loopwright.tune.sketches.postprocs.remove_notes import RemoveNotes
from loopwright.tune.sketches.postprocs.rewrite_lanes import RewriteLanes
from loopwright.tune.sketches.postprocs.rewrite_layout import RewriteLayout
from loopwright.tune.sketches.postprocs.rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from loopwright.tune.sketches.postprocs.rewrite_reduction_block import RewriteReductionBlock
from loopwright.tune.sketches.postprocs.rewrite_tensorize import RewriteTensorize
from loopwright.tune.sketches.postprocs.sink_allocations import SinkAllocations

__all__ = [
    "DisallowDynamicLoop",
    "DisallowRecomputation",
    "Postproc",
    "RemoveNotes",
    "RewriteLanes",
    "RewriteLayout",
    "RewriteParallelVectorizeUnroll",
    "RewriteReductionBlock",
    "RewriteTensorize",
    "SinkAllocations",
    "llvm_postprocs",
]


def llvm_postprocs() -> list[Postproc]:
    """What finishes a schedule for a CPU."""
    return [
        DisallowDynamicLoop(),
        DisallowRecomputation(),
        RewriteLanes(),  # before vectors are made of what is left
        SinkAllocations(),  # before loops are fused
        RewriteReductionBlock(),
        RewriteParallelVectorizeUnroll(),
        RewriteLayout(),
        RemoveNotes(),
    ]
