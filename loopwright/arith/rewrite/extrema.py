"""Rows for minima and maxima. Where one operand is proved to be the smaller one, no row is needed."""

from __future__ import annotations

from typing import Any, Final

from loopwright.arith.rewrite.pattern import Rule, c0, c1, o, p, rule, tdiv, w, x, y, z
from loopwright.ir import EQ, NE, FloorDiv, Max, Min, Select, const

zero = const(0)


def _extrema(lo: Any, hi: Any) -> list[Rule]:
    """Rows that hold for minima and for maxima, `hi` being the opposite of `lo`."""
    return [
        rule(lo(x, x), x),
        rule(o(lo(o(hi(x, y)), x)), x),
        rule(o(lo(hi(x, y), o(lo(x, y)))), lo(x, y)),
        rule(lo(o(hi(x, y)), o(hi(x, z))), hi(lo(y, z), x)),
        rule(lo(o(lo(x, y)), o(lo(x, z))), lo(lo(y, z), x)),
        # a common part goes out
        rule(lo(o(y + x), o(z + x)), lo(y, z) + x),
        rule(lo(x - y, x - z), x - hi(y, z)),
        rule(lo(y - x, z - x), lo(y, z) - x),
        rule(lo(c0 - x, c1), c0 - hi(x, c0 - c1), NE(c1, zero)),
        rule(lo(x * c0, y * c0), lo(x, y) * c0, c0 > 0),
        rule(lo(x * c0, y * c0), hi(x, y) * c0, c0 < 0),
        rule(lo(x * c0, c1), lo(x, c1 // c0) * c0, c0 > 0, EQ(c1 % c0, zero)),
        rule(lo(x * c0, c1), hi(x, c1 // c0) * c0, c0 < 0, EQ(c1 % c0, zero)),
        # literals meet
        rule(lo(o(lo(x, c0)), c1), lo(x, lo(c0, c1))),
        rule(lo(o(lo(x, c0)), y), lo(lo(x, y), c0)),
        # quotients grow with what is divided
        *[
            row
            for div in (FloorDiv, tdiv)
            for row in (
                rule(lo(div(x, c0), div(y, c0)), div(lo(x, y), c0), c0 > 0),
                rule(lo(div(x, c0), div(y, c0)), div(hi(x, y), c0), c0 < 0),
            )
        ],
        rule(lo(Select(p, x, y), Select(p, z, w)), Select(p, lo(x, z), lo(y, w))),
    ]


def _rounded_up(div: Any) -> list[Rule]:
    """The next multiple of c0 is not below x."""
    up = div(x + c1, c0) * c0
    return [
        rule(o(Min(up, x)), x, c0 > 0, c1 >= c0 - 1),
        rule(o(Max(up, x)), up, c0 > 0, c1 >= c0 - 1),
        rule(o(Min(up, o(Max(x, c0)))), Max(x, c0), c0 > 0, EQ(c1, c0 - 1), x > 0),
        rule(o(Max(up, o(Max(x, c0)))), up, c0 > 0, EQ(c1, c0 - 1), x > 0),
    ]


EXTREMA: Final = [*_extrema(Min, Max), *_extrema(Max, Min), *_rounded_up(FloorDiv), *_rounded_up(tdiv)]
