"""The cost of inlining: computing a value again wherever it is read, against a buffer that keeps it.

    R[i, j] = …                        3 instructions: cheaper computed twice than stored and loaded
    V[i, j] = U[i, j] + R[i, j]      300 instructions: computed once, into a buffer
    E[i] += R[i, j] * R[i, j]

Reads of the same cell by one reader are one: the compiler computes equal values once. Conditions are not counted where
few places are read, since lowering cuts the loops at them; from more places there would be too many parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.contiguous import size_of
from loopwright.autosched.facts import Access, BlockFacts
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import common_lanes, instructions
from loopwright.ir import Buffer, BufferLoad, Expr, Max, Min, Var, any_node, collect, structural_equal, uses_var

MAX_TAPS: Final = 9  # of conditions: a loop nest is cut for 3 × 3 of them, not for 5 × 5
MANY_INSTRUCTIONS: Final = 12  # a load and its share of a store take no longer than a few
INSTRUCTIONS_TOGETHER: Final = 160  # of a value in all places that take it: with more, a buffer is no time lost

Read = tuple[BlockFacts, Access]  # who reads, and what


def places(reads: Sequence[Read]) -> list[Read]:
    """The reads that a compiler cannot make one: by different readers, or of different cells."""
    result: list[Read] = []
    for reader, access in reads:
        if not any(reader is other and _is_same_cell(access, seen) for other, seen in result):
            result.append((reader, access))
    return result


def times_computed(facts: BlockFacts, reads: Sequence[Read]) -> int:
    """How often each value would be computed, about."""
    evaluated = sum(size_of(reader.axes) for reader, _ in reads)
    cells = max(1, size_of(facts.axes))
    return 1 if evaluated <= cells else max(2, round(evaluated / cells))


def times_repeated(facts: BlockFacts, reads: Sequence[Read]) -> int:
    """How often one read would compute each value, in other iterations of the loops around a row.

    What does not change along the row that a reader walks is computed before the row, wherever it is written.
    """
    again = [(reader, access) for reader, access in reads if reader.is_injective and _moves_along_row(reader, access)]
    return max([times_computed(facts, [read]) for read in again], default=1)


def is_long(facts: BlockFacts) -> bool:
    """Whether a value takes so many instructions that it is rather loaded than computed again."""
    return instructions(facts, with_conditions=False) >= MANY_INSTRUCTIONS


def is_long_together(facts: BlockFacts, readers: Sequence[BlockFacts]) -> bool:
    """Whether the readers would become so long with the value in each place that takes it, that the time is no matter.

    The compiler computes equal values once, but it reads all of them.
    """
    loads = [load for reader in readers for store in reader.stores for load in collect(store.value, BufferLoad)]
    uses = sum([load.buffer is facts.write.buffer for load in loads])
    return uses > 1 and uses * instructions(facts, with_conditions=False) > INSTRUCTIONS_TOGETHER


def locates_several(reader: BlockFacts, buffer: Buffer) -> bool:
    """Whether cells of the buffer are indices of several loads."""
    loads = [load for store in reader.stores for load in collect(store.value, BufferLoad)]
    located = [load for load in loads if any(_reads(index, buffer) for index in load.indices)]
    return len(located) > 1


def _reads(index: Expr, buffer: Buffer) -> bool:
    return any_node(index, lambda node: isinstance(node, BufferLoad) and node.buffer is buffer)


def _moves_along_row(reader: BlockFacts, access: Access) -> bool:
    moving = [axis for axis in reader.axes if axis.extent != 1]
    return bool(moving) and access.uses(moving[-1].var)


def is_cheaper_again(facts: BlockFacts, reads: Sequence[Read], machine: Machine) -> bool:
    """Whether computing the value at each of these places takes no longer than a buffer does.

    Cycles are those of one vector: what a reader has beside it is the same either way.
    """
    count = len(reads)
    needed = instructions(facts, with_conditions=False, one_extremum=machine.cpu.units.has_whole_max)
    work = needed / machine.vector_per_cycle
    moves = len(facts.reads) / machine.loads_per_cycle
    load = 1 / machine.loads_per_cycle
    size = bytes_of(facts.dtype)
    rate = min(machine.l2_bytes_per_cycle, machine.bytes_per_cycle(size * size_of(facts.axes)))
    traffic = 2 * size * common_lanes(facts, machine) / rate  # it is written, and comes back
    again, once = max(work, moves), max(work, moves + load)
    picking = _picking(facts, machine)
    return count * (again + picking) <= once + picking + count * load + traffic


def _picking(facts: BlockFacts, machine: Machine) -> float:
    """Cycles to put together a vector of what is read at places that data or limits decide: lane by lane."""
    moving = [axis for axis in facts.axes if axis.extent != 1]
    if not moving:
        return 0.0
    lanes, along = common_lanes(facts, machine), moving[-1].var
    picked = [access for access in facts.reads if access.stride(along) is None and _is_picked(access, along)]
    return sum([lanes * machine.lane_cycles(bytes_of(str(access.buffer.dtype))) for access in picked])


def _is_picked(access: Access, along: Var) -> bool:
    moved = [index for index in access.indices if uses_var(index, lambda var: var is along)]
    return any(any_node(index, lambda node: isinstance(node, (BufferLoad, Max, Min))) for index in moved)


def _is_same_cell(access: Access, other: Access) -> bool:
    return all(structural_equal(x, y) for x, y in zip(access.indices, other.indices, strict=True))
