"""Short rows: results of few neighbours each: a block loads many rows at once, and each thread reduces one of them.

    for i, k in T.grid(524288, 49):    →    for b in blockIdx.x:                            128 rows a block
        S[i] += A[i, k]                         for v in threadIdx.x, …: A_shared[…] = A[…]     16 bytes a load
    for i: B[i] = S[i] / 49                     for t in threadIdx.x:
                                                    for k: s += A_shared[t, k]              registers
                                                    B[…] = s / 49

A warp for a row of 49 would load 32 and 17 elements, and spend more instructions on adding up its threads' parts than
on the row. The rows of a block are one piece of memory, which it loads in vectors although single rows begin anywhere.
As their length is no multiple of a vector, threads that walk over neighbouring rows are in different banks, or two in
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.joined_axes import join_axes
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.small_steps import fused, loops_below
from loopwright.autosched.streams import Streams
from loopwright.schedule import Schedule

_ROW_BLOCKS: Final = (128, 64)  # threads, each with a row
_FEWEST: Final = 9  # elements of a row: fewer are one load or two of a thread
_STAGED: Final = 26 << 10  # bytes of shared memory of a block: a multiprocessor then holds eight


def short_rows(facts: BlockFacts, machine: GpuMachine) -> int | None:
    """How many rows a block takes; None where rows are long, few, aligned for vectors, or not behind one another."""
    length, count = facts.extent(facts.reduce), facts.extent(facts.spatial)
    if length is None or count is None or len(facts.reads) != 1 or len(facts.stores) != 1:
        return None
    size = bytes_of(str(facts.reads[0].buffer.dtype))
    if length < _FEWEST or length % machine.lanes(size) == 0 or not facts.spatial or not _is_one_piece(facts):
        return None
    for rows in _ROW_BLOCKS:
        if rows * length * size <= _STAGED and rows <= machine.max_threads:
            return rows if count >= rows * machine.multiprocessors else None
    return None


def _is_one_piece(facts: BlockFacts) -> bool:
    """Whether what is read lies in memory in the order of the axes, results first, without gaps."""
    streams = Streams(facts)
    load, store = streams.loads[0], streams.stores[0]
    moving = [position for position, axis in enumerate(facts.axes) if axis.extent != 1]
    kinds = [facts.axes[position].is_reduce for position in moving]
    results = [position for position in moving if not facts.axes[position].is_reduce]
    if not streams.are_affine or kinds != sorted(kinds) or load.step(moving[-1]) != 1:
        return False
    is_in_order = all([streams.follows(store, outer, inner) for outer, inner in pairwise(results)])
    return is_in_order and all([streams.follows(load, outer, inner) for outer, inner in pairwise(moving)])


def reduce_short_rows(
    sch: Schedule, facts: BlockFacts, after: Sequence[str], rows: int, machine: GpuMachine, decision: Decision
) -> None:
    """Reduce `rows` rows in each block, and do what comes after each result in the thread that has it."""
    block = sch.get_block(facts.name)
    groups = [[k for k, axis in enumerate(facts.axes) if axis.is_reduce == kind] for kind in (False, True)]
    read = facts.reads[0].buffer
    names: list[str] = []
    if len(facts.axes) > 2:
        join_axes(sch, facts, groups)
        # A name for the operand by row and member. It is inlined as soon as that is staged: later proofs take longer.
        names.append(sch.get(sch.reindex(block, read.name)).name_hint)
    results = sch.get_block(after[-1]) if after else sch.cache_write(block, 0, "local")
    if after:
        sch.set_scope(block, 0, "local")
    row, member = sch.get_loops(block)
    own = fused(sch, sch.get_loops(results))
    sch.merge(*[sch.split(loop, [None, rows])[1] for loop in (row, own)])
    blocks, thread = sch.get_loops(results)
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    stage = sch.cache_read(block, 0, "shared")
    for name in names:
        sch.compute_inline(name)
    sch.compute_at(stage, blocks)
    lanes = machine.lanes(bytes_of(str(read.dtype)))
    step, loader, lane = sch.split(fused(sch, loops_below(sch, stage, blocks)), [None, rows, lanes])
    sch.bind(loader, "threadIdx.x")
    sch.unroll(step)
    sch.vectorize(lane)
    sch.unroll(member)
    length = facts.extent(facts.reduce)
    decision.chose(f"{rows} rows of {length} a block, a thread each", "they are one piece of memory")
    decision.chose(f"{read.name} in shared memory", f"loaded as vectors of {lanes}, whatever rows begin at")
