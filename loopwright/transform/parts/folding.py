"""folding: substitution that folds what it makes foldable.

    i * 8 + j  with  i = 0, j = k + 0    →    k

`ir.substitute` puts values in and leaves the rest as it is written; lowering substitutes constants into indices all the
time, and later passes (and readers) want to see the result. Only integer arithmetic is folded, and only by identities
that hold when it wraps around.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from loopwright.arith.data import holds_data
from loopwright.ir import Add, BinaryExpr, BufferRewriter, Expr, IntImm, Mul, Node, Sub, Var, deep
from loopwright.ir.operators import fold_or_build
from loopwright.transform.parts.flat_index import add_index, is_literal, mul_index, sub_index

N = TypeVar("N", bound=Node)


class FoldingRewriter(BufferRewriter):
    """Replaces the variables in `values`, also inside buffers, and folds the integer arithmetic above them."""

    def __init__(self, values: Mapping[Var, Expr] | None = None) -> None:
        super().__init__()
        self.values: dict[Var, Expr] = dict(values or {})

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        if a.dtype.is_int:
            if isinstance(expr, Add):
                return add_index(a, b)
            if isinstance(expr, Sub):
                return sub_index(a, b)
            if isinstance(expr, Mul) and not (_is_zero(a, b) and (holds_data(a) or holds_data(b))):
                return mul_index(a, b)
            if type(a) is IntImm and type(b) is IntImm:
                return fold_or_build(type(expr), a, b)
        return expr.with_(a=a, b=b)


def _is_zero(a: Expr, b: Expr) -> bool:
    """Whether a product is zero; one with data stays, for a number beside data wraps around, and else does not."""
    return is_literal(a, 0) or is_literal(b, 0)


@deep
def substitute_folding(root: N, values: Mapping[Var, Expr]) -> N:
    """`ir.substitute`, folding the integer arithmetic it changes."""
    result: N = FoldingRewriter(values).visit(root)
    return result
