"""NestCost: what the iterations of one block cost, by arithmetic and by memory, in cycles of one core.

Instructions are counted for one vector of results, so that a rule can also tell how much work hides a latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopwright.autosched.decision import Decision, Roofline
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.machine import Machine
from loopwright.autosched.strides import Streams
from loopwright.ir import BinaryExpr, BufferLoad, BufferStore, Call, Cast, CompareExpr, Select, Visitor
from loopwright.runtime.dtype import DataType

# Vector instructions of our own bodies of these functions, roughly; what is not here counts as one of the dear ones.
_INSTRUCTIONS: Final = {
    "exp": 14, "exp2": 12, "exp10": 16, "log": 20, "log2": 20, "log10": 20, "log1p": 24, "expm1": 20,
    "tanh": 22, "sigmoid": 18, "erf": 26, "sin": 24, "cos": 24, "tan": 30, "pow": 50, "sqrt": 6, "rsqrt": 8,
    "if_then_else": 1, "likely": 0, "fabs": 1, "abs": 1, "fma": 1, "floor": 1, "ceil": 1, "trunc": 1, "round": 2,
    "reinterpret": 0, "popcount": 2,
}  # fmt: skip
_DEAR: Final = 40
_UNITS: Final = 2  # vector instructions other than loads and stores that a core starts in a cycle


@dataclass(frozen=True)
class NestCost:
    """The cost of a block; sizes that are not known count as one, and then `is_known` is false."""

    elements: int
    instructions: int  # for one vector of results, loads and stores aside
    arithmetic: float
    memory: float
    is_known: bool

    @property
    def cycles(self) -> float:
        """The least time for all of it on one core."""
        return max(self.arithmetic, self.memory)

    def note(self, decision: Decision, share: float = 0.95) -> None:
        """Say how near the limit this should run."""
        decision.roofline = Roofline(self.arithmetic, self.memory, self.cycles / share)


def nest_cost(facts: BlockFacts, streams: Streams, machine: Machine, lanes: int) -> NestCost:
    """What all iterations of a block cost in vectors of `lanes`."""
    count = _Count()
    count.visit(facts.block.body)
    elements, is_known = 1, True
    for axis in facts.axes:
        if axis.extent is None:
            is_known = False
        else:
            elements *= axis.extent
    touched = streams.bytes_touched()
    if touched is None:
        touched = elements * sum(stream.itemsize for stream in streams.all)
        rate = machine.l2_bytes_per_cycle
    else:
        rate = machine.bytes_per_cycle(touched)
    vector = max(count.total / _UNITS, len(streams.all) / machine.loads_per_cycle)
    return NestCost(elements, count.total, elements / lanes * vector, touched / rate, is_known)


class _Count(Visitor):
    """Instructions of the values, indices aside."""

    def __init__(self) -> None:
        self.total = 0

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        """Counted as memory."""

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)

    def _one(self, expr: BinaryExpr | CompareExpr | Select | Cast) -> None:
        self.total += 1
        self.visit_children(expr)

    visit_BinaryExpr = visit_CompareExpr = visit_Select = visit_Cast = _one

    def visit_Call(self, call: Call) -> None:
        self.total += _INSTRUCTIONS.get(call.op.name.removeprefix("tir."), _DEAR)
        self.visit_children(call)


def common_lanes(facts: BlockFacts, machine: Machine) -> int:
    """How many lanes a vector of the widest type in the block has: no value then needs two registers."""
    types = {str(access.buffer.dtype) for access in (*facts.writes, *facts.reads)}
    widest = max(types, key=lambda dtype: DataType(dtype).element.bits)
    return min(machine.lanes(widest), machine.lanes(facts.dtype))
