"""Rows for comparisons and logic.

Only `<`, `==` and their opposites remain: `a > b` is `b < a`, `a <= b` the opposite of `b < a`, `a != b` of `a == b`.
"""

from __future__ import annotations

from typing import Any, Final

from loopwright.arith.rewrite.pattern import FALSE, TRUE, Rule, c0, c1, c2, o, p, q, r, rule, tdiv, tmod, x, y, z
from loopwright.ir import EQ, LE, LT, NE, And, FloorDiv, FloorMod, Max, Min, Not, Or, Select, const

zero, one = const(0), const(1)


def _next_multiple(div: Any, mod: Any) -> list[Rule]:
    """A multiple of a quotient beside what it was made of: the remainder compares."""
    return [
        rule(LT(div(x, c0) * c0, x), LT(zero, mod(x, c0))),
        rule(LT(div(x, c0) * c0, o(x + y)), LT(zero, mod(x, c0) + y)),
        rule(LT(div(x, c0) * c0, x - y), LT(y, mod(x, c0))),
        rule(LT(div(x + c1, c0) * c0, x), LT(c1, mod(x + c1, c0))),
        rule(LT(div(x + c1, c0) * c0, o(x + y)), LT(c1, mod(x + c1, c0) + y)),
        rule(LT(div(x + c1, c0) * c0, x - y), LT(y + c1, mod(x + c1, c0))),
    ]


