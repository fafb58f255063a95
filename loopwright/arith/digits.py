"""Digits: a fused loop over open sizes, seen as the loops that it was fused from.

    for f in range(12 * n * m):             counts like      for a in range(12):
        B[f // m // n, f // m % n, f % m]                        for b in range(n):
                                                                     for c in range(m): …

`f // m` with an open `m` is not affine, so nothing could be proved of such a loop. But f counts through the digits
(a, b, c) in the order of a dictionary, each combination once, whatever the sizes are: a loop over f *is* the nest, as
long as the body looks at nothing but digits. Where m is 0, neither runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import NamedTuple

from loopwright.ir import (
    Add,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Min,
    Mul,
    SizeVar,
    Var,
    collect,
    const,
    pre_order_visit,
    reads_memory,
)
from loopwright.ir.structural import structural_equal


class Digits(NamedTuple):
    """What `x % divisor` and `x // divisor` are: a digit, and the digits that are left (or the last of them)."""

    divisor: Expr
    low: Var
    rest: Digits | Var


class Digit(NamedTuple):
    """A digit runs from 0 to `extent` - 1."""

    var: Var
    extent: Expr


def digit(e: Expr, known: Mapping[Var, Digits]) -> Digits | Var | None:
    """The digit of a loop that `e` is, or the digits that are left; None when it is neither."""
    e = _plain(e)
    if isinstance(e, Var):
        return known.get(e)
    if isinstance(e, (FloorDiv, FloorMod)):
        of = digit(e.a, known)
        if isinstance(of, Digits) and structural_equal(of.divisor, e.b):
            return of.rest if isinstance(e, FloorDiv) else of.low
    return None


def digits_of(loop: For, sizes: Sequence[Expr]) -> tuple[Digits, list[Digit]] | None:
    """The digits of a loop, outermost first; None when its body looks at something else.

    Its extent is a product of which each divisor is a part. `sizes` are not negative: a product of two negative numbers
    would run, and the nest would not.
    """
    if isinstance(loop.extent, (IntImm, Var)) or not (isinstance(loop.min, IntImm) and loop.min.value == 0):
        return None
    used = _divisions(loop)
    if all([isinstance(division.b, IntImm) for division in used]):
        return None  # affine as it is
    factors = _factors(loop.extent)
    result: list[tuple[Expr, Expr]] = []  # what is divided, by what
    value: Expr = loop.loop_var
    while True:
        divisors = [e.b for e in used if structural_equal(_plain(e.a), value)]
        if not divisors or not all(structural_equal(other, divisors[0]) for other in divisors[1:]):
            break
        parts = _factors(divisors[0])
        left = _without(factors, parts)
        if left is None or not all(_not_negative(part, sizes) for part in parts):
            break
        factors = left
        result.append((value, divisors[0]))
        value = FloorDiv(value, divisors[0])
    if not result:
        return None
    dtype = loop.loop_var.dtype
    rest_extent: Expr = const(1, dtype)
    for factor in factors:
        rest_extent = rest_extent * factor
    last = Var(str(value), dtype)
    rest: Digits | Var = last
    order = [Digit(last, rest_extent)]
    for divided, divisor in reversed(result):
        low = Var(str(FloorMod(divided, divisor)), dtype)
        rest = Digits(divisor, low, rest)
        order.append(Digit(low, divisor))
    assert isinstance(rest, Digits)
    return (rest, order) if _only_digits(loop, rest) else None


def fixed_by(loop_var: Var, extent: Expr, values: Sequence[Expr]) -> bool:
    """Whether equal `values` mean equal iterations of the loop: they hold all its digits."""
    left = _factors(extent)
    value: Expr = loop_var
    while True:
        if any(structural_equal(_plain(other), value) for other in values):
            return True
        mods = [_plain(other) for other in values]
        divisor = next((e.b for e in mods if isinstance(e, FloorMod) and structural_equal(_plain(e.a), value)), None)
        if divisor is None:
            return False
        if not (isinstance(divisor, IntImm) and divisor.value):
            fewer = _without(left, _factors(divisor))  # a factor of the extent is not 0 where the loop runs
            if fewer is None or reads_memory(divisor):  # what is read may be another number in another iteration
                return False
            left = fewer
        value = FloorDiv(value, divisor)


def _only_digits(loop: For, digits: Digits) -> bool:
    """Whether every use of the loop variable is one of its digits."""
    known, others = {loop.loop_var: digits}, False

    def look(node: object) -> bool:
        nonlocal others
        others = others or node is loop.loop_var
        return not (isinstance(node, (FloorDiv, FloorMod)) and isinstance(digit(node, known), Var))

    pre_order_visit(loop.body, look)
    return not others


def _not_negative(e: Expr, sizes: Sequence[Expr]) -> bool:
    """A quick yes."""
    e = _plain(e)
    if isinstance(e, IntImm):
        return e.value >= 0
    if isinstance(e, (Add, Mul, Min)):
        return _not_negative(e.a, sizes) and _not_negative(e.b, sizes)
    if isinstance(e, FloorDiv):
        return isinstance(e.b, IntImm) and e.b.value > 0 and _not_negative(e.a, sizes)
    return isinstance(e, SizeVar) or any(structural_equal(e, size) for size in sizes)


def _divisions(loop: For) -> list[FloorDiv | FloorMod]:
    """The divisions in the body whose left side starts at the loop variable."""
    return [node for node in collect(loop.body, FloorDiv, FloorMod) if _start(node) is loop.loop_var]


def _start(e: Expr) -> Expr:
    while True:
        e = _plain(e)
        if not isinstance(e, (FloorDiv, FloorMod)):
            return e
        e = e.a


def _plain(e: Expr) -> Expr:
    """The expression without widening conversions."""
    while isinstance(e, Cast) and e.value.dtype.is_int and e.dtype.is_int and e.dtype.bits >= e.value.dtype.bits:
        e = e.value
    return e


def _factors(e: Expr) -> list[Expr]:
    """What is multiplied; `x * 16 + 16` is (x + 1) * 16, which simplifying multiplies out."""
    e = _plain(e)
    if isinstance(e, Add):
        common = gcd(*[_coefficient(term) for term in _addends(e)])
        return [_divided(e, common), const(common, e.dtype)] if common > 1 else [e]
    return [*_factors(e.a), *_factors(e.b)] if isinstance(e, Mul) else [e]


def _addends(e: Expr) -> list[Expr]:
    return [*_addends(e.a), *_addends(e.b)] if isinstance(e, Add) else [e]


def _coefficient(e: Expr) -> int:
    if isinstance(e, IntImm):
        return e.value
    return e.b.value if isinstance(e, Mul) and isinstance(e.b, IntImm) else 1


def _divided(e: Expr, by: int) -> Expr:
    if isinstance(e, Add):
        return _divided(e.a, by) + _divided(e.b, by)
    left = _coefficient(e) // by
    if not isinstance(e, Mul):
        return const(left, e.dtype)
    return e.a if left == 1 else e.a * const(left, e.dtype)


def _without(factors: Sequence[Expr], gone: Sequence[Expr]) -> list[Expr] | None:
    """The factors that are left after a division that has no rest; None where that is not seen."""
    left = list(factors)
    for one in gone:
        for index, factor in enumerate(left):
            if structural_equal(factor, one):
                del left[index]
                break
            if not isinstance(factor, IntImm) or not isinstance(one, IntImm) or one.value <= 0:
                continue
            if factor.value % one.value == 0:
                left[index] = const(factor.value // one.value, factor.dtype)
                break
        else:
            return None
    return left
