"""Polynomials over atoms: index arithmetic that is not affine, as far as bounds can be told of it.

    i * n + j // m          ↔     1·[i n] + 1·[j // m]         where  (j // m)·m ≤ j  and  j ≤ (j // m)·m + m - 1

An atom is a variable, or something that has no better form: a quotient by an open size, a loaded value, a minimum. What
is known of an atom stands beside it: numbers that it stays between, and what it is made of.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import Final, Literal

Kind = Literal["variable", "least", "greatest", "either", "quotient", "remainder", "value"]
Monomial = tuple["Atom", ...]  # sorted by number; () is the constant
MOST_TERMS: Final = 64  # of one polynomial; longer ones are not multiplied out

_numbers = count()


class Atom:
    """A factor. `low` and `high` are numbers it stays between, None where there is none.

    `args` of a minimum, a maximum or a choice are what it is one of; of a quotient (rounded down) or a remainder, what
    is divided and by what.
    """

    __slots__ = ("args", "high", "is_data", "kind", "low", "number")

    def __init__(
        self, kind: Kind, low: int | None, high: int | None, args: tuple[Poly, ...] = (), is_data: bool = False
    ) -> None:
        self.kind = kind
        self.low = low
        self.high = high
        self.args = args
        self.is_data = is_data  # the program computes with it in its own width, so arithmetic on it may wrap around
        self.number = next(_numbers)


class Poly:
    """The sum of `coefficient * monomial`; no coefficient is 0. Treat it as immutable."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms

    @property
    def key(self) -> Hashable:
        """Equal for equal polynomials."""
        return frozenset(self.terms.items())

    @property
    def const(self) -> int | None:
        """The number that this is; None when it is none."""
        if not self.terms:
            return 0
        return self.terms.get((), None) if len(self.terms) == 1 else None

    @property
    def is_data(self) -> bool:
        """Whether loaded values take part."""
        return any([atom.is_data for monomial in self.terms for atom in monomial])

    def atoms(self) -> dict[Atom, None]:
        """Its atoms, each once."""
        return {atom: None for monomial in self.terms for atom in monomial}

    def plus(self, other: Poly, scale: int = 1) -> Poly:
        """self + scale * other."""
        terms = dict(self.terms)
        for monomial, k in other.terms.items():
            total = terms.get(monomial, 0) + scale * k
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Poly(terms)

    def shifted(self, by: int) -> Poly:
        """self + by."""
        return self.plus(number(by))

    def negated(self) -> Poly:
        """-self."""
        return Poly({monomial: -k for monomial, k in self.terms.items()})

    def times(self, other: Poly) -> Poly | None:
        """self * other; None when that is too long."""
        if len(self.terms) * len(other.terms) > MOST_TERMS:
            return None
        terms: dict[Monomial, int] = {}
        for a, j in self.terms.items():
            for b, k in other.terms.items():
                monomial = tuple(sorted(a + b, key=_by_number)) if a and b else a or b
                total = terms.get(monomial, 0) + j * k
                if total:
                    terms[monomial] = total
                else:
                    terms.pop(monomial, None)
        return Poly(terms)

    def replaced(self, atom: Atom, value: Poly) -> Poly | None:
        """With `value` for `atom`; None when that is too long."""
        total: Poly = Poly({})
        for monomial, k in self.terms.items():
            part: Poly | None = Poly({tuple([a for a in monomial if a is not atom]): k})
            for _ in range(monomial.count(atom)):
                part = None if part is None else part.times(value)
            if part is None:
                return None
            total = total.plus(part)
        return total


def _by_number(atom: Atom) -> int:
    return atom.number


def number(value: int) -> Poly:
    """The polynomial of a number."""
    return Poly({(): value} if value else {})


def just(atom: Atom) -> Poly:
    """The polynomial of an atom."""
    return Poly({(atom,): 1})


def interval(poly: Poly) -> tuple[int | None, int | None]:
    """Numbers that the polynomial stays between."""
    low: int | None = 0
    high: int | None = 0
    for monomial, k in poly.terms.items():
        ends: tuple[int | None, int | None] = (k, k)
        for atom in monomial:
            ends = _product(ends, (atom.low, atom.high))
        low = None if low is None or ends[0] is None else low + ends[0]
        high = None if high is None or ends[1] is None else high + ends[1]
    return low, high


def _product(a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    """The ends of a product of intervals; None is no end."""
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    lows: list[float] = [-_INFINITE if end is None else end for end in (a[0], b[0])]
    highs: list[float] = [_INFINITE if end is None else end for end in (a[1], b[1])]
    products = [0 if 0 in (x, y) else x * y for x in (lows[0], highs[0]) for y in (lows[1], highs[1])]
    least, greatest = min(products), max(products)
    return (None if least == -_INFINITE else int(least)), (None if greatest == _INFINITE else int(greatest))


_INFINITE: Final = float("inf")
