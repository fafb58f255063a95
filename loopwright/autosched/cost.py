"""cost: what the parts of a tiled kernel take, in cycles of one core.

    micro_kernel(machine, mr, vectors, k)         a register tile over k steps of a reduction
    at_once(arithmetic, streaming)                multiply-adds, while their weights stream from memory
    on_threads(machine, task, tasks, threads)     all tasks, when each thread takes the next one

Every rule that chooses tiles prices them with these, from the microarchitecture of the target (`target/`): ports,
bandwidths, and what copies and transposes take (`machine.moves`). What only one kind of kernel has (how often it packs,
transforms, the edge of an image) the rule counts itself.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from loopwright.autosched.machine import Machine

SHARED_LOAD: Final = 0.2  # a load goes on beside the multiply-adds, but is in their way now and then
OVERHEAD: Final = 40  # start the pipeline of multiply-adds, drain it, leave two loops
LOOP: Final = 2  # count and branch
TILE: Final = 6  # start the sums of a tile that is one run of instructions, count, branch
UNALIGNED: Final = 1.5  # times a load that starts anywhere in a cache line, and meets two of them half of the time
EDGE: Final = 1.02  # a tile of its own at the edge, which takes compiling too
EDGE_OF_EACH_ROW: Final = 1.05  # the same after every few tiles: two micro-kernels take turns (VGG-19: 4 % slower)
LATE: Final = 0.05  # of a task's time: cores are not equally fast, and all wait for the last
# Of the shorter of two things that go on at once, multiply-adds and the weights they wait for: streams from memory are
# in the way more than what some cache still has.
IN_THE_WAY: Final = 0.6
IN_THE_WAY_CACHED: Final = 0.2
UNHIDDEN: Final = 0.5  # of the time it takes to bring data nearer: the rest goes on beside the multiply-adds


def tile_step(machine: Machine, rows: int, vectors: int, products: float = 1.0) -> float:
    """Cycles of one step of a reduction on a register tile of `rows` × `vectors` accumulators, its operands in L1.

    `products` is how many instructions a multiply-add takes.
    """
    loads = rows + vectors
    arithmetic = rows * vectors * products / machine.fma_per_cycle
    return max(arithmetic, loads / machine.loads_per_cycle, float(machine.fma_latency)) + loads * SHARED_LOAD


def micro_kernel(machine: Machine, rows: int, vectors: int, k: int) -> float:
    """Cycles of a register tile over `k` steps, its operands in L1."""
    return k * tile_step(machine, rows, vectors) + OVERHEAD


def at_once(first: float, second: float, is_cached: bool = False) -> float:
    """Cycles of two things that go on at the same time; `is_cached` if the data of one was read a moment before."""
    return max(first, second) + (IN_THE_WAY_CACHED if is_cached else IN_THE_WAY) * min(first, second)


def relayout(machine: Machine) -> float:
    """Cycles for an element of a tensor whose order of dimensions changes, by a kernel of its own."""
    return machine.moves.copied + machine.moves.transposed


def turns_of(tasks: int, threads: int) -> int:
    """How many tasks the thread with the most of them has."""
    return ceil(tasks / threads)


def on_threads(machine: Machine, task: float, tasks: int, threads: int) -> float:
    """Cycles until the last of `threads` threads has done its share of `tasks` tasks of `task` cycles each."""
    if threads == 1:
        return task * tasks
    turns = turns_of(tasks, threads)
    return task * turns * (1 + LATE / turns) + machine.fork_cycles
