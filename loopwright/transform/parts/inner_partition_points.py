"""inner_cuts: the guards that a loop inside decides as well, so that the loop around it need not be cut for them.

    for i in range((n + 63) // 64):                the end of B lies in the last iteration of i, and of j in there:
        for k in range(256): …                     to cut i would write the loop over k twice, for nothing
        for j in range(64):
            if i * 64 + j < n: B[i * 64 + j] = …

A cut saves asking a guard again and again; but what it copies are all statements of the loop, also those that have
nothing to do with it. Where they hold loops, asking once more for each of them is next to nothing. A parallel loop is
not cut but branches, which copies just as much.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopwright.ir import CompareExpr, Expr, For, ForKind, SeqStmt, Stmt, Var, Visitor, any_statement, uses_var


def decided_inside(loop: For, nodes: Iterable[Expr]) -> set[Expr]:
    """Those comparisons that can be left to a serial loop inside `loop`."""
    walk = _Walk(set(nodes), loop.kind is ForKind.PARALLEL)
    walk.visit(loop.body)
    return walk.found


class _Walk(Visitor):
    def __init__(self, wanted: set[Expr], is_apart: bool) -> None:
        self.wanted = wanted
        self.is_apart = is_apart  # what is here shares the loop with loops of other statements
        self.serial: set[Var] = set()
        self.found: set[Expr] = set()

    def visit_SeqStmt(self, node: SeqStmt) -> None:
        outside = self.is_apart
        busy = [has_serial_loop(statement) for statement in node.seq]
        for position, statement in enumerate(node.seq):
            self.is_apart = outside or any(busy[:position] + busy[position + 1 :])
            self.visit(statement)
        self.is_apart = outside

    def visit_For(self, loop: For) -> None:
        if loop.kind is ForKind.SERIAL:
            self.serial.add(loop.loop_var)
        self.visit(loop.body)
        self.serial.discard(loop.loop_var)

    def visit_CompareExpr(self, expr: CompareExpr) -> None:
        if expr in self.wanted and self.is_apart and uses_var(expr, self.serial.__contains__):
            self.found.add(expr)


def has_serial_loop(statement: Stmt) -> bool:
    """Whether there is a loop in it that is neither lanes nor written out."""
    return any_statement(statement, lambda node: isinstance(node, For) and node.kind is ForKind.SERIAL)
