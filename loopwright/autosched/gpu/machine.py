"""GpuMachine: the figures that rules ask for, derived from the description of a GPU.

What a rule decides follows from three of them: how many threads run at once (a grid fills the GPU, or does not), how
many bytes a second come from memory (the time that a kernel takes at least), and how much shared memory a block may
have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Final

from loopwright.target import GpuDescription, Target, describe_gpu

VECTOR_BYTES: Final = 16  # the widest load and store of a thread
USUAL_THREADS: Final = 256  # a block: enough to hide latency, few enough that a multiprocessor holds several blocks
BLOCK_BYTES: Final = 4 << 10  # of an operand in a block that streams: with 16 KiB an H200 takes 4 % longer
IN_FLIGHT: Final = 4  # loads of a thread under way: with all threads, several times what memory's latency takes
_BANDWIDTH: Final = 12e9  # bytes a second and multiprocessor, where no data sheet says: between a T4 and an A100
_REACHED: Final = 0.88  # of the nominal bandwidth: 4.22 of 4.8 TB/s in a copy on an H200
_CACHED: Final = 2.5  # how much faster than memory L2 is, about
_CLOCK: Final = 1.4e9  # a second, where nobody says how much the GPU computes
_MATRIX_FLOPS: Final = 4096.0  # a cycle, of the tensor cores of a multiprocessor, where no data sheet says: an H100's
_LAUNCH: Final = 2.5e-6  # seconds from the start of a small kernel to the start of the next one in a stream
_USUAL_BOARD: Final = "nvidia/nvidia-h200"  # of sm_90a


@dataclass(frozen=True)
class GpuMachine:
    """A GPU as the rules see it."""

    gpu: GpuDescription

    @classmethod
    def of(cls, target: Target | GpuDescription | str) -> GpuMachine:
        """The GPU that a cuda target means."""
        return cls(describe_gpu(target))

    @cached_property
    def key(self) -> str:
        """What choices depend on, for the compile cache."""
        return repr(self.gpu)

    # --- threads --------------------------------------------------------------------------------------------------

    @property
    def warp(self) -> int:
        """Threads that run together."""
        return self.gpu.warp_size

    @property
    def max_threads(self) -> int:
        """Of a block."""
        return self.gpu.max_threads_per_block

    @property
    def multiprocessors(self) -> int:
        return self.gpu.multiprocessors

    @cached_property
    def resident_threads(self) -> int:
        """Threads that all multiprocessors hold at once."""
        return self.multiprocessors * self.gpu.max_threads_per_multiprocessor

    def threads(self, wanted: int) -> int:
        """The largest block of whole warps of at most `wanted` threads that the target allows."""
        most = max(1, min(wanted, self.max_threads))
        return most // self.warp * self.warp or most

    def blocks_at_once(self, threads: int, shared: int = 0, registers: int = 32) -> int:
        """How many blocks of that size the whole GPU runs at once: a wave."""
        return self.multiprocessors * max(1, self.gpu.blocks_per_multiprocessor(threads, shared, registers))

    def waves(self, blocks: int, threads: int, shared: int = 0, registers: int = 32) -> float:
        """How many waves so many blocks are."""
        return blocks / self.blocks_at_once(threads, shared, registers)

    # --- memory ---------------------------------------------------------------------------------------------------

    @property
    def shared_memory(self) -> int:
        """Bytes that a block may have."""
        return self.gpu.max_shared_memory_per_block

    @property
    def has_bulk_copies(self) -> bool:
        """Whether memory is copied to shared memory by no thread (`cp.async.bulk`, mbarriers)."""
        return self.gpu.has_clusters

    @property
    def has_wgmma(self) -> bool:
        """Whether warpgroups multiply tiles in shared memory (`wgmma`): on sm_90a alone."""
        return self.gpu.has_wgmma

    @property
    def static_shared_memory(self) -> int:
        """Bytes that a block gets in scope "shared"; more of them only as "shared.dyn"."""
        return self.gpu.static_shared_memory_per_block

    @property
    def l2(self) -> int:
        """Bytes; 4 MiB where nobody says."""
        return self.gpu.l2_cache_bytes or 4 << 20

    @property
    def banks(self) -> int:
        """Of shared memory, each four bytes wide."""
        return 32

    @property
    def line(self) -> int:
        """Bytes of a cache line: what a warp that reads four bytes a thread, all neighbours, asks for."""
        return 128

    @cached_property
    def bandwidth(self) -> float:
        """Bytes a second that a good kernel gets from memory."""
        return _REACHED * (self.gpu.memory_bandwidth or _BANDWIDTH * self.multiprocessors)

    def bandwidth_of(self, footprint: int) -> float:
        """Bytes a second of data that takes `footprint` bytes in all and was used just before."""
        return self.bandwidth * (_CACHED if footprint <= self.l2 // 2 else 1.0)

    def lanes(self, itemsize: int) -> int:
        """Numbers of that size in the widest load."""
        return max(1, VECTOR_BYTES // itemsize)

    # --- arithmetic and time --------------------------------------------------------------------------------------

    @cached_property
    def flops(self) -> float:
        """float32 operations a second, a multiply-add counted as two."""
        return self.gpu.float32_flops or 2.0 * 64 * self.multiprocessors * _CLOCK

    @cached_property
    def matrix_flops(self) -> float:
        """float16 operations a second of tensor cores; of elements of one byte they do twice as many."""
        return self.gpu.float16_flops or _MATRIX_FLOPS * self.multiprocessors * _CLOCK

    @property
    def launch(self) -> float:
        """Seconds that a kernel takes which does nothing."""
        return _LAUNCH


def blocks_for(work: int, each: int) -> int:
    """How many blocks that do `each` of it do all of the work."""
    return ceil(work / each)


def with_figures(machine: GpuMachine) -> GpuMachine:
    """The machine, with the figures of a usual board where only its architecture is known.

    A block for each multiprocessor stays until all tiles are computed, so no fewer must be counted than there are.
    """
    if machine.gpu.name or machine.gpu.is_host:
        return machine
    usual = describe_gpu(_USUAL_BOARD)
    names = ("multiprocessors", "l2_cache_bytes", "memory_bandwidth", "float32_flops", "float16_flops")
    return GpuMachine(replace(machine.gpu, **{name: getattr(usual, name) for name in names}))
