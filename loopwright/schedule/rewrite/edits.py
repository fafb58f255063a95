"""Edits: several changes to one version of a function in one walk: statements replaced, others put before or after."""

from __future__ import annotations

from loopwright.ir import (
    BlockRealize,
    Buffer,
    Node,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    deep,
    seq,
)


class Edits(Rewriter):
    """What to change, by the statements of the old version; nested changes combine."""

    def __init__(self) -> None:
        self.replaced: dict[Stmt, Stmt] = {}  # a replaced statement is not entered
        self.before: dict[Stmt, list[Stmt]] = {}
        self.after: dict[Stmt, list[Stmt]] = {}
        self.allocated: dict[Stmt, list[Buffer]] = {}  # for the block of a BlockRealize

    @deep
    def apply(self, function: PrimFunc) -> PrimFunc:
        """The function with all changes made."""
        return function.with_(body=self.visit(function.body))

    def visit_Stmt(self, statement: Stmt) -> Stmt:
        new = self.replaced.get(statement)
        if new is None:
            new = self._rebuilt(statement)
        return seq([*self.before.get(statement, ()), new, *self.after.get(statement, ())])

    def _rebuilt(self, statement: Stmt) -> Stmt:
        if isinstance(statement, SeqStmt):
            children = [self.visit(child) for child in statement.seq]
            same = all(a is b for a, b in zip(children, statement.seq, strict=True))
            return statement if same else seq(children)
        new: Stmt = statement.rebuild(self.visit)
        added = self.allocated.get(statement)
        if added and isinstance(new, BlockRealize):
            new = new.with_(block=new.block.with_(alloc_buffers=(*new.block.alloc_buffers, *added)))
        return new

    def visit_Expr(self, node: Node) -> Node:
        """Expressions hold no statements."""
        return node

    visit_Buffer = visit_BufferRegion = visit_MatchBufferRegion = visit_IterVar = visit_Range = visit_Expr
