"""`canonical_simplify`: rewriting, and sums as sums of terms, the largest factors first.

    2 + (3 * x + z + y + 1) * 4 + x     →   x * 13 + z * 4 + y * 4 + 6
    y + x * 3 - 5 * x + 1 + y           →   y * 2 + 1 - x * 2
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import gcd
from typing import Any, Final

from loopwright.arith.data import is_data
from loopwright.arith.linear import LinearForm, TooWide, imm, is_index
from loopwright.arith.rewrite.rewriter import Rewriter, has_effect
from loopwright.arith.simplify import Simplifier
from loopwright.ir import (
    Add,
    BinaryExpr,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Sub,
    any_node,
)
from loopwright.runtime.dtype import DataType

_ARITHMETIC: Final = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod)
_DIVISIONS: Final = (FloorDiv, FloorMod, Div, Mod)
_OPENED: Final = (FloorDiv, FloorMod, Div, Mod, Min, Max)


def canonical(engine: Simplifier, e: Expr) -> Expr:
    """`e` under the facts of `engine`, with every sum in canonical order."""
    if any_node(e, has_effect):
        return engine.simplify(e)
    return _Canonical(engine).visit(e)


class _Canonical(Rewriter):
    def _binary(self, e: BinaryExpr) -> Expr:
        result = super()._binary(e)
        if isinstance(result, _DIVISIONS) and not isinstance(result.b, IntImm) and is_index(result.dtype):
            cancelled = self._cancelled(result)
            if cancelled is not None:
                return self.visit(cancelled)
        if isinstance(result, _ARITHMETIC) and is_index(result.dtype) and not is_data(self.engine, result):
            try:
                return self._write(self._form(result), result.dtype)
            except TooWide:
                return result
        return result

    def _cancelled(self, e: Any) -> Expr | None:
        """A quotient or remainder of two products without their common factors; a divisor is never zero."""
        if is_data(self.engine, e.a) or is_data(self.engine, e.b):
            return None
        n, d = self._factors(e.a), self._factors(e.b)
        if n is None or d is None:
            return None
        common = []
        rest, left = list(n[1]), []
        for factor in d[1]:
            if factor in rest:
                rest.remove(factor)
                common.append(factor)
            else:
                left.append(factor)
        shared = gcd(n[0], d[0])
        if not common and shared == 1:
            return None
        dtype = e.dtype
        part = type(e)(_product(rest, n[0] // shared, dtype), _product(left, d[0] // shared, dtype))
        return part if isinstance(e, (FloorDiv, Div)) else Mul(part, _product(common, shared, dtype))

    def _factors(self, e: Expr) -> tuple[int, tuple[Expr, ...]] | None:
        """(k, factors) with k > 0, where `e` is one such product."""
        form = self.engine.form(e)
        if len(form.terms) != 1 or form.const:
            return None
        ((atom, k),) = form.terms.items()
        return (k, self.engine.factors.get(atom, (atom,))) if k > 0 else None

    def _form(self, e: Any) -> LinearForm:
        if isinstance(e, (Div, Mod)) and isinstance(e.b, IntImm):
            form, d = self.engine.form(e.a), e.b.value
            if d and not form.const % d and not any([k % d for k in form.terms.values()]):  # nothing is rounded
                quotient = LinearForm({atom: k // d for atom, k in form.terms.items()}, form.const // d)
                return quotient if isinstance(e, Div) else LinearForm({}, 0)
        return self.engine.form(e)

    def _write(self, form: LinearForm, dtype: DataType) -> Expr:
        terms = [(self._atom(atom), k, _lower_factor(atom)) for atom, k in form.terms.items()]
        terms.sort(key=lambda term: (-term[1], -term[2]))
        total: Expr | None = None
        for atom, k, _ in terms:
            if k > 0:
                total = _plus(total, _times(atom, k))
        if form.const > 0 or (total is None and not terms):
            total = _plus(total, imm(form.const, dtype))
        for atom, k, _ in terms:
            if k < 0:
                total = _times(atom, k) if total is None else Sub(total, _times(atom, -k))
        assert total is not None
        return Sub(total, imm(-form.const, dtype)) if form.const < 0 and terms else total

    def _atom(self, atom: Any) -> Expr:
        """An atom with operands in canonical order."""
        if not isinstance(atom, _OPENED):
            return atom
        a, b = self.visit(atom.a), self.visit(atom.b)
        return atom if a is atom.a and b is atom.b else type(atom)(a, b)


def _lower_factor(atom: Any) -> int:
    """How many of the lowest digits a quotient drops."""
    if isinstance(atom, (FloorMod, Mod)):
        return _lower_factor(atom.a)
    return atom.b.value if isinstance(atom, (FloorDiv, Div)) and isinstance(atom.b, IntImm) else 1


def _product(factors: Sequence[Expr], k: int, dtype: DataType) -> Expr:
    if not factors:
        return imm(k, dtype)
    return _times(reduce(Mul, factors), k)


def _plus(total: Expr | None, term: Expr) -> Expr:
    return term if total is None else Add(total, term)


def _times(atom: Expr, k: int) -> Expr:
    return atom if k == 1 else Mul(atom, imm(k, atom.dtype))
