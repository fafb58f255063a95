"""Linear forms: a matrix times a few values, as expressions with few multiplications.

    Bᵀ of F(2, 3):    d2 - d0,   d2 + d1,   d2 - d1,   d3 - d1            no multiplication at all
    Aᵀ of F(4, 3):    y0 = m0 + (m1 + m2) + (m3 + m4),   y1 = 3/4 (m1 - m2) + 3/2 (m3 - m4),   …

Zeros and ones vanish. Values that all rows weigh alike but for the sign (those at points p and -p) are added or
subtracted once; the rows at p and -p are the same sum of even and of odd terms, added and subtracted. Rows are written
so that what they share is the same expression: the compiler computes it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from loopwright.ir import Expr, const
from loopwright.schedule.winograd.matrices import Matrix

_Term = tuple[Fraction, Expr]


def rows_of(matrix: Matrix, values: Sequence[Expr]) -> list[Expr]:
    """An expression for each row of `matrix` times `values`."""
    partners = _partners(matrix)
    return [_row(row, values, partners) for row in matrix]


def _partners(matrix: Matrix) -> dict[int, int]:
    """Neighbouring columns that are equal but for signs: the first one's number, and the second's."""
    result: dict[int, int] = {}
    column, width = 0, len(matrix[0])
    while column + 1 < width:
        pairs = [(row[column], row[column + 1]) for row in matrix]
        signs = {a == b for a, b in pairs if a or b}
        if len(signs) == 2 and all(abs(a) == abs(b) for a, b in pairs):
            result[column] = column + 1
            column += 1
        column += 1
    return result


def _row(row: Sequence[Fraction], values: Sequence[Expr], partners: dict[int, int]) -> Expr:
    if partners:
        return _sum(_paired(row, values, partners))
    terms = [(weight, value, position % 2) for position, (weight, value) in enumerate(zip(row, values, strict=True))]
    even, odd = ([(weight, value) for weight, value, parity in terms if weight and parity == kind] for kind in (0, 1))
    if not even or not odd:
        return _sum(even or odd)
    # The last weight of either group becomes 1, so that rows at p and -p differ only in how the two are joined.
    groups = [_with_last_one(even), _with_last_one(odd)]
    return _sum(groups) if all(groups) else _sum([*even, *odd])  # type: ignore[arg-type]


def _with_last_one(terms: Sequence[_Term]) -> _Term | None:
    """A group of terms divided by the weight of the last, and that weight; None if that would round a weight."""
    scale = terms[-1][0]
    parts = [(weight / scale, value) for weight, value in terms]
    if all(_is_exact(weight) for weight, _ in terms) and not all(_is_exact(weight) for weight, _ in parts):
        return None
    return scale, _sum(parts)


def _is_exact(number: Fraction) -> bool:
    """Whether a floating-point number stands for the fraction."""
    return number.denominator & (number.denominator - 1) == 0


def _paired(row: Sequence[Fraction], values: Sequence[Expr], partners: dict[int, int]) -> list[_Term]:
    terms: list[_Term] = []
    second = set(partners.values())
    for position, weight in enumerate(row):
        if position in second or not weight:
            continue
        value = values[position]
        if position in partners:
            other = values[partners[position]]
            value = value + other if row[partners[position]] == weight else value - other
        terms.append((weight, value))
    return terms


def _sum(terms: Sequence[_Term]) -> Expr:
    """The terms added up, those with weight 1 first, so that every other is one multiply-add."""
    return _joined(sorted(terms, key=lambda term: (term[0] != 1, abs(term[0]) != 1)))


def _joined(terms: Sequence[_Term]) -> Expr:
    weight, total = terms[0]
    if weight != 1:
        total = _times(weight, total)
    for weight, value in terms[1:]:
        if weight == 1:
            total = total + value
        elif weight == -1:
            total = total - value
        elif weight < 0:
            total = total - _times(-weight, value)
        else:
            total = total + _times(weight, value)
    return total


def _times(weight: Fraction, value: Expr) -> Expr:
    return value * const(float(weight), value.dtype)
