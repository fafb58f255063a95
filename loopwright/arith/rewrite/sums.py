"""Rows for sums, differences and products."""

from __future__ import annotations

from typing import Any, Final

from loopwright.arith.rewrite.pattern import Rule, c0, c1, c2, o, p, rule, tdiv, tmod, v, w, x, y, z
from loopwright.ir import EQ, GT, LT, Add, FloorDiv, FloorMod, Max, Min, Mul, Select, Sub, const

zero, one = const(0), const(1)


def _extrema(lo: Any, hi: Any) -> list[Rule]:
    """Rows that hold for minima and for maxima, `hi` being the opposite of `lo`."""
    return [
        # a term joins the operands where it cancels
        rule(o(lo(x, y - z) + z), lo(x + z, y)),
        rule(o(lo(c0 - z, c1) + z), lo(z + c1, c0)),
        rule(o(lo(x - z, y) + z), lo(x, y + z)),
        rule(lo(x, y + c0) + c1, lo(x + c1, y), EQ(c0 + c1, zero)),
        rule(lo(x + c0, y) + c1, lo(x, y + c1), EQ(c0 + c1, zero)),
        rule(lo(x, y) - x, lo(zero, y - x)),
        rule(lo(x, y) - y, lo(x - y, zero)),
        rule(lo(o(x + y), z) - x, lo(y, z - x)),
        rule(lo(z, o(x + y)) - x, lo(z - x, y)),
        rule(x - lo(x, y), hi(zero, x - y)),
        rule(y - lo(x, y), hi(y - x, zero)),
        rule(x - lo(o(x + y), z), hi(zero - y, x - z)),
        rule(x - lo(z, o(x + y)), hi(x - z, zero - y)),
        # both operands differ by the same
        rule(lo(x, y) - lo(y, x), zero),
        rule(lo(x + c0, y + c1) - lo(x, y + c2), c0, EQ(c1 - c2, c0)),
        rule(lo(x + c0, y) - lo(x, y + c1), c0, EQ(c0 + c1, zero)),
        rule(lo(x, y) - lo(x + c0, y + c1), zero - c0, EQ(c0, c1)),
        rule(lo(x + c0, y + c1) - lo(x, y), c0, EQ(c0, c1)),
        rule(lo(x, y) + hi(x, y), x + y),
        rule(lo(x, y) + hi(y, x), x + y),
        rule(lo(x, y) * hi(x, y), x * y),
        rule(lo(x, y) * hi(y, x), x * y),
    ]


def _remainders(div: Any, mod: Any) -> list[Rule]:
    """A multiple of a quotient and what it was made of give the remainder; true however the quotient is rounded."""
    return [
        rule(o(o(div(x, y) * y) + mod(x, y)), x),
        rule(o(div(x, c0) * c1 + mod(x, c0) * c2), x * c2, EQ(c0 * c2, c1)),
        rule(x - div(x, c0) * c0, mod(x, c0)),
        rule(div(x, c0) * c0 - x, zero - mod(x, c0)),
        rule(x - div(o(x + y), c0) * c0, mod(x + y, c0) - y),
        rule(div(o(x + y), c0) * c0 - x, y - mod(x + y, c0)),
        rule(x - div(x - y, c0) * c0, mod(x - y, c0) + y),
        rule(div(x - y, c0) * c0 - x, (zero - mod(x - y, c0)) - y),
        rule(x * c0 - div(x, c1) * c2, mod(x, c1) * c0, EQ(c0 * c1, c2)),
        rule(div(x, c1) * c2 - x * c0, mod(x, c1) * (zero - c0), EQ(c0 * c1, c2)),
        rule(x * c0 - div(o(x + y), c1) * c2, (mod(x + y, c1) - y) * c0, EQ(c0 * c1, c2)),
        rule(div(o(x + y), c1) * c2 - x * c0, (y - mod(x + y, c1)) * c0, EQ(c0 * c1, c2)),
        rule(x * c0 - div(x - y, c1) * c2, (mod(x - y, c1) + y) * c0, EQ(c0 * c1, c2)),
        rule(div(x - y, c1) * c2 - x * c0, ((zero - mod(x - y, c1)) - y) * c0, EQ(c0 * c1, c2)),
    ]


