"""The variables that a statement uses and does not define itself."""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    Buffer,
    Expr,
    For,
    IterVar,
    Let,
    LetStmt,
    Node,
    Stmt,
    Var,
    Visitor,
    deep,
)


class _Free(Visitor):
    def __init__(self) -> None:
        self.bound: set[Var] = set()
        self.free: dict[Var, None] = {}
        self.seen: set[Expr | Buffer] = set()

    def visit(self, node: Node) -> None:
        # Expressions may be shared many times over; variables are bound once, so one look at each is enough.
        if isinstance(node, Expr):
            if node in self.seen:
                return
            self.seen.add(node)
        super().visit(node)

    def visit_Var(self, var: Var) -> None:
        if var not in self.bound:
            self.free.setdefault(var)

    def visit_Buffer(self, buffer: Buffer) -> None:
        if buffer not in self.seen:
            self.seen.add(buffer)
            for part in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
                self.visit(part)

    def visit_For(self, loop: For) -> None:
        self.bound.add(loop.loop_var)
        if loop.thread_binding is not None:
            self.bound.add(loop.thread_binding.var)
        self.visit_children(loop)

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.bound.add(let.var)
        self.visit_children(let)

    visit_Let = visit_LetStmt

    def visit_Allocate(self, allocate: Allocate | AllocateConst) -> None:
        self.bound.add(allocate.buffer_var)
        self.visit_children(allocate)

    visit_AllocateConst = visit_Allocate

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        if isinstance(attr.node, IterVar):
            self.bound.add(attr.node.var)
        self.visit_children(attr)

    def visit_Block(self, block: Block) -> None:
        self.bound.update([axis.var for axis in block.iter_vars])
        self.bound.update([buffer.data for buffer in block.alloc_buffers])
        for match in block.match_buffers:
            buffer = match.buffer
            parts = (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset)
            self.bound.update([part for part in parts if isinstance(part, Var)])
        self.visit_children(block)


@deep
def free_variables(statement: Stmt) -> list[Var]:
    """The variables from outside, in the order in which they appear; those in the shapes of buffers included."""
    result = _Free()
    result.visit(statement)
    return list(result.free)
