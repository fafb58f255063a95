"""Comparisons of indices: decide them, or bring them to a short form.

    i * 4 + 3 < j * 4 + 8   →   i < j + 2        common terms and factors go, a constant moves to the constant side
    i // 4 < n              →   i < n * 4        for constants n
    i * 2 == 5              →   False            no remainder fits

Terms otherwise stay on the side where they were written.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from loopwright.arith.bounds import are_exact, at_least, at_most, form_range
from loopwright.arith.engine import Engine
from loopwright.arith.linear import LinearForm, TooWide, imm
from loopwright.arith.modular import form_modular
from loopwright.ir import EQ, GE, GT, LE, LT, NE, CompareExpr, Expr, FloorDiv
from loopwright.runtime.dtype import BOOL, DataType


def compare(s: Engine, e: CompareExpr) -> Expr:
    """A comparison of two index expressions, simplified."""
    cls, a, b = type(e), s.form(e.a), s.form(e.b)
    known = decide(s, cls, a.plus(b, -1))
    if known is not None:
        return imm(int(known), BOOL)
    try:
        return _shorten(s, e, cls, a, b)
    except TooWide:
        return e


def decide(s: Engine, cls: type[Expr], d: LinearForm) -> bool | None:
    """Whether `d cls 0` always or never holds; None when neither is proved."""
    low, high = form_range(s, d)
    result = by_interval(cls, low, high)
    if result is not None:
        return result
    if cls is EQ or cls is NE:
        m, b = form_modular(s, d)
        if (m and b % m) or (not m and b):
            return cls is NE
    if not _has_more_to_say(s, d):
        return None
    if cls is EQ or cls is NE:
        never = at_most(s, d, -1) or at_least(s, d, 1)
        return cls is NE if never else (cls is EQ if at_most(s, d, 0) and at_least(s, d, 0) else None)
    if cls is GT or cls is GE:
        d, cls = d.times(-1), LT if cls is GT else LE
    bound = -1 if cls is LT else 0
    return True if at_most(s, d, bound) else (False if at_least(s, d, bound + 1) else None)


def by_interval(cls: type[Expr], low: int, high: int) -> bool | None:
    """Whether `d cls 0` always or never holds for a d between `low` and `high`."""
    if cls is LT:
        return True if high < 0 else (False if low >= 0 else None)
    if cls is LE:
        return True if high <= 0 else (False if low > 0 else None)
    if cls is GT:
        return True if low > 0 else (False if high <= 0 else None)
    if cls is GE:
        return True if low >= 0 else (False if high < 0 else None)
    if low > 0 or high < 0:
        return cls is NE
    return cls is EQ if low == high == 0 else None


def _has_more_to_say(s: Engine, d: LinearForm) -> bool:
    """Whether anything relates atoms to each other, so that their separate intervals are not all we know."""
    if s.facts.linear:
        return True
    return any(atom in s.parts for atom in d.terms)


_MIRROR: dict[type[Expr], type[Any]] = {LT: GT, LE: GE, GT: LT, GE: LE, EQ: EQ, NE: NE}


def _shorten(s: Engine, e: CompareExpr, cls: type[Any], a: LinearForm, b: LinearForm) -> Expr:
    left, right = dict(a.terms), dict(b.terms)
    for atom in a.terms:
        if atom in right:
            net = left.pop(atom) - right.pop(atom)
            if net:
                (left if net > 0 else right)[atom] = abs(net)
    # The constant goes to the side that has nothing else, else to the right; alone on one side it stays.
    low, high = a.const, b.const
    if low and (high or not right):
        low, high = 0, high - low
    if not left:
        if not right:
            return imm(int(by_interval(cls, low - high, low - high) is True), BOOL)
        left, right, low, high, cls = right, left, high, low, _MIRROR[cls]
        low, high = 0, high - low
    factor = gcd(*left.values(), *right.values())
    if factor > 1:
        shared = _divide_constant(cls, high - low, factor)
        if shared is None:
            return imm(int(cls is NE), BOOL)
        left = {atom: k // factor for atom, k in left.items()}
        right = {atom: k // factor for atom, k in right.items()}
        low, high = 0, shared
    if not right and len(left) == 1:
        result = _open_division(s, cls, left, high - low, e.a.dtype)
        if result is not None:
            return result
    if not right and max(left.values()) < 0:
        left, low, high, cls = {atom: -k for atom, k in left.items()}, 0, low - high, _MIRROR[cls]
    dtype = e.a.dtype
    new_left, new_right = LinearForm(left, low), LinearForm(right, high)
    if not are_exact(s, new_left, new_right, dtype):
        raise TooWide
    new_a, new_b = s.write(new_left, dtype, e.a), s.write(new_right, dtype, e.b)
    if new_a is e.a and new_b is e.b and cls is type(e):
        return e
    return cls(new_a, new_b, span=e.span)


def _divide_constant(cls: type[Expr], const: int, factor: int) -> int | None:
    """k with `factor * x cls const` equal to `x cls k`; None when no x gives equality."""
    if cls is LT or cls is GE:
        return -(-const // factor)  # x < c / f: round up
    if cls is LE or cls is GT:
        return const // factor
    return const // factor if const % factor == 0 else None


def _open_division(s: Engine, cls: type[Any], left: dict[Expr, int], const: int, dtype: DataType) -> Expr | None:
    """x // c < k is x < k * c; x // c <= k is x < (k + 1) * c; and their opposites."""
    ((atom, k),) = left.items()
    if type(atom) is not FloorDiv or atom not in s.parts or abs(k) != 1 or cls is EQ or cls is NE:
        return None
    if k < 0:
        cls, const = _MIRROR[cls], -const
    x, d = s.parts[atom]
    if d.terms or d.const <= 0:
        return None
    if cls is LE or cls is GT:
        cls, const = (LT if cls is LE else GE), const + 1
    return s.simplify(cls(s.write(x, dtype), imm(const * d.const, dtype)))
