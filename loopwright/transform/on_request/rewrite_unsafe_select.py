"""rewrite_unsafe_select: a Select that chooses between values which may not be computed becomes a lazy choice.

    B[i] = T.Select(i < n, A[i], T.float32(0))    →    B[i] = T.if_then_else(i < n, A[i], T.float32(0))

`Select` computes both sides, so its side may not read what is out of bounds. Scripts that mean otherwise run this pass
first; values that are there either way come out the same.

Needs: nothing.  Leaves: no Select with a load, an integer division by a variable, or an impure call on either side.
"""

from __future__ import annotations

from loopwright.ir import Call, Expr, PrimFunc, Rewriter, Select, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.known_ops import IF_THEN_ELSE
from loopwright.transform.parts.purity import can_fail


class _RewriteUnsafeSelect(Rewriter):
    def visit_Select(self, expr: Select) -> Expr:
        expr = self.rebuild(expr)
        if expr.condition.dtype.lanes > 1 or not (can_fail(expr.true_value) or can_fail(expr.false_value)):
            return expr
        sides = (expr.condition, expr.true_value, expr.false_value)
        return Call._make(expr.dtype, IF_THEN_ELSE, sides, span=expr.span)


@function_pass
@deep
def rewrite_unsafe_select(func: PrimFunc) -> PrimFunc:
    """A Select that chooses between values which may not be computed becomes a lazy choice."""
    return func.with_(body=_RewriteUnsafeSelect().visit(func.body))
