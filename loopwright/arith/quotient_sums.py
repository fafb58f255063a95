"""Sums of quotients: the digits of a number, put together again however they are written.

    f // 49 * 49 + f // 7 % 7 * 7 + f % 7                                   =    f
    (f * 4 + g) // 7 * 7 + (f * 4 + g) % 7                                  =    f * 4 + g
    f // 2 * 14 + (f * 2 + (f * 2 + g) // 7) % 7 * 7 + (f * 2 + g) % 7 …    the same, of a loop that was split

Simplifying each digit alone leaves them in forms that have nothing in common. So all become sums of floor(x / d), with
x linear: a remainder is x - d * floor(x / d), a quotient of a quotient is one quotient, coefficients are reduced modulo
the divisor, and what cannot reach the next multiple is left out. Equal quotients then look alike, and cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Final, NamedTuple

from loopwright.arith.bounds import atom_range
from loopwright.arith.engine import Engine
from loopwright.arith.facts import Interval
from loopwright.arith.linear import LinearForm, Terms, add_into, add_term
from loopwright.ir import Expr, FloorDiv, FloorMod
from loopwright.runtime.dtype import DataType

MOST_TERMS: Final = 24  # of a sum that is looked into: indices of arrays have fewer


class _Quotient(NamedTuple):
    """floor((the sum of k * term + const) / divisor), with 0 <= k, const < divisor."""

    terms: frozenset[tuple[Expr | _Quotient, int]]
    const: int
    divisor: int


_Sum = dict[Expr | _Quotient, int]


class _GivenUp(Exception):
    """The sum grew too long."""


def without_quotients(s: Engine, terms: Terms, const: int) -> LinearForm | None:
    """The sum with no quotient or remainder of a literal in it, where all of them cancel; None where some do not."""
    divisions = [atom for atom in terms if _is_division(s, atom)]
    if len(divisions) < 2:
        return None
    try:
        total, rest = _Reader(s).read(LinearForm(terms, const))
    except _GivenUp:
        return None
    plain = {term: k for term, k in total.items() if not isinstance(term, _Quotient)}
    return LinearForm(plain, rest) if len(plain) == len(total) else None


def join_quotients(s: Engine, form: LinearForm, dtype: DataType) -> LinearForm:
    """The sum over as few quotients as are left of it when equal ones cancel; they may be more than there were."""
    try:
        total, const = _Reader(s).read(form)
    except _GivenUp:
        return form
    return _written(s, total, const, dtype)


def _written(s: Engine, total: Mapping[Expr | _Quotient, int], const: int, dtype: DataType) -> LinearForm:
    result = LinearForm({}, const)
    for term, k in total.items():
        if isinstance(term, _Quotient):
            divided = _written(s, dict(term.terms), term.const, dtype)
            result = result.plus(s.atom(FloorDiv, divided, LinearForm({}, term.divisor), dtype), k)
        else:
            result = result.plus(LinearForm({term: 1}, 0), k)
    return result


def _is_division(s: Engine, atom: Expr) -> bool:
    if type(atom) is not FloorDiv and type(atom) is not FloorMod:
        return False
    parts = s.parts.get(atom)
    return parts is not None and not parts[1].terms and parts[1].const > 0


class _Reader:
    def __init__(self, s: Engine) -> None:
        self.s = s
        self.ranges: dict[_Quotient, Interval] = {}

    def read(self, form: LinearForm) -> tuple[_Sum, int]:
        """The form as a sum over variables and quotients."""
        total: _Sum = {}
        const = form.const
        for atom, k in form.terms.items():
            if not _is_division(self.s, atom):
                add_term(total, atom, k)
                continue
            divided, by = self.s.parts[atom]
            inner, inner_const = self.read(divided)
            quotient, quotient_const = self.quotient(inner, inner_const, by.const)
            if type(atom) is FloorMod:
                add_into(total, inner, k)
                const += k * inner_const
                k *= -by.const
            add_into(total, quotient, k)
            const += k * quotient_const
            if len(total) > MOST_TERMS:
                raise _GivenUp
        return total, const

    def quotient(self, total: _Sum, const: int, divisor: int) -> tuple[_Sum, int]:
        """floor((total + const) / divisor)."""
        outside: _Sum = {}
        inside: _Sum = {}
        for term, k in total.items():
            q, r = divmod(k, divisor)
            if q:
                outside[term] = q
            if r:
                inside[term] = r
        outside_const, const = divmod(const, divisor)
        opened = next((term for term, k in inside.items() if k == 1 and isinstance(term, _Quotient)), None)
        if isinstance(opened, _Quotient):  # floor((x + floor(y / d)) / divisor) = floor((d * x + y) / (d * divisor))
            del inside[opened]
            whole = {term: k * opened.divisor for term, k in inside.items()}
            add_into(whole, dict(opened.terms), 1)
            more, more_const = self.quotient(whole, const * opened.divisor + opened.const, opened.divisor * divisor)
        else:
            more, more_const = self.reduced(inside, const, divisor)
        add_into(outside, more, 1)
        return outside, outside_const + more_const

    def reduced(self, inside: _Sum, const: int, divisor: int) -> tuple[_Sum, int]:
        """A quotient whose coefficients are below its divisor, without what never reaches the next multiple."""
        for g in sorted({gcd(k, divisor) for k in inside.values()} | {divisor}, reverse=True):
            rest = [(term, k) for term, k in inside.items() if k % g]
            low, high = self.range(rest, const)
            if g == 1 or low // g != high // g:
                continue
            kept = {term: k // g for term, k in inside.items() if k % g == 0}
            if g == divisor:
                return kept, low // g
            return self.quotient(kept, low // g, divisor // g)
        return {_Quotient(frozenset(inside.items()), const, divisor): 1}, 0

    def range(self, terms: Sequence[tuple[Expr | _Quotient, int]], const: int) -> Interval:
        """The interval of a sum whose coefficients are positive."""
        low = high = const
        for term, k in terms:
            if isinstance(term, _Quotient):
                if term not in self.ranges:
                    least, most = self.range(list(term.terms), term.const)
                    self.ranges[term] = least // term.divisor, most // term.divisor
                least, most = self.ranges[term]
            else:
                least, most = atom_range(self.s, term)
            low, high = low + k * least, high + k * most
        return low, high
