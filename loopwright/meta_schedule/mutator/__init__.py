"""Mutators, one file each. Open `mutator.py` first."""

from loopwright.meta_schedule.mutator.compute_location import MutateComputeLocation as MutateComputeLocation
from loopwright.meta_schedule.mutator.mutator import Mutator as Mutator
from loopwright.meta_schedule.mutator.mutator import PyMutator as PyMutator
from loopwright.meta_schedule.mutator.mutator import create as create
from loopwright.meta_schedule.mutator.parallel import MutateParallel as MutateParallel
from loopwright.meta_schedule.mutator.thread_binding import MutateThreadBinding as MutateThreadBinding
from loopwright.meta_schedule.mutator.tile_size import MutateTileSize as MutateTileSize
from loopwright.meta_schedule.mutator.unroll import MutateUnroll as MutateUnroll

_CPU = [(MutateTileSize, 0.9), (MutateComputeLocation, 0.05), (MutateUnroll, 0.03), (MutateParallel, 0.02)]
_GPU = [(MutateTileSize, 0.9), (MutateUnroll, 0.08), (MutateThreadBinding, 0.02)]
Mutator.sets = {
    **dict.fromkeys(("llvm", "vnni", "avx512", "asimd", "dotprod"), _CPU),
    **dict.fromkeys(("cuda", "cuda-tensorcore"), _GPU),
}
