"""statements: the base of passes that rewrite statements and keep sequences flat."""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import Expr, Rewriter, SeqStmt, Stmt, is_no_op, seq
from loopwright.ir.node import rewrite_tuple


class StmtRewriter(Rewriter):
    """Rewrites statements alone: expressions are leaves, and what becomes several statements joins its sequence."""

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)


def flat_seq(node: SeqStmt, visit: Callable[[Stmt], Stmt]) -> Stmt:
    """The sequence with `visit` over its statements, sequences and no-ops inside dissolved; itself when unchanged."""
    statements = rewrite_tuple(node.seq, visit)
    if statements is node.seq:
        for statement in statements:
            if isinstance(statement, SeqStmt) or is_no_op(statement):
                return seq(statements)
        return node
    return seq(statements)
