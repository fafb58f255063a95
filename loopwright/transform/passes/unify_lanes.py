"""unify_lanes: a comparison that all lanes of a vector agree on is one of their first.

    for j in T.vectorized(4):                         for j in T.vectorized(4):
        B[i * 4 + j] = T.if_then_else(         →          B[i * 4 + j] = T.if_then_else(
            i * 4 + j < 64, A[…], C[…])                       i * 4 < 64, A[…], C[…])

A row that is put together of others changes between two vectors where all parts are whole vectors long. Under one
condition for all lanes, each side stays a vector.

Needs: loops from 0, no blocks.  Leaves: comparisons that differ between lanes, or do not use their number.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    CompareExpr,
    Expr,
    For,
    ForKind,
    IntImm,
    PrimFunc,
    Rewriter,
    Stmt,
    Var,
    const,
    deep,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.lanes_agree import lanes_agree


class _UnifyLanes(Rewriter):
    def __init__(self) -> None:
        self.facts = Analyzer()
        self.lanes: dict[Var, int] = {}  # the loops over lanes around

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is not ForKind.VECTORIZED or not isinstance(loop.extent, IntImm):
            return self.rebuild(loop)
        self.lanes[loop.loop_var] = loop.extent.value
        result = self.rebuild(loop)
        del self.lanes[loop.loop_var]
        return result

    def _compared(self, node: CompareExpr) -> Expr:
        for lane, count in self.lanes.items():
            is_used = uses_var(node, lambda var, own=lane: var is own)  # type: ignore[misc]
            if is_used and lanes_agree(node, lane, count, self.facts):
                node = substitute_folding(node, {lane: const(0, lane.dtype)})
        return node

    visit_LT = visit_LE = visit_GT = visit_GE = _compared


@function_pass
@deep
def unify_lanes(func: PrimFunc) -> PrimFunc:
    """Comparisons that all lanes of a vector agree on do not use the lane's number."""
    return func.with_(body=_UnifyLanes().visit(func.body))
