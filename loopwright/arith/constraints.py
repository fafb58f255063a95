"""Learning from a condition: what a branch may assume about its variables.

A comparison of indices becomes a linear inequality, and narrows the interval of each of its atoms; `x % c == r` becomes
a remainder; any other condition is remembered as true or false by its structure. Conditions that read memory teach
nothing: a store in the branch may make them false again.
"""

from __future__ import annotations

from typing import Any

from loopwright.arith.bounds import form_range
from loopwright.arith.engine import Engine
from loopwright.arith.linear import LinearForm, is_index
from loopwright.arith.modular import ANYTHING, intersection
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    BufferLoad,
    Call,
    CompareExpr,
    Expr,
    FloorMod,
    IntImm,
    Mod,
    Not,
    Op,
    Or,
    ProducerLoad,
    Reduce,
    SizeVar,
    Var,
    any_node,
)

_OPPOSITE: dict[type[Any], type[Any]] = {LT: GE, LE: GT, GT: LE, GE: LT, EQ: NE, NE: EQ}


def assume_condition(s: Engine, condition: Expr, holds: bool = True) -> None:
    """Take `condition` (simplified) to be true, or false, from here to the end of the scope."""
    pending = [(condition, holds)]
    while pending:
        e, truth = pending.pop()
        if isinstance(e, Call) and e.op.name == "tir.likely":
            pending.append((e.args[0], truth))
        elif isinstance(e, Not):
            pending.append((e.a, not truth))
        elif isinstance(e, And if truth else Or):
            pending += [(e.b, truth), (e.a, truth)]
        elif not isinstance(e, IntImm) and is_stable(e):
            if isinstance(e, CompareExpr) and is_index(e.a.dtype) and s.are_exact(e.a, e.b):
                _assume_comparison(s, type(e) if truth else _OPPOSITE[type(e)], s.form(e.a).plus(s.form(e.b), -1))
            else:
                s.facts.put(s.facts.truths, s.key(e), truth)
    s.forget()


def is_stable(e: Expr) -> bool:
    """Whether the value depends on variables alone, not on memory or calls with effects."""
    return isinstance(e, (IntImm, Var)) or not any_node(e, _is_unstable)


def _is_unstable(node: object) -> bool:
    if isinstance(node, Call):
        return not (isinstance(node.op, Op) and node.op.is_pure)
    return isinstance(node, (BufferLoad, ProducerLoad, Reduce))


def _assume_comparison(s: Engine, cls: type[Expr], d: LinearForm) -> None:
    """`d cls 0` holds."""
    if cls is NE:
        _assume_inequality(s, d)
    elif cls is EQ:
        _assume_at_most(s, d, 0)
        _assume_at_most(s, d.times(-1), 0)
        _assume_remainder(s, d)
    else:
        if cls is GT or cls is GE:
            d = d.times(-1)
        _assume_at_most(s, d, -1 if cls is LT or cls is GT else 0)


def _assume_at_most(s: Engine, d: LinearForm, bound: int) -> None:
    bound -= d.const
    if not d.terms:
        return
    low, _ = form_range(s, LinearForm(d.terms, 0))
    for atom, k in d.terms.items():
        # k * atom <= bound - (the least the other terms can be)
        lo, hi = s.ranges[atom]
        room = bound - (low - (k * lo if k > 0 else k * hi))
        if k > 0:
            narrow(s, atom, lo, min(hi, room // k))
        else:
            narrow(s, atom, max(lo, -(room // -k)), hi)
    if len(d.terms) > 1:
        s.facts.linear.append((d.terms, bound))


def _assume_inequality(s: Engine, d: LinearForm) -> None:
    """An atom that is not its own limit is beyond it."""
    if len(d.terms) == 1:
        ((atom, k),) = d.terms.items()
        lo, hi = form_range(s, LinearForm({atom: 1}, 0))
        if d.const % k == 0:
            excluded = -d.const // k
            narrow(s, atom, lo + (lo == excluded), hi - (hi == excluded))


def _assume_remainder(s: Engine, d: LinearForm) -> None:
    if len(d.terms) == 1:
        ((atom, k),) = d.terms.items()
        # Also the remainder of rounding towards zero, whose sign is that of x, differs from x by a multiple of c.
        if type(atom) in (FloorMod, Mod) and atom in s.parts and abs(k) == 1:
            x, c = s.parts[atom]
            variable = LinearForm(x.terms, 0).atom()
            if not c.terms and c.const > 1 and variable is not None:
                known = s.facts.modular.get(variable, ANYTHING)
                both = intersection(known, (c.const, (-d.const * k - x.const) % c.const))
                if both is not None and both != known:
                    s.facts.put(s.facts.modular, variable, both)


def narrow(s: Engine, atom: Expr, low: int, high: int) -> None:
    """Learn an interval; a variable with one possible value becomes that value."""
    s.facts.narrow(atom, low, high)
    # The variable stays itself where its one value cannot be written.
    if low == high and type(atom) in (Var, SizeVar) and atom not in s.facts.values:
        if atom.dtype.min_value() <= low <= atom.dtype.max_value():
            s.facts.put(s.facts.values, atom, IntImm(atom.dtype, low))
