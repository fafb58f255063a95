"""How much there is to do: bytes that have to come from memory, and operations, in cycles of one core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.contiguous import bytes_read, size_of
from loopwright.autosched.decision import Roofline
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.machine import Machine
from loopwright.ir import BinaryExpr, Buffer, Node, post_order_visit

MANY_CORES = 16  # a reduction is divided so that so many cores could share it, however many there are: see `pieces`
CALL_OPERATIONS = 16  # of a vector of exp, log and the like


class Work(NamedTuple):
    """What some blocks have to do."""

    bytes: int
    memory: float
    arithmetic: float

    @property
    def cycles(self) -> float:
        return max(self.memory, self.arithmetic)

    def pieces(self, machine: Machine) -> int:
        """How many pieces the work is worth dividing into.

        Dividing a reduction changes how its members are grouped, and so the last bits of a sum. So that these are the
        same for any number of cores, the number of pieces does not depend on it.
        """
        return max(1, min(MANY_CORES, int(self.cycles // machine.fork_cycles)))

    def roofline(self, efficiency: float = 1.0) -> Roofline:
        return Roofline(self.arithmetic, self.memory, self.cycles / efficiency)


def work_of(blocks: Sequence[BlockFacts], machine: Machine, kept: Sequence[Buffer] = ()) -> Work:
    """The work of blocks that are done together; buffers in `kept` stay in a cache near the core."""
    moved: dict[Buffer, int] = {}
    arithmetic = 0.0
    for facts in blocks:
        for access in (*facts.reads, *facts.writes):
            if access.buffer not in kept:
                moved[access.buffer] = max(moved.get(access.buffer, 0), bytes_read(access, facts.axes))
        rate = machine.fma_per_cycle * machine.lanes(facts.dtype)
        arithmetic += size_of(facts.axes) * operations(facts) / rate
    total = sum(moved.values())
    return Work(total, total / machine.bytes_per_cycle(total), arithmetic)


def operations(facts: BlockFacts) -> int:
    """Operations of one iteration; index arithmetic is not among them."""
    count = 0

    def look(node: Node) -> None:
        nonlocal count
        if isinstance(node, BinaryExpr) and str(node.dtype) == facts.dtype:
            count += 1

    for store in facts.stores:
        post_order_visit(store.value, look)
    return max(1, count + CALL_OPERATIONS * facts.costly_calls)
