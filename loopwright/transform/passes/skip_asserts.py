"""skip_asserts: the program's own assertions are left out.

    assert n > 0, "n is positive"        →    B[0] = A[0]
    B[0] = A[0]

Runs only under `tir.disable_assert`. The checks of arguments at a call are no part of the program, and stay.
"""

from __future__ import annotations

from loopwright.ir import AssertStmt, PrimFunc, Stmt, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter


class _SkipAsserts(StmtRewriter):
    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        body: Stmt = self.visit(node.body)
        return body


@function_pass
@deep
def skip_asserts(func: PrimFunc) -> PrimFunc:
    """The program's own assertions are left out."""
    return func.with_(body=_SkipAsserts().visit(func.body))
