"""GatherCost: what it takes to put a vector together whose cells do not lie next to each other.

    C[i] = A[6 * i] + A[6 * i + 1]      6 loads and 5 shuffles for each vector of A: the cells between are left out
    C[i] = A[I[i]]                      a load and an insertion for each lane
    C[i] = A[max(i - 2, 0)]             a gather: at the border neighbours are one cell

No roofline counts that, so it is a term of its own: a plan that says how near the limit it runs must not leave it out.
Where lanes of small numbers are far apart, or the arithmetic is that of small numbers, one element after the other is
what the compiler makes most of: it sees how narrow a type holds each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.facts import Access, Axis, BlockFacts, loads_of
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import NestCost, common_lanes, instructions
from loopwright.codegen.llvm.strided_lanes import LONGEST_STRIDE
from loopwright.ir import Call, Expr, Max, Min, Node, any_node, uses_var

_SMALL: Final = 2  # bytes: two of these are multiplied in what the registers hold twice as many of


class GatherCost:
    """How the loads of a block walk along the axis of its vectors."""

    def __init__(self, facts: BlockFacts, along: Axis | None, machine: Machine) -> None:
        self.facts = facts
        self.machine = machine
        self.core = machine.cpu.microarchitecture
        self.lanes = common_lanes(facts, machine)
        self.register_bytes = machine.cpu.vector_bits // 8
        loads = [] if along is None else _places(facts.reads)
        self.strides = [(access, _stride(access, along)) for access in loads if along is not None]
        rows = [access for access, stride in self.strides if stride == 1]
        self.clamped = [access for access in rows if along is not None and _is_clamped(access, along)]

    @property
    def near(self) -> list[tuple[Access, int]]:
        """Loads that leave a few cells out."""
        return [(access, stride) for access, stride in self.strides if 1 < abs(stride) <= LONGEST_STRIDE]

    @property
    def far(self) -> list[Access]:
        """Loads whose lanes come one by one."""
        return [access for access, stride in self.strides if abs(stride) > LONGEST_STRIDE]

    @property
    def cycles(self) -> float:
        """For one vector of results."""
        shuffles = sum(max(1, self._vectors(access, stride) - 1) for access, stride in self.near)
        inserts = len(self.far) * self.lanes
        gathers = sum(self.lanes * self.machine.lane_cycles(_itemsize(access)) for access in self.clamped)
        return shuffles * self.core.shuffle_cycles + inserts * self.core.insert_cycles + gathers

    def _vectors(self, access: Access, stride: int) -> int:
        """How many registers hold the cells between the first lane and the last."""
        return -(-self.lanes * abs(stride) * _itemsize(access) // self.register_bytes)

    def added_to(self, work: NestCost) -> NestCost:
        """The cost of the block with this."""
        return replace(work, picking=work.elements / self.lanes * self.cycles)

    def is_better_by_element(self) -> bool:
        """Whether lanes that come one by one take longer than all of the work one element after the other."""
        narrow = [access for access in self.far if _itemsize(access) <= _SMALL]
        if not narrow or self.facts.costly_calls:
            return False
        needed = instructions(self.facts, one_extremum=self.machine.cpu.units.has_whole_max)
        one = max(self.machine.element_cycles, (len(self.strides) + needed) / self.core.scalar_per_cycle)
        return one <= (self.cycles + needed / self.machine.vector_per_cycle) / self.lanes

    def note(self, decision: Decision) -> None:
        """Say what is picked, and from where."""
        for stride in sorted({abs(stride) for _, stride in self.near}):
            names = dict.fromkeys([access.buffer.name for access, own in self.near if abs(own) == stride])
            decision.chose(
                f"lanes of {', '.join(names)} shuffled out of vector loads",
                f"their stride is {stride} elements; the roofline does not count these loads and shuffles",
                ChoiceKind.STRIDED,
            )
        if self.far:
            names = dict.fromkeys([access.buffer.name for access in self.far])
            why = "their strides are large or depend on data: a gather, one load per lane"
            decision.chose(f"lanes of {', '.join(names)} loaded one by one", why, ChoiceKind.STRIDED)
        if self.clamped:
            names = dict.fromkeys([access.buffer.name for access in self.clamped])
            decision.chose(
                f"lanes of {', '.join(names)} loaded one by one",
                "the index is clamped, so several lanes may load the same cell",
                ChoiceKind.STRIDED,
            )


def is_small_arithmetic(facts: BlockFacts) -> bool:
    """Whether integers of 8 or 16 bits are made of such, by operations that the compiler knows.

    A choice between cells is none of them: the compiler would branch for each element.
    """
    accesses = (*facts.reads, *facts.writes)
    is_small = all(_itemsize(access) <= _SMALL for access in accesses)
    if not is_small or not facts.reads or not instructions(facts):
        return False

    def is_other(node: Node) -> bool:
        is_choice = isinstance(node, Call) and node.op.name == "tir.if_then_else"
        return isinstance(node, Expr) and (is_choice or node.dtype.kind not in ("int", "uint", "bool"))

    is_whole = not facts.costly_calls and not any([any_node(store.value, is_other) for store in facts.stores])
    return is_whole and any(not access.buffer.dtype.is_bool for access in accesses)


def _itemsize(access: Access) -> int:
    return bytes_of(str(access.buffer.dtype))


def _places(reads: Sequence[Access]) -> list[Access]:
    """Each cell once: values of the same one are loaded once."""
    result: dict[tuple[object, ...], Access] = {}
    for access in reads:
        result.setdefault((access.buffer, *[str(index) for index in access.indices]), access)
    return list(result.values())


def _is_clamped(access: Access, along: Axis) -> bool:
    """Whether a least or greatest value holds an index that walks along the axis: what it gives is no row."""

    def holds(node: Node) -> bool:
        return isinstance(node, (Min, Max)) and uses_var(node, {along.var}.__contains__)

    return any([any_node(index, holds) for index in access.indices])


def _stride(access: Access, along: Axis) -> int:
    """How far apart lanes are; more than any vector reaches where data says it."""
    stride = access.stride(along.var)
    if stride is not None:
        return stride
    return LONGEST_STRIDE + 1 if any(access.uses(along.var) and loads_of(index) for index in access.indices) else 1
