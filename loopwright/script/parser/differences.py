"""The length of `begin:end` as an expression: what was added to `begin` is taken back out exactly.

A printed range is `min:min + extent`. Reading it must give `extent` back as it was, not an equal expression, so the
shape of the sum is tried before any algebra.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import Add, Expr, IntImm, structural_equal
from loopwright.ir.operators import match_types


def extent_between(begin: object, end: object) -> tuple[Expr, Expr]:
    """`(begin, end - begin)` of one type, the difference simplified."""
    low, high = match_types(begin, end)
    if isinstance(low, IntImm):
        if low.value == 0 or isinstance(high, IntImm):
            return low, high if low.value == 0 else high - low
    if isinstance(high, Add) and structural_equal(high.a, low):
        return low, high.b
    return low, Analyzer().simplify(high - low)
