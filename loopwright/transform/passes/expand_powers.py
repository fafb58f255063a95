"""expand_powers: a power whose exponent is a small number becomes products, a quotient or a square root.

    B[i] = T.pow(A[i], T.float32(3))       →    B[i] = let x = A[i] in x * x * x

The general power takes a logarithm and an exponential, some fifty instructions. What is written in its place has its
special values, those of C (0, infinities, NaN, signs), and at most its error, 1.5 ulp (docs/math.md): other exponents
stay powers, since their products would round once too often, or overflow on the way.

Needs: `legalize_low_precision` (powers of small floats are in float32 then).  Leaves: what `form_fma` may fuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from loopwright.ir import (
    Broadcast,
    BufferLoad,
    Call,
    Expr,
    FloatImm,
    IntImm,
    Let,
    PrimFunc,
    Rewriter,
    Select,
    Var,
    any_node,
    const,
    deep,
)
from loopwright.ir.intrinsics import fma, sqrt
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import FLOAT32, FLOAT64

_INFINITY: Final = float("inf")


def _root(x: Expr) -> Expr:
    """√x; the power of -0.0 is 0.0, and that of -∞ is ∞."""
    return Select(x == const(-_INFINITY, x.dtype), const(_INFINITY, x.dtype), sqrt(x + const(0.0, x.dtype)))


def _one_by(x: Expr) -> Expr:
    return const(1.0, x.dtype) / x


def _three_halves(x: Expr) -> Expr:
    """x √x; the power of -∞ is ∞."""
    return Select(x == const(-_INFINITY, x.dtype), const(_INFINITY, x.dtype), x * sqrt(x))


def _fourth(x: Expr) -> Expr:
    """(h + l)² = h² + 2 h l, where h is x² rounded, and l what was lost: the square of h alone would be off by 2 ulp.

    Where h l might overflow, so does h².
    """
    h, low = Var("h", x.dtype), Var("l", x.dtype)
    exact = fma(h, h, (h + h) * low)
    most = const(2.0**64 if x.dtype.element is FLOAT32 else 2.0**512, x.dtype)
    return Let(h, x * x, Let(low, fma(x, x, h * const(-1.0, x.dtype)), Select(h < most, exact, h * h)))


_EXPANDED: Final[Mapping[float, Callable[[Expr], Expr]]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: _fourth,
    1.5: _three_halves,
    -1.0: _one_by,
    0.5: _root,
    -0.5: lambda x: _one_by(_root(x)),
}


def _shared(value: Expr, use: Callable[[Expr], Expr]) -> Expr:
    """`use` of the value, which is computed once."""
    if isinstance(value, (Var, BufferLoad)):
        return use(value)
    var = Var("x", value.dtype)
    return Let(var, value, use(var))


def _is_power(node: object) -> bool:
    return isinstance(node, Call) and node.op.name == "tir.pow"


class _ExpandPowers(Rewriter):
    def visit_Call(self, call: Call) -> Expr:
        call = self.rebuild(call)
        if not _is_power(call) or call.dtype.element not in (FLOAT32, FLOAT64):
            return call
        base, exponent = call.args
        number = exponent.value if isinstance(exponent, Broadcast) else exponent
        expanded = _EXPANDED.get(number.value) if isinstance(number, (FloatImm, IntImm)) else None
        return call if expanded is None else _shared(base, expanded)


@function_pass
@deep
def expand_powers(func: PrimFunc) -> PrimFunc:
    """Powers with a small constant exponent become products, quotients and square roots."""
    if not any_node(func.body, _is_power):
        return func
    return func.with_(body=_ExpandPowers().visit(func.body))
