"""What may fail in an expression: a load that may lie outside its buffer, a division by what may be 0.

A step that evaluates an expression where it was not evaluated before asks here. `facts` say what is known of the
variables where it would be evaluated.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    And,
    BufferLoad,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Mod,
    Node,
    Or,
    Var,
    any_node,
    collect,
    deep,
    logical_not,
)

Risk = BufferLoad | Div | Mod | FloorDiv | FloorMod


@deep
def may_fail(root: Expr, facts: Analyzer) -> Expr | None:
    """A part that is not known to have a value; None when all have. `a and b` evaluates b only where a is true."""
    if isinstance(root, (And, Or)):
        risk = may_fail(root.a, facts)
        if risk is None:
            with facts.constraint_scope(root.a if isinstance(root, And) else logical_not(root.a)):
                risk = may_fail(root.b, facts)
        return risk
    return next((risk for risk in risks_in(root) if not is_safe(risk, facts)), None)


def could_fail(root: Expr) -> bool:
    """Whether an expression loads memory, calls, or divides by no number: where it stands it may rely on more."""
    return any_node(root, lambda node: isinstance(node, (BufferLoad, Call)) or may_divide_by_zero(node))


def may_divide_by_zero(node: Node) -> bool:
    """Whether a node divides integers by anything but a literal other than 0."""
    if not isinstance(node, (Div, Mod, FloorDiv, FloorMod)) or not node.dtype.is_int:
        return False
    return not (isinstance(node.b, IntImm) and node.b.value)


def risks_in(root: Expr) -> list[Risk]:
    """The loads and the integer divisions of an expression."""
    if isinstance(root, IntImm | Var):
        return []
    divisions = [*collect(root, Div, Mod), *collect(root, FloorDiv, FloorMod)]
    return [*collect(root, BufferLoad), *[division for division in divisions if division.dtype.is_int]]


def is_safe(risk: Risk, facts: Analyzer) -> bool:
    """Whether a load is known to be within its buffer, and a divisor not to be 0."""
    if not isinstance(risk, BufferLoad):
        return facts.can_prove(risk.b >= 1) or facts.can_prove(risk.b <= -1)
    pairs = zip(risk.indices, risk.buffer.shape, strict=True)
    return all([facts.can_prove(index >= 0) and facts.can_prove(index < extent) for index, extent in pairs])
