"""footprint: which memory a statement touches, by buffer, to find what two statements share.

Memory is told apart by the pointer it stands behind, so views of one buffer count as that buffer. This is a quick
filter before the proof: statements that share nothing they write may pass each other in any way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from loopwright.ir import (
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Expr,
    IntImm,
    MatchBufferRegion,
    Stmt,
    Var,
    Visitor,
    deep,
)
from loopwright.runtime.dtype import HANDLE
from loopwright.schedule.errors import NotProved


@dataclass
class Footprint:
    """The memory a statement reads and writes; `effects` are calls that do more than give a value."""

    reads: dict[Var, Buffer] = field(default_factory=dict)
    writes: dict[Var, Buffer] = field(default_factory=dict)
    effects: list[Call] = field(default_factory=list)

    def conflicts(self, other: Footprint) -> bool:
        """Whether one writes what the other touches, or both have effects."""
        return bool(self.shared(other)) or bool(self.effects and other.effects)

    def shared(self, other: Footprint) -> dict[Var, Buffer]:
        """The memory both touch and at least one writes."""
        result = {data: buffer for data, buffer in self.writes.items() if data in other.writes or data in other.reads}
        result.update({data: buffer for data, buffer in other.writes.items() if data in self.reads})
        return result


class _Collect(Visitor):
    def __init__(self) -> None:
        self.found = Footprint()
        self.views: dict[Var, Buffer] = {}  # a matched buffer's pointer → the buffer it is a window of
        self.declared: set[Var] = set()  # what the block around declares to read or write

    def visit_Block(self, block: Block) -> None:
        for match in block.match_buffers:
            self.visit_MatchBufferRegion(match)
        outer, self.declared = self.declared, {region.buffer.data for region in (*block.reads, *block.writes)}
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        self.declared = outer
        # A body that hands pointers to calls says what it touches in its regions.
        for region in block.reads:
            self._add(self.found.reads, region.buffer)
        for region in block.writes:
            self._add(self.found.writes, region.buffer)

    def visit_MatchBufferRegion(self, match: MatchBufferRegion) -> None:
        self.views[match.buffer.data] = match.source.buffer

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._add(self.found.reads, load.buffer)
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self._add(self.found.writes, store.buffer)
        self.visit_children(store)

    def visit_BufferRegion(self, region: BufferRegion) -> None:
        self._add(self.found.reads, region.buffer)

    def visit_Call(self, call: Call) -> None:
        name = call.op.name
        if name == "tir.tvm_access_ptr" and isinstance(call.args[1], Var) and isinstance(call.args[4], IntImm):
            self.visit(call.args[2])
            self._point(call.args[1], call.args[4].value)
            return
        if name == "tir.prefetch":
            for node in call.args[0].children():  # a hint: nobody goes to the address
                self.visit(node)
            return
        self.visit_children(call)
        if name == "tir.address_of" and isinstance(call.args[0], BufferLoad):
            self._visit_pointer(call.args[0].buffer.data)
        elif not getattr(call.op, "is_pure", False):
            self.found.effects.append(call)

    def visit_Var(self, var: Var) -> None:
        if var.dtype is HANDLE:
            self._visit_pointer(var)

    def _visit_pointer(self, data: Var) -> None:
        """What goes by a pointer is what the block declares; where it declares nothing, it may be anything."""
        memory = self.views[data].data if data in self.views else data
        if memory not in self.declared and data not in self.declared:
            self._point(data, 3)

    def _point(self, data: Var, mask: int) -> None:
        """A call has a pointer, to read (1) and to write (2)."""
        buffer = Buffer(data, "int8", (), name=data.name)  # only the memory counts
        if mask & 1:
            self._add(self.found.reads, buffer)
        if mask & 2:
            self._add(self.found.writes, buffer)

    def _add(self, result: dict[Var, Buffer], buffer: Buffer) -> None:
        while buffer.data in self.views and self.views[buffer.data].data is not buffer.data:
            buffer = self.views[buffer.data]
        result.setdefault(buffer.data, buffer)


@deep
def footprint(statement: Stmt) -> Footprint:
    """What `statement` touches."""
    collect = _Collect()
    collect.visit(statement)
    return collect.found


def moved_past_each_other(step: str, statements: Sequence[Stmt]) -> list[Buffer]:
    """The buffers through which a new interleaving of the statements could change a value."""
    marks = [footprint(statement) for statement in statements]
    shared: dict[Var, Buffer] = {}
    for position, mark in enumerate(marks):
        for other in marks[position + 1 :]:
            shared.update(mark.shared(other))
            if mark.effects and other.effects:
                calls = f"{mark.effects[0]} and {other.effects[0]}"
                raise NotProved(step, f"calls with effects would change their order: {calls}", statements[position])
    return list(shared.values())


def read_by(*exprs: Expr) -> dict[Var, Buffer]:
    """The memory that conditions and indices load."""
    collect = _Collect()
    for expr in exprs:
        collect.visit(expr)
    return collect.found.reads
