"""Rows for quotients and remainders, rounded down and towards zero. A divisor is never zero: x // 0 has no value."""

from __future__ import annotations

from typing import Final

from loopwright.arith.rewrite.pattern import Rule, c0, c1, c2, o, rule, tdiv, tmod, x, y, z
from loopwright.ir import EQ, NE, Expr, FloorDiv, FloorMod, Max, Min, const

zero, one, minus = const(0), const(1), const(-1)
divides = EQ(c0 % c1, zero)  # c1 divides c0


def _positive(*literals: Expr) -> tuple[Expr, ...]:
    return tuple([c > 0 for c in literals])


FLOORDIV: Final = [
    rule(FloorDiv(x, one), x),
    rule(FloorDiv(x, minus), x * -1),
    rule(FloorDiv(zero, x), zero),
    rule(x // x, one),
    rule((x // c0) // c1, x // (c0 * c1), *_positive(c0, c1)),
    rule((x // c0 + c1) // c2, (x + (c0 * c1)) // (c0 * c2), *_positive(c0, c2)),
    rule((x - x % c0) // c0, x // c0),
    rule((x % 2 + 1) // 2, x % 2),
    # the factor and the divisor share a part
    rule((x * c0) // c1, x * (c0 // c1), divides),
    rule((x * c0) // c1, x // (c1 // c0), EQ(c1 % c0, zero), *_positive(c0, c1)),
    rule((x * c0 + c1) // c2, x * (c0 // c2) + c1 // c2, EQ(c0 % c2, zero)),
    rule(
        (x * c0 + c1) // c2,
        x // (c2 // c0) + c1 // c2,
        *_positive(c0, c2),
        EQ(c2 % c0, zero),
        EQ(c1 // c2 * c2, c1 // c0 * c0),
    ),
    rule((x * c0 + y) // c1, x // (c1 // c0), *_positive(c0, c1), EQ(c1 % c0, zero), y >= 0, y < c0),
    rule(
        ((x * c0 + y) + z) // c1,
        x // (c1 // c0),
        *_positive(c0, c1),
        EQ(c1 % c0, zero),
        y + z >= 0,
        y + z < c0,
    ),
    # a multiple of the divisor goes out
    rule(o(x * c0 + y) // c1, x * (c0 // c1) + y // c1, divides),
    rule((o(x * c0 + y) + z) // c1, x * (c0 // c1) + (y + z) // c1, divides),
    rule(
        o(x * c0 + y) // c1,
        x * (c0 // c1),
        c1 > 0,
        NE(c0 // c1, zero),
        x * (c0 % c1) + y >= 0,
        x * (c0 % c1) + y < c1,
    ),
    rule((x + c0) // c1, x // c1 + c0 // c1, divides),
    rule(o(x + y) // x, y // x + 1),
    rule((o(x + y) + z) // x, (y + z) // x + 1),
    rule((y + o(x + z)) // x, (y + z) // x + 1),
    rule(o(x * y) // y, x),
    rule((o(x * z) + y) // z, x + y // z),
    rule((y + o(x * z)) // z, y // z + x),
    *[
        row
        for lo in (Min, Max)
        for row in (
            rule(lo(x * c0, y) // c1, lo(x * (c0 // c1), y // c1), divides, c1 > 0),
            rule(lo(y, x * c0) // c1, lo(y // c1, x * (c0 // c1)), divides, c1 > 0),
        )
    ],
]

FLOORMOD: Final = [
    rule(FloorMod(x, one), zero),
    rule(FloorMod(x, minus), zero),
    rule(FloorMod(zero, x), zero),
    rule(x % x, zero),
    rule((x % c0) % c1, x % c1, divides, c1 > 0),
    rule((x * c0) % c1, zero, divides),
    rule((x * c0) % c1, (x * (c0 % c1)) % c1, NE(c0 % c1, c0), c1 > 0),
    rule(o(x * c0 + y) % c1, y % c1, divides),
    rule((x * c0 + y) % c1, (x * (c0 % c1) + y) % c1, NE(c0 % c1, c0), c1 > 0),
    rule((y + x * c0) % c1, (y + x * (c0 % c1)) % c1, NE(c0 % c1, c0), c1 > 0),
    rule(
        (x * c0 + y) % c1,
        (x % (c1 // c0)) * c0 + y,
        *_positive(c0, c1),
        EQ(c1 % c0, zero),
        c1 > c0,
        y >= 0,
        y < c0,
    ),
    rule((x + c0) % c1, (x + c0 % c1) % c1, NE(c0 % c1, c0), c1 > 0),
    rule((x + c0) % c1, x % c1, divides),
    rule(o(x + y) % x, y % x),
    rule(o(x * y) % x, zero),
    # x without its remainder is a multiple
    rule((x - x % y) % y, zero),
    rule((x - x % (y * -1)) % y, zero),
    rule((x - x % c0) % c1, zero, EQ(c0 % c1, zero)),
    rule(o(x + (x * -1) % y) % y, zero),
    rule(o(x + (zero - x) % y) % y, zero),
    rule(o(x + (x * c0) % c1) % c1, zero, EQ((c0 + 1) % c1, zero)),
]

TRUNCDIV: Final = [
    rule(tdiv(x, one), x),
    rule(tdiv(x, minus), x * -1),
    rule(tdiv(zero, x), zero),
    rule(tdiv(x, x), one),
    rule(tdiv(tdiv(x, c0), c1), tdiv(x, c0 * c1), *_positive(c0, c1)),
    rule(tdiv(tdiv(x, c0) + c1, c2), tdiv(x + (c0 * c1), c0 * c2), *_positive(c0, c2), c1 >= 0, x >= 0),
    rule(tdiv(x * c0, c1), x * (c0 // c1), divides),
    rule(tdiv(x * c0, c1), tdiv(x, c1 // c0), EQ(c1 % c0, zero), *_positive(c0, c1)),
    rule(tdiv(x * c0 + y, c1), x * (c0 // c1) + tdiv(y, c1), divides, c1 > 0, x * c0 >= 0, y >= 0),
    rule(tdiv(y + x * c0, c1), tdiv(y, c1) + x * (c0 // c1), divides, c1 > 0, x * c0 >= 0, y >= 0),
    rule(
        tdiv(o(x * c0 + y) + z, c1),
        x * (c0 // c1) + tdiv(y + z, c1),
        divides,
        c1 > 0,
        x * c0 >= 0,
        y + z >= 0,
    ),
    rule(tdiv(x + c0, c1), tdiv(x, c1) + c0 // c1, divides, *_positive(c0, c1), x >= 0),
    rule(tdiv(o(x + y), x), tdiv(y, x) + 1, x >= 0, y >= 0),
    rule(tdiv(o(x + y) + z, x), tdiv(y + z, x) + 1, x >= 0, y + z >= 0),
    rule(tdiv(y + o(x + z), x), tdiv(y + z, x) + 1, x >= 0, y + z >= 0),
    rule(tdiv(o(x * y), y), x),
    rule(tdiv(o(x * z) + y, z), x + tdiv(y, z), x >= 0, y >= 0, z >= 0),
    rule(tdiv(y + o(x * z), z), tdiv(y, z) + x, x >= 0, y >= 0, z >= 0),
    *[
        row
        for lo in (Min, Max)
        for row in (
            rule(tdiv(lo(x * c0, y), c1), lo(x * (c0 // c1), tdiv(y, c1)), divides, c1 > 0),
            rule(tdiv(lo(y, x * c0), c1), lo(tdiv(y, c1), x * (c0 // c1)), divides, c1 > 0),
        )
    ],
]

TRUNCMOD: Final = [
    rule(tmod(x, c0), tmod(x, zero - c0), c0 < 0),
    rule(tmod(x, one), zero),
    rule(tmod(zero, x), zero),
    rule(tmod(x, x), zero),
    rule(tmod(x * c0, c1), zero, divides),
    rule(tmod(o(x * c0 + y), c1), tmod(y, c1), divides, x * c0 >= 0, y >= 0),
    rule(tmod(x + c0, c1), tmod(x, c1), divides, c0 >= 0, x >= 0),
    rule(tmod(x + c0, c1), tmod(x + tmod(c0, c1), c1), c0 >= c1, c1 > 0, x >= 0),
    rule(tmod(o(x + y * c0), c1), tmod(x, c1), divides, x >= 0, y * c0 >= 0),
    rule(tmod(o(x * y), x), zero),
]

DIVISIONS: Final[list[Rule]] = [*FLOORDIV, *FLOORMOD, *TRUNCDIV, *TRUNCMOD]
