"""form_fma: a product and a sum become one multiply-add, rounded once.

    C[i] = C[i] + A[k] * B[k]      →    C[i] = T.fma(A[k], B[k], C[i])

Code generation never fuses on its own, so this pass alone decides which operations round; and it decides before loops
are cut and vectorized, so a tail computes the same bits as the body. The rules, where z is not a product:

    x * y + z, z + x * y  →  fma(x, y, z)          x * y - z  →  fma(x, y, -z)          z - x * y  →  fma(-x, y, z)

Of two products the left one is fused and the right one rounded by itself: x * y + u * v  →  fma(x, y, u * v). A
negated product is a product; negation itself (times -1, which is exact) is none. A product that is added only where a
condition holds (in the last step of a reduction in lanes) is fused under the condition, if z is an element or a number:

    z + if_then_else(c, x * y, w)  →  if_then_else(c, fma(x, y, z), z + w)          and so for a select

Nothing is fused across a cast, a let or another call. float16 is not fused even where the machine could: its fma is
defined by float32 (docs/semantics.md), and the machine's rounds once less (2 of 65,536 random sums differ).

Needs: `legalize_low_precision`.  Leaves: no product that is an operand of a sum, where the machine has the instruction.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import (
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Expr,
    FloatImm,
    Mul,
    PrimFunc,
    Rewriter,
    Select,
    Sub,
    Var,
    collect,
    const,
    deep,
)
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import FLOAT32, FLOAT64
from loopwright.transform.parts.cpu_of import cpu_of
from loopwright.transform.parts.known_ops import FMA, IF_THEN_ELSE

_FUSED: Final = (FLOAT32, FLOAT64)
_ELEMENTS: Final = (BufferLoad, Var, FloatImm)  # read twice, they cost no more


class _FormFma(Rewriter):
    def visit_Add(self, node: Add) -> Expr:
        node = self.rebuild(node)
        if node.dtype.element not in _FUSED:
            return node
        for product, other in ((node.a, node.b), (node.b, node.a)):
            factors = _factors(product)
            if factors is not None:
                return Call._make(node.dtype, FMA, (*factors, other), span=node.span)
        for chosen, other in ((node.b, node.a), (node.a, node.b)):
            if isinstance(other, _ELEMENTS) and not _has_calls(other):
                result = _under_condition(chosen, other)
                if result is not None:
                    return result
        return node

    def visit_Sub(self, node: Sub) -> Expr:
        node = self.rebuild(node)
        if node.dtype.element not in _FUSED:
            return node
        factors = _factors(node.a)
        if factors is not None:
            return Call._make(node.dtype, FMA, (*factors, negated(node.b)), span=node.span)
        factors = _factors(node.b)
        if factors is not None:
            return Call._make(node.dtype, FMA, (negated(factors[0]), factors[1], node.a), span=node.span)
        return node


def _under_condition(chosen: Expr, other: Expr) -> Expr | None:
    """`other` + `chosen`, where that is a product if a condition holds and something else if it does not."""
    if isinstance(chosen, Select):
        condition, product, rest = chosen.condition, chosen.true_value, chosen.false_value
    elif isinstance(chosen, Call) and chosen.op is IF_THEN_ELSE:
        condition, product, rest = chosen.args
    else:
        return None
    factors = _factors(product)
    if factors is None:
        return None
    fused = Call._make(product.dtype, FMA, (*factors, other))
    if isinstance(chosen, Select):
        return chosen.with_(true_value=fused, false_value=other + rest)
    return chosen.with_(args=(condition, fused, other + rest))


def _has_calls(expr: Expr) -> bool:
    """Whether an element's place is computed by calls: it would be computed twice."""
    return bool(collect(expr, Call))


def _factors(expr: Expr) -> tuple[Expr, Expr] | None:
    """x and y when `expr` is x * y (or the negative of that, -x * y)."""
    if not isinstance(expr, Mul):
        return None
    inner = negation_of(expr)
    if inner is None:
        return expr.a, expr.b
    if isinstance(inner, Mul) and negation_of(inner) is None:
        return negated(inner.a), inner.b
    return None


def negation_of(expr: Expr) -> Expr | None:
    """x when `expr` is -x, which the IR writes x * -1."""
    if isinstance(expr, Mul):
        if _is_minus_one(expr.b):
            return expr.a
        if _is_minus_one(expr.a):
            return expr.b
    return None


def negated(expr: Expr) -> Expr:
    """-expr, without piling up signs."""
    inner = negation_of(expr)
    return inner if inner is not None else _flip(expr)


def _flip(expr: Expr) -> Expr:
    if isinstance(expr, FloatImm):
        return const(-expr.value, expr.dtype)
    if isinstance(expr, Broadcast) and isinstance(expr.value, FloatImm):
        return Broadcast(const(-expr.value.value, expr.value.dtype), expr.lanes)
    return Mul(expr, const(-1, expr.dtype))


def _is_minus_one(expr: Expr) -> bool:
    if isinstance(expr, Broadcast):
        expr = expr.value
    return isinstance(expr, FloatImm) and expr.value == -1.0


@function_pass
@deep
def form_fma(func: PrimFunc) -> PrimFunc:
    """A product and a sum become one multiply-add, rounded once."""
    if not cpu_of(func).has_fma:
        return func
    return func.with_(body=_FormFma().visit(func.body))
