"""NestCost: what blocks that are done together cost, by arithmetic and by memory, in cycles of one core.

Instructions are counted for one vector of results, so that a rule can also tell how much work hides a latency, and how
far ahead of the data a processor can look. Bytes are counted once a buffer, however often the blocks come back to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.autosched.contiguous import bytes_read, size_of
from loopwright.autosched.decision import Decision, Roofline
from loopwright.autosched.facts import Access, BlockFacts
from loopwright.autosched.machine import Machine
from loopwright.ir import (
    BinaryExpr,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    CompareExpr,
    FloatImm,
    Max,
    Min,
    Select,
    Visitor,
    collect,
)
from loopwright.runtime.dtype import DataType
from loopwright.transform.parts.constant_work import size_of as whole_bytes

# Vector instructions of our own bodies of these functions, roughly; what is not here counts as one of the dear ones.
_INSTRUCTIONS: Final = {
    "exp": 14, "exp2": 12, "exp10": 16, "log": 20, "log2": 20, "log10": 20, "log1p": 24, "expm1": 20,
    "tanh": 22, "sigmoid": 18, "erf": 26, "sin": 24, "cos": 24, "tan": 30, "pow": 50, "sqrt": 6, "rsqrt": 8,
    "if_then_else": 1, "likely": 0, "fabs": 1, "abs": 1, "fma": 1, "floor": 1, "ceil": 1, "trunc": 1, "round": 2,
    "reinterpret": 0, "popcount": 2, "shift_left": 1, "shift_right": 1, "bitwise_and": 1, "bitwise_or": 1,
    "bitwise_xor": 1, "bitwise_not": 1,
}  # fmt: skip
_DEAR: Final = 40
_EXTREMUM: Final = 4  # of floats: a NaN is kept, and -0 is less than 0; some machines have an instruction for it
_MANY_CORES: Final = 16  # a reduction is divided so that so many cores could share it: see `pieces`


@dataclass(frozen=True)
class NestCost:
    """The cost of some blocks; where a size is not known it is guessed, and then `is_known` is false."""

    elements: int  # iterations of all blocks
    instructions: int  # for one vector of the dearest block, loads and stores aside
    arithmetic: float
    memory: float
    is_known: bool
    bytes: int = 0  # that have to come from memory, or go there
    picking: float = 0.0  # cycles to put vectors together from cells that lie apart: `gather_cost.py`

    @property
    def cycles(self) -> float:
        """The least time for all of it on one core."""
        return max(self.arithmetic + self.picking, self.memory)

    def pieces(self, machine: Machine) -> int:
        """How many pieces the work is worth dividing into.

        Dividing a reduction changes how its members are grouped, and so the last bits of a sum. So that these are the
        same for any number of cores, the number of pieces does not depend on it.
        """
        return max(1, min(_MANY_CORES, int(self.cycles // machine.fork_cycles)))

    def note(self, decision: Decision, share: float = 0.95) -> None:
        """Say how near the limit this should run."""
        decision.roofline = Roofline(self.arithmetic, self.memory, self.cycles / share)


def nest_cost(
    blocks: Sequence[BlockFacts], machine: Machine, kept: Sequence[Buffer] = (), is_cut: bool = False
) -> NestCost:
    """What all iterations of blocks cost in vectors; buffers in `kept` stay in a cache near the core.

    Where loops `is_cut` at the blocks' conditions, an iteration asks none of them and loads one of what they choose.
    """
    moved: dict[Buffer, int] = {}
    elements, most, arithmetic = 0, 0, 0.0
    for facts in blocks:
        for access in (*facts.reads, *facts.writes):
            if access.buffer not in kept:
                moved[access.buffer] = max(moved.get(access.buffer, 0), _bytes_touched(access, facts))
        size, needed = size_of(facts.axes), instructions(facts, not is_cut, machine.cpu.units.has_whole_max)
        loads = _chosen_loads(facts) if is_cut else len(facts.reads)
        moves = loads + (0 if facts.is_reduction else len(facts.writes))
        cycles = max(needed / machine.vector_per_cycle, moves / machine.loads_per_cycle)  # of one vector
        arithmetic += size / _computed_lanes(facts, machine) * cycles
        elements, most = elements + size, max(most, needed)
    is_known = all(axis.extent is not None for facts in blocks for axis in facts.axes)
    total = sum(moved.values())
    rate = machine.bytes_per_cycle(total)
    memory = total / (rate if is_known else min(rate, machine.l2_bytes_per_cycle))
    return NestCost(elements, most, arithmetic, memory, is_known, total)


def _bytes_touched(access: Access, facts: BlockFacts) -> int:
    """The bytes that an access touches: no more than the buffer has."""
    touched, whole = bytes_read(access, facts.axes), whole_bytes(access.buffer)
    return touched if whole is None else min(touched, whole)


def _chosen_loads(facts: BlockFacts) -> int:
    """The loads of one iteration where every condition is decided."""
    count = _CountChosenLoads()
    count.visit(facts.block.body)
    return count.total


def instructions(facts: BlockFacts, with_conditions: bool = True, one_extremum: bool = False) -> int:
    """Vector instructions of one iteration, loads, stores and the arithmetic of indices aside.

    Without conditions, only the dearest that they choose between is counted: cut loops do not ask them. With
    `one_extremum`, the machine has an instruction for the greater of two floats that keeps NaN.
    """
    count = (_Count if with_conditions else _CountChosen)(one_extremum)
    count.visit(facts.block.body)
    return count.total


class _Count(Visitor):
    """Instructions of the values, indices aside."""

    def __init__(self, one_extremum: bool = False) -> None:
        self.total = 0
        self.extremum = 1 if one_extremum else _EXTREMUM

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        """Counted as memory."""

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)

    def _one(self, expr: BinaryExpr | CompareExpr | Select | Cast) -> None:
        self.total += 1
        self.visit_children(expr)

    visit_BinaryExpr = visit_CompareExpr = visit_Select = visit_Cast = _one

    def _extremum(self, expr: Max | Min) -> None:
        is_simple = not expr.dtype.is_float or isinstance(expr.a, FloatImm) or isinstance(expr.b, FloatImm)
        self.total += 1 if is_simple else self.extremum
        self.visit_children(expr)

    visit_Max = visit_Min = _extremum

    def visit_Call(self, call: Call) -> None:
        self.total += _INSTRUCTIONS.get(call.op.name.removeprefix("tir."), _DEAR)
        self.visit_children(call)


class _CountChosen(_Count):
    """Instructions of the values where every condition is decided."""

    def visit_Call(self, call: Call) -> None:
        if _chooses(call):
            self.total = _dearest(self, call)
        else:
            super().visit_Call(call)


class _CountChosenLoads(Visitor):
    """Loads of the values where every condition is decided."""

    def __init__(self) -> None:
        self.total = 0

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.total += 1

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)

    def visit_Call(self, call: Call) -> None:
        if not _chooses(call):
            self.visit_children(call)
            return
        self.total = _dearest(self, call)


def _chooses(call: Call) -> bool:
    return call.op.name.removeprefix("tir.") == "if_then_else"


def _dearest(count: _Count | _CountChosenLoads, call: Call) -> int:
    """The count with the dearer of the two values that a call chooses between."""
    before, totals = count.total, []
    for value in call.args[1:]:
        count.total = before
        count.visit(value)
        totals.append(count.total)
    return max(totals)


def _computed_lanes(facts: BlockFacts, machine: Machine) -> int:
    """How many lanes a vector of the widest type has that is computed with, also between the loads and the store."""
    bits = [access.buffer.dtype.element.bits for access in (*facts.writes, *facts.reads)]
    bits += [node.dtype.element.bits for store in facts.stores for node in collect(store.value, Cast)]
    return max(1, min(common_lanes(facts, machine), machine.cpu.vector_bits // max(bits)))


def common_lanes(facts: BlockFacts, machine: Machine) -> int:
    """How many lanes a vector of the widest type in the block has: no value then needs two registers."""
    types = {str(access.buffer.dtype) for access in (*facts.writes, *facts.reads)}
    widest = max(types, key=lambda dtype: DataType(dtype).element.bits)
    return min(machine.lanes(widest), machine.lanes(facts.dtype))
