"""narrow_predicate_expression: a condition that implies the given one, whatever the free parameters are.

    i < n,   n in 0..8     →   i < 0
    i == n                 →   i <= 0 and 7 <= i

Each parameter becomes the end of its range that makes the condition harder to meet. Where the direction is unknown (a
remainder, a load, a division by a parameter) the answer is False, which implies everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from loopwright.arith.analyzer import Analyzer
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BufferLoad,
    Call,
    CompareExpr,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Range,
    Sub,
    Var,
    any_node,
    const,
    deep,
)


class _Unknown(Exception):
    """No end of a parameter's range is known to be the harder one."""


# What has no direction, even without a parameter in it.
_OPAQUE: Final = (FloorMod, Mod, BufferLoad, ProducerLoad, Call)


@deep
def narrow_predicate_expression(condition: Expr, free_parameters: Mapping[Var, Range]) -> Expr:
    """A condition without the parameters that implies `condition` for all their values."""
    return _Narrow(free_parameters).condition(condition, True)


class _Narrow:
    def __init__(self, free_parameters: Mapping[Var, Range]) -> None:
        facts = Analyzer()
        self.ends = {
            var: (domain.min, facts.simplify(domain.min + domain.extent - 1)) for var, domain in free_parameters.items()
        }

    def condition(self, e: Expr, stronger: bool) -> Expr:
        """A condition that implies `e`, or, below a Not, that follows from it."""
        if isinstance(e, (And, Or)):
            return type(e)(self.condition(e.a, stronger), self.condition(e.b, stronger))
        try:
            return self._relation(e, stronger)
        except _Unknown:
            if stronger:
                return const(False)
            raise

    def _relation(self, e: Expr, stronger: bool) -> Expr:
        if isinstance(e, Not):
            return Not(self.condition(e.a, not stronger))
        if not isinstance(e, CompareExpr):
            if any_node(e, self._is_free):
                raise _Unknown
            return e
        if not any_node(e, self._is_free):
            return e
        a, b = e.a, e.b
        if isinstance(e, EQ):
            return And(self._relation(LE(a, b), stronger), self._relation(LE(b, a), stronger))
        if isinstance(e, NE):
            return Or(self._relation(LT(a, b), stronger), self._relation(LT(b, a), stronger))
        upwards = isinstance(e, (LT, LE)) == stronger  # a condition is harder to meet with the larger `a`
        cls: Any = type(e)
        assert cls in (LT, LE, GT, GE), cls
        return cls(self._value(a, upwards), self._value(b, not upwards))

    def _value(self, e: Expr, upwards: bool) -> Expr:
        """`e` with its parameters at those ends that make it largest, or smallest."""
        if isinstance(e, Var):
            ends = self.ends.get(e)
            return e if ends is None else ends[upwards]
        if isinstance(e, _OPAQUE):
            raise _Unknown
        if isinstance(e, (Add, Min, Max)):
            return type(e)(self._value(e.a, upwards), self._value(e.b, upwards))
        if isinstance(e, Sub):
            return Sub(self._value(e.a, upwards), self._value(e.b, not upwards))
        if isinstance(e, (Mul, FloorDiv)) and isinstance(e.b, IntImm) and e.b.value:
            return type(e)(self._value(e.a, upwards == (e.b.value > 0)), e.b)
        if any_node(e, self._is_free):
            raise _Unknown
        return e

    def _is_free(self, node: object) -> bool:
        return isinstance(node, _OPAQUE) or node in self.ends
