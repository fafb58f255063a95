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
from loopwright.ir import BufferLoad, Max, Min, Var, any_node, structural_equal, uses_var

MAX_TAPS: Final = 9  # of conditions: a loop nest is cut for 3 × 3 of them, not for 5 × 5

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
