"""remove_assume: promises about values are left out, once everything that could use them has run.

    T.evaluate(T.assume(n > 0))        →    for i in range(n):
    for i in range(n):                          B[i] = A[i]
        B[i] = A[i]

Needs: nothing.  Leaves: no `T.assume`.
"""

from __future__ import annotations

from loopwright.ir import Call, Evaluate, PrimFunc, Stmt, deep, no_op
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.known_ops import ASSUME
from loopwright.transform.parts.statements import StmtRewriter


class _RemoveAssume(StmtRewriter):
    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return no_op() if isinstance(node.value, Call) and node.value.op is ASSUME else node


@function_pass
@deep
def remove_assume(func: PrimFunc) -> PrimFunc:
    """Promises about values are left out."""
    return func.with_(body=_RemoveAssume().visit(func.body))
