"""Modular facts: a pair (m, b) says that a value is b plus a multiple of m; m = 0 means exactly b."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from loopwright.arith.bounds import HUGE
from loopwright.arith.engine import Engine
from loopwright.arith.linear import LinearForm, is_index
from loopwright.ir import Call, Cast, Expr, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mul, Select


class ModularSet(NamedTuple):
    """The values coeff * k + base for integers k; a constant has coeff 0."""

    coeff: int
    base: int


ANYTHING = (1, 0)


def form_modular(s: Engine, form: LinearForm) -> tuple[int, int]:
    """The remainder that a linear form always leaves."""
    m, b = 0, form.const
    for atom, k in form.terms.items():
        atom_m, atom_b = atom_modular(s, atom)
        m, b = gcd(m, k * atom_m), b + k * atom_b
    return _reduced(m, b)


def expr_modular(s: Engine, e: Expr) -> tuple[int, int]:
    """The remainder that an integer expression always leaves."""
    if not is_index(e.dtype):
        return atom_modular(s, e)
    return form_modular(s, s.form(e)) if s.is_exact(e) else ANYTHING


def atom_modular(s: Engine, atom: Expr) -> tuple[int, int]:
    """What structure and facts say about one atom."""
    fact = s.facts.modular.get(atom)
    if fact is not None:
        return fact
    known = s.remainders.get(atom)
    if known is None:
        known = s.remainders[atom] = _structural(s, atom)
    return known


def _structural(s: Engine, e: Expr) -> tuple[int, int]:
    if isinstance(e, IntImm):
        return 0, e.value
    if not is_index(e.dtype):
        return ANYTHING  # wrapping arithmetic keeps no remainder but that of a power of two
    if isinstance(e, Mul):
        result = 0, 1
        factors = s.factors.get(e, ())
        for factor in factors if len(factors) > 3 else (e.a, e.b):
            (m1, b1), (m2, b2) = result, expr_modular(s, factor)
            result = _reduced(gcd(m1 * m2, m1 * b2, m2 * b1), b1 * b2)
        return result
    if isinstance(e, (FloorDiv, FloorMod)):
        (m, b), (n, c) = expr_modular(s, e.a), expr_modular(s, e.b)
        if n == 0 and c > 0:
            if isinstance(e, FloorDiv):
                return _reduced(m // c, b // c) if m % c == 0 else ANYTHING
            return _reduced(gcd(m, c), b) if m % c else (0, b % c)
        return ANYTHING
    if isinstance(e, (Min, Max)):
        return _either(expr_modular(s, e.a), expr_modular(s, e.b))
    if isinstance(e, Select):
        return _either(expr_modular(s, e.true_value), expr_modular(s, e.false_value))
    if isinstance(e, Call):
        if e.op.name == "tir.if_then_else":
            return _either(expr_modular(s, e.args[1]), expr_modular(s, e.args[2]))
        return _bits(s, e) if e.op.name in ("tir.shift_right", "tir.bitwise_and") else ANYTHING
    if isinstance(e, Let):
        return _let(s, e)
    if isinstance(e, Cast) and is_index(e.value.dtype) and e.value.dtype.bits <= e.dtype.bits:
        if s.is_within(e.value):
            return expr_modular(s, e.value)
    return ANYTHING


def _bits(s: Engine, e: Call) -> tuple[int, int]:
    """A call works on the low bits of an index, so remainders modulo powers of two count."""
    a, b = e.args
    if not isinstance(b, IntImm) or not is_index(a.dtype) or b.value < 0:
        return ANYTHING
    m, base = form_modular(s, s.form(a))
    low = gcd(m, 1 << e.dtype.bits)
    if e.op.name == "tir.shift_right":
        power = 1 << min(b.value, e.dtype.bits)
        return _reduced(low // power, base // power) if low % power == 0 and low > power else ANYTHING
    lowest = b.value & -b.value
    if not lowest:
        return 0, 0
    return (lowest, 0) if lowest >= low else _reduced(low, base & b.value)


def _let(s: Engine, e: Let) -> tuple[int, int]:
    value = expr_modular(s, e.value) if is_index(e.var.dtype) else ANYTHING
    saved = s.enter()
    try:
        s.facts.put(s.facts.modular, e.var, value)
        return expr_modular(s, e.body)
    finally:
        s.leave(saved)


def _reduced(m: int, b: int) -> tuple[int, int]:
    m = abs(m)
    if (m or abs(b)) > HUGE:
        return ANYTHING
    return (m, b % m) if m else (0, b)


def intersection(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """What follows from both (the Chinese remainder theorem); None when they exclude each other, or say one value."""
    (m, b), (n, c) = one, other
    if not m or not n:
        return None
    common = gcd(m, n)
    if (c - b) % common:
        return None
    steps = (c - b) // common * pow(m // common, -1, n // common) if n != common else 0
    return _reduced(m // common * n, b + m * steps)


def _either(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """What holds for both."""
    return _reduced(gcd(one[0], other[0], one[1] - other[1]), one[1])