LESS: Final = [
    *_next_multiple(FloorDiv, FloorMod),
    *_next_multiple(tdiv, tmod),
    # what both sides have goes
    rule(LT(o(x + y), o(x + z)), LT(y, z)),
    rule(LT(y - x, z - x), LT(y, z)),
    rule(LT(x - y, x - z), LT(z, y)),
    rule(LT(x, o(x + z)), LT(zero, z)),
    rule(LT(o(x + z), x), LT(z, zero)),
    rule(LT(x, x - z), LT(z, zero)),
    rule(LT(x - z, x), LT(zero, z)),
    rule(LT(x * c0, y * c0), LT(x, y), c0 > 0),
    rule(LT(x * c0, y * c0), LT(y, x), c0 < 0),
    # literals: one is left, and positive where it stands beside something
    rule(LT(x + c0, c1), LT(x, c1 - c0)),
    rule(LT(c0, x + c1), LT(c0 - c1, x)),
    rule(LT(c0 - x, c1), LT(c0 - c1, x)),
    rule(LT(c0, c1 - x), LT(x, c1 - c0)),
    rule(LT(x + c0, y + c1), LT(x, y + (c1 - c0)), c1 >= c0),
    rule(LT(x + c0, y + c1), LT(x + (c0 - c1), y), c1 < c0),
    rule(LT(x, y + c0), LE(x, y), EQ(c0, one)),
    rule(LT(x, y + c0), LT(x + (zero - c0), y), c0 < 0),
    rule(LT(x + c0, y), LE(x, y), EQ(c0, const(-1))),
    rule(LT(x + c0, y), LT(x, y + (zero - c0)), c0 < 0),
    rule(LT(c0 - x, y), LT(c0, y + x)),
    rule(LT(x, c0 - y), LT(x + y, c0)),
    # a factor
    rule(LT(x * c0, c1), LT(x, zero - (zero - c1) // c0), c0 > 0),
    rule(LT(x * c0, c1), LT(c1 // c0, x), c0 < 0),
    rule(LT(c1, x * c0), LT(c1 // c0, x), c0 > 0),
    rule(LT(c1, x * c0), LT(x, zero - (zero - c1) // c0), c0 < 0),
    # a quotient
    rule(LT(x // c0, c1), LT(x, c0 * c1), c0 > 0),
    rule(LT(c1, x // c0), LT((c1 + 1) * c0 - 1, x), c0 > 0),
    rule(LT(tdiv(x, c0), c1), LT(x, c0 * c1), c0 > 0, c1 > 0),
    rule(LT(tdiv(x, c0), c1), LT(x, (c1 - 1) * c0 + 1), c0 > 0, c1 <= 0),
    rule(LT(c1, tdiv(x, c0)), LT((c1 + 1) * c0 - 1, x), c0 > 0, c1 >= 0),
    rule(LT(c1, tdiv(x, c0)), LT(c0 * c1, x), c0 > 0, c1 < 0),
    # minima and maxima
    rule(LT(x, o(Max(x, y))), LT(x, y)),
    rule(LT(o(Min(x, y)), x), LT(y, x)),
    rule(LT(x + c0, o(Max(x, y))), LT(x + c0, y), c0 >= 0),
    rule(LT(o(Min(x, y)), x + c0), LT(y, x + c0), c0 <= 0),
    rule(LT(Min(x, y), c0), Or(LT(x, c0), LT(y, c0))),
    rule(LT(Max(x, y), c0), And(LT(x, c0), LT(y, c0))),
    rule(LT(c0, Min(x, y)), And(LT(c0, x), LT(c0, y))),
    rule(LT(c0, Max(x, y)), Or(LT(c0, x), LT(c0, y))),
    # a difference
    rule(LT(x - y, z), LT(x, z + y)),
    rule(LT(z, x - y), LT(z + y, x)),
]

EQUAL: Final = [
    rule(EQ(c0, x), EQ(x, c0)),
    rule(EQ(c0 - x, c1), EQ(x, c0 - c1)),
    rule(EQ(x - y, zero), EQ(x, y)),
    rule(EQ(x * c0 + c1, c2), EQ(x, (c2 - c1) // c0), NE(c0, zero), EQ((c2 - c1) % c0, zero)),
    rule(EQ(x + c0, c1), EQ(x, c1 - c0)),
    rule(EQ(x * c0, zero), EQ(x, zero), NE(c0, zero)),
    rule(EQ(x * y, zero), Or(EQ(x, zero), EQ(y, zero))),
    rule(EQ(x * c0, c1), EQ(x, c1 // c0), NE(c0, zero), EQ(c1 % c0, zero)),
    rule(EQ(o(x + y), o(x + z)), EQ(y, z)),
    rule(EQ(o(x + y), x), EQ(y, zero)),
    rule(EQ(x, o(x + y)), EQ(y, zero)),
    rule(EQ(y - x, z - x), EQ(y, z)),
    rule(EQ(x - y, x - z), EQ(y, z)),
    rule(EQ(x + c0, y + c1), EQ(x, y + (c1 - c0))),
]

LOGIC: Final = [
    rule(EQ(p, p), TRUE),
    rule(NE(p, p), FALSE),
    rule(EQ(p, TRUE), p),
    rule(EQ(p, FALSE), Not(p)),
    rule(NE(p, TRUE), Not(p)),
    rule(NE(p, FALSE), p),
    rule(And(p, p), p),
    rule(Or(p, p), p),
    rule(o(And(p, Not(p))), FALSE),
    rule(o(Or(p, Not(p))), TRUE),
    rule(o(And(EQ(x, y), o(NE(x, y)))), FALSE),
    rule(o(Or(EQ(x, y), o(NE(x, y)))), TRUE),
    rule(And(p, And(q, r)), And(And(p, q), r)),
    rule(Or(p, Or(q, r)), Or(Or(p, q), r)),
    # bounds of the same
    rule(And(LT(x, c0), LT(x, c1)), LT(x, Min(c0, c1))),
    rule(And(LE(x, c0), LE(x, c1)), LE(x, Min(c0, c1))),
    rule(And(LT(c0, x), LT(c1, x)), LT(Max(c0, c1), x)),
    rule(And(LE(c0, x), LE(c1, x)), LE(Max(c0, c1), x)),
    rule(Or(LT(x, c0), LT(x, c1)), LT(x, Max(c0, c1))),
    rule(Or(LE(x, c0), LE(x, c1)), LE(x, Max(c0, c1))),
    rule(Or(LT(c0, x), LT(c1, x)), LT(Min(c0, c1), x)),
    rule(Or(LE(c0, x), LE(c1, x)), LE(Min(c0, c1), x)),
    rule(o(And(EQ(x, c0), NE(x, c1))), EQ(x, c0), NE(c0, c1)),
    rule(o(Or(NE(x, c0), EQ(x, c1))), NE(x, c0), NE(c0, c1)),
    # quotient and remainder make the number
    rule(o(And(EQ(x // c0, c1), EQ(x % c0, c2))), EQ(x, c0 * c1 + c2), c2 >= 0, c2 < c0),
    rule(o(And(EQ(x // c0, c1), LT(x % c0, c2))), And(LE(c0 * c1, x), LT(x, c0 * c1 + c2)), c2 >= 0, c2 < c0),
    rule(o(And(EQ(x // c0, c1), LE(x % c0, c2))), And(LE(c0 * c1, x), LE(x, c0 * c1 + c2)), c2 >= 0, c2 < c0),
    rule(o(And(EQ(x // c0, c1), LT(c2, x % c0))), And(LT(c0 * c1 + c2, x), LT(x, c0 * c1 + c0)), c2 >= 0, c2 < c0),
    rule(o(And(EQ(x // c0, c1), LE(c2, x % c0))), And(LE(c0 * c1 + c2, x), LT(x, c0 * c1 + c0)), c2 >= 0, c2 < c0),
    # y * c0 is the last multiple that is not above x
    rule(o(And(LE(y * c0, x), LT(x, y * c0 + c1))), EQ(y, x // c0), EQ(c0, c1), c0 > 0),
    # an upper bound that the remainder excludes
    rule(
        And(LT(x, c0), LT(x % c1, c2)),
        And(LT(x, (c0 - 1) // c1 * c1 + c2), LT(x % c1, c2)),
        c2 > 0,
        c2 < c1,
        (c0 - 1) % c1 >= c2,
    ),
    rule(
        And(LE(x, c0), LT(x % c1, c2)),
        And(LT(x, c0 // c1 * c1 + c2), LT(x % c1, c2)),
        c2 > 0,
        c2 < c1,
        c0 % c1 >= c2,
    ),
    # choices
    rule(Select(Not(p), x, y), Select(p, y, x)),
    rule(Select(p, x, x), x),
]

CONDITIONS: Final = [*LESS, *EQUAL, *LOGIC]
