"""Edits: several changes to one version of a function in one walk: statements replaced, others put before or after."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    BlockRealize,
    Buffer,
    DeclBuffer,
    LetStmt,
    Node,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    deep,
    seq,
)
from loopwright.schedule.buffers import visible_from
from loopwright.schedule.view import Path, View


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


def common_path(paths: Sequence[Path]) -> Path:
    """The statements that all paths share, from the root."""
    shared = list(paths[0])
    for path in paths[1:]:
        count = 0
        for a, b in zip(shared, path, strict=False):
            if a is not b:
                break
            count += 1
        del shared[count:]
    return tuple(shared)


def leaves_of(view: View, realize: BlockRealize) -> list[BlockRealize]:
    """The blocks without blocks inside, in or below a block."""
    inside = [path for path in view.index.blocks.values() if any(statement is realize for statement in path)]
    outer = {id(statement) for path in inside for statement in path[:-1]}
    return [path[-1] for path in inside if id(path[-1]) not in outer and isinstance(path[-1], BlockRealize)]


def child_on(path: Path, parent: Path) -> Stmt:
    """The statement on `path` right below the end of `parent`."""
    return path[len(parent)]


# Statements that only declare things or put others in order.
_DECLARING = (SeqStmt, Allocate, AllocateConst, DeclBuffer, LetStmt, AttrStmt)


def doing_in(path: Path, position: int, buffer: Buffer) -> int:
    """Where on a path, below `position`, the first statement is that does something and that `buffer` exists at."""
    start = max(position + 1, visible_from(path, buffer))  # a condition may stand around its allocation
    return next(k for k in range(start, len(path)) if not isinstance(path[k], _DECLARING))
