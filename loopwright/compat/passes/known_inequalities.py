"""known_inequalities: what follows from a set of integer comparisons, one by one or chained.

    known: i < j + 5, j < k + 7        follows: i < k + 11

A comparison is a linear form that is at most 0. One follows from others when their sum exceeds it by a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeGuard

from loopwright.arith import Analyzer
from loopwright.arith.linear import LinearForm, is_index
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Call,
    CompareExpr,
    Expr,
    Not,
    Or,
    Rewriter,
    Var,
    const,
    logical_not,
)
from loopwright.transform.parts.purity import has_data

MOST_STEPS: Final = 4  # comparisons that are chained
MOST_KNOWN: Final = 24  # those that count; a search over more takes too long


class KnownInequalities:
    """The comparisons that hold where a rewriter stands."""

    def __init__(self, facts: Analyzer, is_transitive: bool) -> None:
        self.facts, self.is_transitive = facts, is_transitive
        self.known: list[LinearForm] = []  # each is at most 0
        self.different: list[LinearForm] = []  # each is not 0
        self.truths: dict[Var, Expr] = {}  # conditions that have names

    @contextmanager
    def scope(self, condition: Expr) -> Iterator[None]:
        """While it runs, `condition` holds."""
        before, truths = (len(self.known), len(self.different)), self.truths
        for part in _parts(condition):
            self._learn(part)
        yield
        self.truths = truths
        del self.known[before[0] :], self.different[before[1] :]

    def _learn(self, part: Expr) -> None:
        named = part.a if isinstance(part, Not) else part
        if isinstance(named, Var):
            self.truths = {**self.truths, named: const(named is part)}
        if isinstance(part, Not) and _is_comparison(part.a):
            part = _negated(part.a)
        if not _is_comparison(part):
            return
        forms = self._at_most_zero(part)
        if forms is None:
            self.different.append(self._form(part.a).plus(self._form(part.b), -1))
        elif len(self.known) < MOST_KNOWN:
            self.known += forms

    def _form(self, expr: Expr) -> LinearForm:
        return self.facts.engine.form(expr)

    def _at_most_zero(self, e: CompareExpr) -> list[LinearForm] | None:
        """The forms that are all at most 0 exactly when `e` holds; None for `!=`."""
        d = self._form(e.a).plus(self._form(e.b), -1)
        one = LinearForm({}, 1)
        if isinstance(e, LT):
            return [d.plus(one)]
        if isinstance(e, LE):
            return [d]
        if isinstance(e, GT):
            return [d.times(-1).plus(one)]
        if isinstance(e, GE):
            return [d.times(-1)]
        return [d, d.times(-1)] if isinstance(e, EQ) else None

    def follows(self, e: CompareExpr) -> bool:
        """Whether it must hold."""
        forms = self._at_most_zero(e)
        if forms is not None:
            return all([self._is_at_most_zero(form) for form in forms])
        d = self._form(e.a).plus(self._form(e.b), -1)
        return self._is_not_zero(d)

    def _is_not_zero(self, d: LinearForm) -> bool:
        one = LinearForm({}, 1)
        if any([_same(d, known) for known in self.different]):
            return True
        if self._is_at_most_zero(d.plus(one)) or self._is_at_most_zero(d.times(-1).plus(one)):
            return True
        if not self.is_transitive:
            return False
        # Moved by what is known to be equal: i == j and j != k.
        return any([self._are_equal(d, known) for known in self.different])

    def _are_equal(self, a: LinearForm, b: LinearForm) -> bool:
        for other in (b, b.times(-1)):
            d = a.plus(other, -1)
            if self._is_at_most_zero(d) and self._is_at_most_zero(d.times(-1)):
                return True
        return False

    def _is_at_most_zero(self, wanted: LinearForm) -> bool:
        return self._reaches(wanted, MOST_STEPS if self.is_transitive else 1)

    def _reaches(self, rest: LinearForm, steps: int) -> bool:
        if not rest.terms:
            return rest.const <= 0
        if steps == 0:
            return False
        for known in self.known:
            # One that shares no term brings it no nearer.
            if any([rest.terms.get(atom, 0) * k > 0 for atom, k in known.terms.items()]):
                if self._reaches(rest.plus(known, -1), steps - 1):
                    return True
        return False

    def decided(self, e: Expr) -> Expr:
        """`e` as True or False where that follows, as the stronger comparison that it amounts to, or itself."""
        if not _is_comparison(e) or not (self.known or self.different):
            return e
        if self.follows(e):
            return const(True)
        if self.follows(_negated(e)):
            return const(False)
        if isinstance(e, (LE, GE)):
            if self.follows(NE(e.a, e.b)):
                return (LT if isinstance(e, LE) else GT)(e.a, e.b)
            reverse = GE(e.a, e.b) if isinstance(e, LE) else LE(e.a, e.b)
            return EQ(e.a, e.b) if self.follows(reverse) else e
        if isinstance(e, NE):
            if self.follows(LE(e.a, e.b)):
                return LT(e.a, e.b)
            return LT(e.b, e.a) if self.follows(GE(e.a, e.b)) else e
        return e


def conditions_of(condition: Expr) -> Expr:
    """The condition without hints of how likely it is."""
    result: Expr = _WithoutHints().visit(condition)
    return result


class _WithoutHints(Rewriter):
    def visit_Call(self, call: Call) -> Expr:
        hinted: Expr = self.visit(call.args[0]) if call.op.name == "tir.likely" else self.rebuild(call)
        return hinted


def _parts(condition: Expr) -> list[Expr]:
    """The conditions that all hold when it does."""
    if isinstance(condition, Not) and isinstance(condition.a, Or):
        return [*_parts(logical_not(condition.a.a)), *_parts(logical_not(condition.a.b))]
    if isinstance(condition, And):
        return [*_parts(condition.a), *_parts(condition.b)]
    return [condition]


def _same(a: LinearForm, b: LinearForm) -> bool:
    return any([not d.terms and d.const == 0 for d in (a.plus(b, -1), a.plus(b))])


def _is_comparison(e: Expr) -> TypeGuard[CompareExpr]:
    return isinstance(e, CompareExpr) and is_index(e.a.dtype) and e.dtype.lanes == 1 and not has_data(e)


_NEGATED: Final = {LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ}


def _negated(e: Expr) -> CompareExpr:
    assert isinstance(e, CompareExpr)
    return _NEGATED[type(e)](e.a, e.b)