ADD: Final = [
    # literals go right and meet
    rule(c0 + x, x + c0),
    rule(Add(x, zero), x),
    rule((x + c0) + c1, x + (c0 + c1)),
    rule((c0 - x) + c1, (c0 + c1) - x),
    # what cancels
    rule(o(x + (y - x)), y),
    rule((x - y) + (z - x), z - y),
    rule((x - y) + (y - z), x - z),
    rule((x - y) + o(y + z), x + z),
    rule(o(y + z) + (x - y), z + x),
    # equal terms
    rule(x + x, x * 2),
    rule(o(x * c0 + x), x * (c0 + 1)),
    rule(x * c0 + x * c1, x * (c0 + c1)),
    rule(o(o(v * y) + v), v * (y + 1)),
    rule(o(v * y) + o(v * z), v * (y + z)),
    # two remainders, two quotients
    rule(o(FloorMod(x, const(2)) + FloorMod(x + c0, const(2))), one, EQ(c0 % 2, one)),
    rule(o(FloorDiv(x, const(2)) + FloorMod(x, const(2))), (x + 1) // 2),
    rule(o(FloorDiv(o((x % c0) + y), c0) + FloorDiv(x, c0)), (x + y) // c0),
    rule(Select(p, x, y) + Select(p, z, w), Select(p, x + z, y + w)),
    # a literal goes out of a sum
    rule((x + c0) + y, (x + y) + c0),
    rule(x + (y + c0), (x + y) + c0),
    rule(x + (c0 - y), (x - y) + c0),
    rule((c0 - y) + x, (x - y) + c0),
    # a term met again further in
    rule((y + x) + x, y + x * 2),
    rule((x + y) + x, x * 2 + y),
    rule((x * c0 + y) + x * c1, x * (c0 + c1) + y),
    rule((y + x * c0) + x * c1, y + x * (c0 + c1)),
    rule((x * c0 + y) + x, x * (c0 + 1) + y),
    rule((y + x * c0) + x, y + x * (c0 + 1)),
    rule((x + y) + x * c0, x * (c0 + 1) + y),
    rule((y + x) + x * c0, y + x * (c0 + 1)),
    rule((y - x) + x * c0, y + x * (c0 - 1), GT(c0, one)),
    rule((z - x * c0) + x * c1, z + x * (c1 - c0)),
]

SUB: Final = [
    rule(x - x, zero),
    rule(Sub(x, zero), x),
    # what cancels
    rule(o(x + y) - x, y),
    rule(x - o(x + y), zero - y),
    rule((x - y) - x, zero - y),
    rule(x - (x - y), y),
    rule(o(x + y) - o(x + z), y - z),
    rule((x - y) - (x - z), z - y),
    rule((x - y) - (z - y), x - z),
    rule(((x + y) - z) - x, y - z),
    rule(((y + x) - z) - x, y - z),
    # differences of quotients
    rule((x + c0) // 2 - (x + c1) // 2, (x % 2) * (c0 % 2 - c1 % 2) + (c0 // 2 - c1 // 2)),
    rule((x + c0) // 2 - x // 2, (x % 2) * (c0 % 2) + c0 // 2),
    rule(x // 2 - (x + c1) // 2, (x % 2) * (zero - c1 % 2) + (zero - c1 // 2)),
    rule((x + c0) // 2 - x % 2, x // 2 + c0 // 2, EQ(c0 % 2, one)),
    rule(o(x + y) // c0 - x // c0, ((x % c0) + y) // c0),
    rule((x + c1) // c0 - (x + c2) // c0, (((x + c2) % c0) + (c1 - c2)) // c0),
    rule(tdiv(x + c1, c0) - tdiv(x, c0), tdiv(tmod(x, c0) + c1, c0), GT(c0, zero), x >= 0, c1 >= 0),
    rule(
        tdiv(x + c1, c0) - tdiv(x + c2, c0),
        tdiv(tmod(x + c2, c0) + (c1 - c2), c0),
        GT(c0, zero),
        c1 >= c2,
        x + c2 >= 0,
    ),
    # literals go right and meet
    rule(x - c0, x + (zero - c0)),
    rule(c0 - (x + c1), (c0 - c1) - x),
    rule(c0 - (c1 - x), x + (c0 - c1)),
    rule(zero - x * c0, x * (zero - c0)),
    # equal terms
    rule(x * c0 - x, x * (c0 - 1)),
    rule(x - x * c0, x * (one - c0)),
    rule(x * c0 - x * c1, x * (c0 - c1)),
    rule(o(v * y) - v, v * (y + (zero - one))),
    rule(v - o(v * y), v * (one - y)),
    rule(o(v * y) - o(v * z), v * (y - z)),
    rule(o(x + y * c0) - y * c1, x + y * (c0 - c1)),
    rule(o(x + y) - y * c1, x + y * (one - c1)),
    rule(o(x + y * c0) - y, x + y * (c0 - 1)),
    # choices
    rule(Select(p, x, y) - Select(p, z, w), Select(p, x - z, y - w)),
    rule(Select(p, x, y) - x, Select(p, zero, y - x)),
    rule(Select(p, x, y) - y, Select(p, x - y, zero)),
    # a literal goes out of a difference
    rule((x + c0) - y, (x - y) + c0),
    rule(x - (y + c0), (x - y) + (zero - c0)),
    rule(x - (c0 - y), (x + y) + (zero - c0)),
    rule(x - (y - z), (x + z) - y),
    rule(x - y * c0, x + y * (zero - c0), LT(c0, zero)),
]

MUL: Final = [
    rule(c0 * x, x * c0),
    rule(Mul(x, one), x),
    rule(Mul(x, zero), zero),
    rule((x * c0) * c1, x * (c0 * c1)),
    rule((x + c0) * c1, x * c1 + (c0 * c1)),
    rule((x - y) * c0, (y - x) * (zero - c0), LT(c0, zero)),
    rule(x * (y * c0), (x * y) * c0),
    rule((x * c0) * y, (x * y) * c0),
]

SUMS: Final = [
    *_remainders(FloorDiv, FloorMod),
    *_remainders(tdiv, tmod),
    *_extrema(Min, Max),
    *_extrema(Max, Min),
    *ADD,
    *SUB,
    *MUL,
]
