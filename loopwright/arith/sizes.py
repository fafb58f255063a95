"""Sizes with their arithmetic done, and what index arithmetic is once it was stored.

simplified_size(n * 4 // 4)           n
simplified_size(c * c)                T.int64(4294967296), for the literal c = 65536 of type int32
as_stored(i * 4, facts)               i * 4 where that fits, else T.Cast("int32", T.Cast("int64", i * 4))
"""

from __future__ import annotations

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.data import holds_data
from loopwright.arith.linear import is_index
from loopwright.ir import Cast, Expr, IntImm, as_expr, deep, product
from loopwright.runtime.dtype import INT32, INT64


def simplified_size(value: object) -> Expr:
    """`value` simplified; a number is a literal, of 64 bits where its own type has none for it."""
    size = as_expr(value)
    if isinstance(size, IntImm):
        return size
    analyzer = Analyzer()
    simple = analyzer.simplify(size)
    if isinstance(simple, IntImm) or not is_index(simple.dtype):
        return simple
    number = _number(analyzer, simple)
    return simple if number is None else product([number], simple.dtype)


@deep
def _number(analyzer: Analyzer, size: Expr) -> int | None:
    form = analyzer.engine.form(size)
    return None if form.terms else form.const


def as_stored(value: Expr, facts: Analyzer) -> Expr:
    """What a load gives after `value` was stored: of an index that may leave int32, its low bits.

    Put in place of the load, the index itself would be exact. (Of int64 no program can see more than 64 bits.)
    """
    if value.dtype is not INT32 or holds_data(value):
        return value
    low, high = facts.interval(value)
    return value if INT32.lowest <= low and high <= INT32.highest else Cast(INT32, Cast(INT64, value))
