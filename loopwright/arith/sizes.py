"""Sizes with their arithmetic done.

simplified_size(n * 4 // 4)           n
simplified_size(c * c)                T.int64(4294967296), for the literal c = 65536 of type int32
"""

from __future__ import annotations

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.linear import is_index
from loopwright.ir import Expr, IntImm, as_expr, deep, product


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
