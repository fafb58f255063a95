"""Postprocs, one file each, and those for CPUs in their order."""

from __future__ import annotations

from loopwright.tune.sketches.postprocs.postproc import Postproc
from loopwright.tune.sketches.postprocs.rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll

__all__ = ["Postproc", "RewriteParallelVectorizeUnroll", "llvm_postprocs"]


def llvm_postprocs() -> list[Postproc]:
    """What finishes a schedule for a CPU."""
    return [RewriteParallelVectorizeUnroll()]
