"""owner_tags: which block or thread has memory of its own, though it is allocated outside their loops.

    L = alloc(scope="local")                         L is one for each index of blockIdx.x and threadIdx.x:
    for bx in T.thread_binding(4, "blockIdx.x"):     every use is under both
        for tx in T.thread_binding(32, "threadIdx.x"):
            L[0] = …

The evaluator gives each its copy by this. (Analysis itself knows the accesses already: `Program.owners`.)
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import is_per, is_virtual_tag, scope_of, tag_of
from loopwright.ir import Allocate, Block, BufferLoad, BufferStore, Call, Node, Stmt, Var, Visitor
from loopwright.runtime.dtype import HANDLE


def owner_tags(root: Stmt) -> dict[Var, frozenset[str]]:
    """Memory that is not one for all → the axes around all its uses whose every index has a copy of its own.

    What is also used outside the loops of an axis lives there, once.
    """
    walk = _Uses()
    walk.visit(root)
    return {data: frozenset([tag for tag in tags if is_per(scope_of(data), tag)]) for data, tags in walk.found.items()}


class _Uses(Visitor):
    def __init__(self) -> None:
        self.tags: frozenset[str] = frozenset()
        self.found: dict[Var, frozenset[str]] = {}
        self.sources: dict[Var, Var] = {}  # a name for a part of other memory → that memory

    def visit_Stmt(self, statement: Stmt) -> None:
        outside, tag = self.tags, tag_of(statement)
        if tag and not is_virtual_tag(tag):
            self.tags = self.tags | {tag}
        if isinstance(statement, BufferStore):
            self._use(statement.buffer.data)
        statement.each_child(self.visit)
        self.tags = outside

    def visit_Allocate(self, allocation: Allocate) -> None:
        self.visit(allocation.body)

    def visit_Block(self, block: Block) -> None:
        for match in block.match_buffers:
            self.sources[match.buffer.data] = match.source.buffer.data
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._use(load.buffer.data)
        load.each_child(self.visit)

    def visit_Call(self, call: Call) -> None:
        if call.op.name != "tir.prefetch":
            call.each_child(self.visit)
            return
        for argument in call.args:  # a hint names memory, and touches none
            parts = argument.args if isinstance(argument, Call) else (argument,)
            for part in parts:
                for inner in part.indices if isinstance(part, BufferLoad) else ():
                    self.visit(inner)

    def visit_Var(self, var: Var) -> None:
        if var.dtype is HANDLE:
            self._use(var)

    def _use(self, data: Var) -> None:
        while data in self.sources:
            data = self.sources[data]
        if scope_of(data) != "global":
            self.found[data] = self.found.get(data, self.tags) & self.tags

    def visit_Buffer(self, _: Node) -> None:
        """A buffer that is named is not used."""

    visit_BufferRegion = visit_MatchBufferRegion = visit_Buffer
