"""Machine: the numbers a cost model asks for, in cycles and bytes, derived from the description of a CPU.

Only ratios matter for a choice, so everything is counted in cycles of one core: how much arithmetic a cycle does, how
many bytes each level of memory brings to a core in one, and what it costs to have the other cores join in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil

from loopwright.runtime import num_threads
from loopwright.runtime.dtype import DataType
from loopwright.target import CpuDescription, Moves, Target, describe
from loopwright.target.microarchitecture import NONE_AHEAD


@dataclass(frozen=True)
class Machine:
    """A CPU as the rules see it."""

    cpu: CpuDescription
    cores: int
    has_instructions: bool = True  # a program may name instructions: C sources cannot

    @classmethod
    def of(cls, target: Target | CpuDescription | str) -> Machine:
        """The machine that a target means; on this one, as many cores as parallel loops have threads."""
        cpu = describe(target)
        says = isinstance(target, CpuDescription) or "num-cores" in Target(target).attrs
        cores = num_threads() if cpu.is_host and not says else cpu.num_cores
        plain = not isinstance(target, CpuDescription) and str(Target(target).kind) == "c"
        return cls(cpu, max(1, cores), has_instructions=not plain)

    @cached_property
    def key(self) -> str:
        """What choices depend on beside the target, for the compile cache."""
        return f"{self.cores} {self.cpu.microarchitecture} {self.cpu.cache_sizes}"

    def lanes(self, dtype: str) -> int:
        """How many numbers of `dtype` a vector holds."""
        result = self._lanes.get(dtype)
        if result is None:
            result = self._lanes[dtype] = self.cpu.native_vector_lanes(dtype)
        return result

    @cached_property
    def _lanes(self) -> dict[str, int]:
        return {}  # asked for thousands of times when tiles are chosen

    # --- what a core does in a cycle ------------------------------------------------------------------------------

    @cached_property
    def fma_per_cycle(self) -> int:
        """Vector multiply-adds that a core starts in a cycle."""
        return self.cpu.microarchitecture.fma_per_cycle(self.cpu.vector_bits)

    @cached_property
    def loads_per_cycle(self) -> int:
        """Vector loads that a core starts in a cycle."""
        return self.cpu.microarchitecture.loads_per_cycle(self.cpu.vector_bits)

    @cached_property
    def fma_latency(self) -> int:
        """So this many times `fma_per_cycle` sums must be under way to keep the units busy."""
        return self.cpu.microarchitecture.fma_latency

    @cached_property
    def l1_bytes_per_cycle(self) -> float:
        return self.cpu.microarchitecture.l1_bytes_per_cycle(self.cpu.vector_bits)

    @cached_property
    def l2_bytes_per_cycle(self) -> float:
        return min(self.l1_bytes_per_cycle, self.cpu.microarchitecture.l2_bytes_per_cycle)

    @cached_property
    def l3_bytes_per_cycle(self) -> float:
        """Of one core."""
        return self.cpu.microarchitecture.l3_bytes_per_cycle

    @cached_property
    def memory_bytes_per_cycle(self) -> float:
        """Of one core."""
        return self.cpu.microarchitecture.memory_bytes_per_cycle

    @cached_property
    def memory_cores(self) -> int:
        """So many cores use up the bandwidth of memory."""
        return self.cpu.microarchitecture.memory_cores

    @cached_property
    def fork_cycles(self) -> int:
        """To have all cores start and to wait for the last one."""
        return self.cpu.microarchitecture.fork_cycles

    @cached_property
    def vector_per_cycle(self) -> int:
        """Vector instructions other than loads and stores that a core starts in a cycle."""
        return self.cpu.microarchitecture.vector_per_cycle

    @cached_property
    def element_cycles(self) -> float:
        """For an element that fills no vector, at least: it is loaded and stored by itself."""
        return self.cpu.microarchitecture.element_cycles

    def lane_cycles(self, itemsize: int) -> float:
        """For a lane of a vector whose cells do not lie next to each other: gathered, or loaded and inserted."""
        core = self.cpu.microarchitecture
        has_gather = self.cpu.uses_gather and itemsize >= core.gather_bytes
        return core.gather_cycles if has_gather else core.insert_cycles

    @cached_property
    def moves(self) -> Moves:
        """What copying, packing and transposing take."""
        return self.cpu.microarchitecture.moves

    @cached_property
    def streams(self) -> int:
        """Rows that can be read side by side, each along memory."""
        return self.cpu.microarchitecture.streams

    @cached_property
    def slab_rows(self) -> int:
        """Rows of a matrix, read as it lies, whose products are added up before accumulators are stored."""
        return self.cpu.microarchitecture.slab_rows

    @cached_property
    def is_late(self) -> bool:
        """Whether lines from memory come no sooner because arithmetic goes on: hardware has too few under way."""
        return self.cpu.microarchitecture.lookahead == NONE_AHEAD

    @cached_property
    def page(self) -> int:
        """Bytes: hardware that brings lines of a stream ahead does so within one."""
        return self.cpu.microarchitecture.page

    # --- what it holds ----------------------------------------------------------------------------------------------

    @property
    def registers(self) -> int:
        return self.cpu.registers

    @property
    def l1(self) -> int:
        return self.cpu.cache_sizes.l1d or 32 << 10

    @property
    def l2(self) -> int:
        return self.cpu.cache_sizes.l2 or 4 * self.l1

    @cached_property
    def l3(self) -> int:
        """The last cache, as far as it helps: a machine without one has its second."""
        return max(self.cpu.cache_sizes.l3, self.l2)

    @property
    def line(self) -> int:
        return self.cpu.cache_sizes.line or 64

    def flops_per_cycle(self, dtype: str) -> float:
        """What one core computes at most: a multiply-add counts as two."""
        per_lane = 2 if self.cpu.has_fma else 1
        return float(self.fma_per_cycle * self.lanes(dtype) * per_lane)

    def bytes_per_cycle(self, footprint: int) -> float:
        """How fast one core reads data that is used again and again and takes `footprint` bytes in all."""
        if footprint <= self.l1:
            return self.l1_bytes_per_cycle
        if footprint <= self.l2:
            return self.l2_bytes_per_cycle
        return self.l3_bytes_per_cycle if footprint <= self.l3 // 2 else self.memory_bytes_per_cycle

    @cached_property
    def runs_here(self) -> bool:
        """Whether the compiler can run code for the machine, and so compute constants ahead of the call."""
        from loopwright.transform.passes.precompute_constants import runs_here  # lowering: not needed for a figure

        return runs_here(self.cpu)

    def threads_for(self, cycles: float) -> int:
        """How many cores are worth waking for that much work: each must get more than waking costs."""
        return max(1, min(self.cores, int(cycles // self.fork_cycles)))


@cache
def bytes_of(dtype: str) -> int:
    """The size of one number in memory."""
    return max(1, DataType(dtype).element.bits // 8)


def rounded_up(value: int, step: int) -> int:
    """The next multiple of `step`."""
    return ceil(value / step) * step


def tile_utilisation(size: int, step: int) -> float:
    """How much of the whole steps that cover `size` is asked for."""
    return size / rounded_up(size, step) if size else 1.0
