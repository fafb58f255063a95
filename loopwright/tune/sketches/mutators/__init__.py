"""Mutators, one file each, and those for CPUs with their probabilities."""

from __future__ import annotations

from loopwright.tune.sketches.mutators.compute_location import MutateComputeLocation
from loopwright.tune.sketches.mutators.mutator import Mutator
from loopwright.tune.sketches.mutators.parallel import MutateParallel
from loopwright.tune.sketches.mutators.tile_size import MutateTileSize
from loopwright.tune.sketches.mutators.unroll import MutateUnroll

__all__ = ["MutateComputeLocation", "MutateParallel", "MutateTileSize", "MutateUnroll", "Mutator", "llvm_mutators"]


def llvm_mutators() -> list[tuple[Mutator, float]]:
    """The mutators for CPUs: how often each is tried."""
    return [(MutateTileSize(), 0.9), (MutateComputeLocation(), 0.05), (MutateUnroll(), 0.03), (MutateParallel(), 0.02)]
