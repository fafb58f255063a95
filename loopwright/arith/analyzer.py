"""Analyzer: what is known about variables, and what follows from it.

    analyzer = Analyzer()
    analyzer.bind(i, Range(0, 16))
    analyzer.simplify((i * 4 + 3) // 4)              # i
    analyzer.const_int_bound(i * 2 + 1)              # 1 .. 31
    with analyzer.constraint_scope(i < n):
        analyzer.can_prove(i + 1 <= n)               # True

Index arithmetic, that is int32 and int64 computed from variables, is exact (docs/semantics.md); data, narrower and
unsigned types wrap, floats keep every bit: see `simplify.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

from loopwright.arith.bounds import ConstIntBound, expr_range, form_range
from loopwright.arith.compare import decide
from loopwright.arith.constraints import assume_condition, is_stable, narrow
from loopwright.arith.data import is_data
from loopwright.arith.divide import without_remainders
from loopwright.arith.facts import Interval
from loopwright.arith.int_set import IntervalSet, IntSet, Set, int_set
from loopwright.arith.linear import LinearForm, TooWide, is_index
from loopwright.arith.modular import ModularSet, expr_modular
from loopwright.arith.quotient_sums import join_quotients
from loopwright.arith.simplify import Simplifier
from loopwright.ir import EQ, GE, LT, CompareExpr, Expr, IntImm, IterVar, Range, Var, as_expr, deep, uses_var
from loopwright.runtime.errors import LoopwrightError


class AlreadyBound(LoopwrightError, ValueError):
    """A variable was bound twice, to different values or ranges.

    An Analyzer takes a binding for a fact, so two different ones contradict each other. Use a new Analyzer, a scope
    (`with analyzer.bound(var, range)`), or `allow_override=True` when the old fact no longer holds.

    For example:

        from loopwright import te
        from loopwright.arith import Analyzer

        n = te.var("n")
        analyzer = Analyzer()
        analyzer.bind(n, 4)
        analyzer.bind(n, 5)
    """

    code = "LW0901"

    def __init__(self, var: Var, old: object, new: object) -> None:
        super().__init__(
            lambda: f"bind: {var.name} is bound to {old!r} already and cannot be bound to {new!r}",
            hint="use a scope, `with analyzer.bound(var, range)`, or allow_override=True",
            fields={"var": var, "old": old, "new": new},
        )


class ProofStrength(IntEnum):
    """How hard `can_prove` tries; the numbers are those users' scripts know."""

    DEFAULT = 0  # intervals, linear forms, the facts that relate variables
    SYMBOLIC_BOUND = 1  # and then exact integer sets, under a budget of operations


class Extension(IntFlag):
    """What scripts may ask the simplifier to try besides; ours uses all it knows always, so these change nothing."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


class RewriteStats(NamedTuple):
    """The work of a simplifier."""

    nodes_visited: int
    constraints_entered: int
    rewrites_attempted: int
    rewrites_performed: int


class Analyzer:
    """Facts about variables; simplification, bounds and proofs under them."""

    def __init__(self) -> None:
        self.engine = Simplifier()
        self._bindings: dict[Var, Range | Expr] = {}
        self._assumed: tuple[Expr, ...] = ()  # conditions, for the exact proof
        self.enabled_extensions = Extension.NoExtensions
        self._counted = self._counts()

    @staticmethod
    def over(domains: Mapping[Var, Range]) -> Analyzer:
        """An analyzer that knows the domain of each of these variables."""
        result = Analyzer()
        for var, domain in domains.items():
            result.bind(var, domain)
        return result

    # --- facts -------------------------------------------------------------------------------------------------

    @deep
    def bind(self, var: Var | IterVar, value: Range | Expr | int, allow_override: bool = False) -> None:
        """From now on `var` lies in a Range, or stands for an expression (and is replaced by it)."""
        var = var.var if isinstance(var, IterVar) else var
        given: Range | Expr = value if isinstance(value, Range) else as_expr(value)
        old = self._bindings.get(var)
        if old is not None and not allow_override:
            if self._same_binding(old, given):
                return
            raise AlreadyBound(var, old, given)
        if old is not None:
            self._drop(var)
        self._bindings[var] = given
        self._learn_binding(var, given, inline=True)

    @contextmanager
    def bound(self, var: Var | IterVar, value: Range | Expr | int, inline: bool = True) -> Iterator[None]:
        """`bind` for the length of a scope. Without `inline`, an expression only teaches its bounds and remainder."""
        saved = self._enter()
        try:
            var = var.var if isinstance(var, IterVar) else var
            given: Range | Expr = value if isinstance(value, Range) else as_expr(value)
            if var in self._bindings:
                self._drop(var)
            self._bindings = {**self._bindings, var: given}
            self._learn_binding(var, given, inline)
            yield
        finally:
            self._leave(saved)

    @contextmanager
    def constraint_scope(self, condition: Expr | bool) -> Iterator[None]:
        """Inside the `with`, `condition` holds."""
        saved = self._enter()
        try:
            self._assume(as_expr(condition))
            yield
        finally:
            self._leave(saved)

    def update(self, var: Var, bound: ConstIntBound, override: bool = False) -> None:
        """Learn that `var` lies within `bound`; with `override`, instead of what was known."""
        engine = self.engine
        if override:
            engine.facts.put(engine.facts.ranges, var, (bound.min_value, bound.max_value))
        else:
            narrow(engine, var, bound.min_value, bound.max_value)
        engine.forget()

    def _same_binding(self, old: Range | Expr, new: Range | Expr) -> bool:
        if isinstance(old, Range) and isinstance(new, Range):
            return self.can_prove_equal(old.min, new.min) and self.can_prove_equal(old.extent, new.extent)
        return isinstance(old, Expr) and isinstance(new, Expr) and self.can_prove_equal(old, new)

    def _enter(self) -> tuple[Any, ...]:
        return self.engine.enter(), self._bindings, self._assumed

    def _leave(self, saved: tuple[Any, ...]) -> None:
        engine, self._bindings, self._assumed = saved
        self.engine.leave(engine)

    def _drop(self, var: Var) -> None:
        """Forget all that is known about `var` itself."""
        self.engine.facts.drop(var)
        self._assumed = tuple([fact for fact in self._assumed if not uses_var(fact, lambda used: used is var)])

    @deep
    def _assume(self, condition: Expr) -> None:
        self.engine.begin()
        simple = self.engine.simplify(condition)
        if is_stable(simple):
            self._assumed = (*self._assumed, simple)
        assume_condition(self.engine, simple)

    @deep
    def _learn_binding(self, var: Var, value: Range | Expr, inline: bool) -> None:
        self.engine.begin()
        engine = self.engine
        if isinstance(value, Range):
            self._learn_range(var, value)
        else:
            simple = engine.simplify(value)
            if inline and is_stable(simple) and not uses_var(simple, lambda used: used is var):
                engine.facts.put(engine.facts.values, var, simple)
            elif is_index(var.dtype) and is_index(simple.dtype):
                if is_data(engine, simple):
                    engine.data_vars.add(var)
                engine.facts.narrow(var, *expr_range(engine, simple))
                remainder = expr_modular(engine, simple)
                if remainder[0] != 1:
                    engine.facts.put(engine.facts.modular, var, remainder)
        engine.forget()

    def _learn_range(self, var: Var, value: Range) -> None:
        engine, facts = self.engine, self.engine.facts
        low = engine.form(value.min)
        extent = engine.form(value.extent)
        is_fixed = is_stable(value.min) and is_stable(value.extent)
        if is_fixed and not extent.terms and extent.const == 1 and var.dtype is value.min.dtype:
            facts.put(facts.values, var, engine.simplify(value.min))
            return
        end = low.plus(extent)
        narrow(engine, var, form_range(engine, low)[0], form_range(engine, end)[1] - 1)
        if not is_fixed:  # a bound that was read from memory: what lies there now may be something else
            return
        me = LinearForm({var: 1}, 0)
        if low.terms:
            facts.linear.append((low.plus(me, -1).terms, -low.const))
        if end.terms:
            facts.linear.append((me.plus(end, -1).terms, end.const - 1))

    # --- questions ---------------------------------------------------------------------------------------------

    def simplify(self, expr: Expr | int, steps: int = 2) -> Expr:
        """An expression of the same value under the facts; `expr` itself when it is simple already.

        One walk reaches the normal form, so `steps`, which scripts pass, changes nothing.
        """
        e = expr if isinstance(expr, Expr) else as_expr(expr)
        result = self.engine.known(e)
        return result if result is not None else self._simplify(e)

    @deep
    def _simplify(self, e: Expr) -> Expr:
        engine = self.engine
        engine.begin()
        return engine.simplify(e)

    def rewrite_simplify(self, expr: Expr | int) -> Expr:
        """An expression of the same value in the normal form that scripts expect: see `rewrite/`.

        Our own passes use `simplify`, which is faster and keeps the order in which the user wrote terms.
        """
        return self._rewrite_simplify(as_expr(expr))

    @deep
    def _rewrite_simplify(self, e: Expr) -> Expr:
        from loopwright.arith.rewrite import rewrite  # some 300 rows that only scripts ask for

        self.engine.begin()
        return rewrite(self.engine, e)

    @deep
    def join_quotients(self, expr: Expr) -> Expr:
        """An index with quotients and remainders of literals as a sum of quotients, in which equal ones cancel."""
        self.engine.begin()
        if not is_index(expr.dtype) or is_data(self.engine, expr):
            return expr
        try:
            form = self.engine.form(expr)
            return self.engine.write(join_quotients(self.engine, form, expr.dtype), expr.dtype, expr)
        except TooWide:
            return expr

    def canonical_simplify(self, expr: Expr | int) -> Expr:
        """As `rewrite_simplify`, with sums multiplied out and their terms in canonical order."""
        return self._canonical_simplify(as_expr(expr))

    @deep
    def _canonical_simplify(self, e: Expr) -> Expr:
        from loopwright.arith.rewrite import canonical

        self.engine.begin()
        return canonical(self.engine, e)

    @property
    def rewrite_simplify_stats(self) -> RewriteStats:
        """How much work simplification was since the analyzer was made, or since `reset_rewrite_simplify_stats`."""
        now = self._counts()
        return RewriteStats(*[count - before for count, before in zip(now, self._counted, strict=True)])

    def reset_rewrite_simplify_stats(self) -> None:
        self._counted = self._counts()

    def _counts(self) -> tuple[int, int, int, int]:
        engine = self.engine
        return engine.visited, engine.scopes, engine.attempted, engine.performed

    @deep
    def const_int_bound(self, expr: Expr | int) -> ConstIntBound:
        """The least and greatest value; int64 limits stand for infinity, also where only the type bounds an index."""
        self.engine.begin()
        e = as_expr(expr)
        return ConstIntBound.of(expr_range(self.engine, e), e.dtype)

    @deep
    def interval(self, expr: Expr | int) -> Interval:
        """(least, greatest) value as exact integers: the limits of the type where nothing more is known."""
        self.engine.begin()
        return expr_range(self.engine, as_expr(expr))

    @deep
    def modular_set(self, expr: Expr | int) -> ModularSet:
        """(coeff, base): every value is base plus a multiple of coeff; a constant has coeff 0."""
        self.engine.begin()
        return ModularSet(*expr_modular(self.engine, as_expr(expr)))

    def int_set(self, expr: Expr | int, dom_map: Mapping[Var, Set] | None = None) -> IntervalSet:
        """The values of `expr` while each variable stays in its set (an IntervalSet, a Range or a pair of ends)."""
        return int_set(expr, dom_map or {}, self)

    def const_int_bound_is_bound(self, var: Var) -> bool:
        """Whether anything was learnt about the interval of `var`."""
        return var in self.engine.facts.ranges or var in self.engine.facts.values

    def can_prove(self, condition: Expr | bool, strength: int | ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Whether `condition` is proved to hold; False says nothing about its truth. Never raises."""
        e = as_expr(condition)
        simple = self.simplify(e)
        if isinstance(simple, IntImm):
            return bool(simple.value)
        if self._prove_by_quotients(simple):
            return True
        return strength >= ProofStrength.SYMBOLIC_BOUND and self._prove_exactly(simple)

    @deep
    def _prove_by_quotients(self, condition: Expr) -> bool:
        """Equality often shows once every remainder is written as a division."""
        self.engine.begin()
        if not isinstance(condition, CompareExpr) or not is_index(condition.a.dtype):
            return False
        engine = self.engine
        if not engine.are_exact(condition.a, condition.b):
            return False
        difference = engine.form(condition.a).plus(engine.form(condition.b), -1)
        opened = without_remainders(engine, difference, condition.a.dtype)
        return decide(engine, type(condition), opened) is True

    def _prove_exactly(self, condition: Expr) -> bool:
        from loopwright.arith.isl import implies  # loads islpy

        fixed = {
            var: value
            for var, value in self._bindings.items()
            if all([is_stable(part) for part in ((value.min, value.extent) if isinstance(value, Range) else (value,))])
        }
        return implies(fixed, self._assumed, condition)

    def can_prove_equal(self, a: Expr | int, b: Expr | int) -> bool:
        """Whether two expressions are proved to have the same value."""
        x, y = as_expr(a), as_expr(b)
        if x is y:
            return True
        if is_index(x.dtype) and is_index(y.dtype):
            return self._equal_forms(x, y)
        if x.dtype is not y.dtype:
            return False
        return self._equal_structure(x, y)

    @deep
    def _equal_forms(self, x: Expr, y: Expr) -> bool:
        self.engine.begin()
        engine = self.engine
        difference = engine.form(x).plus(engine.form(y), -1)
        if not (engine.is_exact(x) and engine.is_exact(y)):
            return x.dtype is y.dtype and not difference.terms and difference.const == 0
        return decide(engine, EQ, without_remainders(engine, difference, x.dtype)) is True

    @deep
    def _equal_structure(self, x: Expr, y: Expr) -> bool:
        self.engine.begin()
        before = self.engine.effects
        equal = self.engine.same(self.engine.simplify(x), self.engine.simplify(y))
        return equal and self.engine.effects == before

    def can_prove_greater_equal(self, expr: Expr | int, lower: int) -> bool:
        """Whether the expression is proved to be at least `lower`."""
        e = as_expr(expr)
        return self.can_prove(GE(e, as_expr(lower).astype(e.dtype)))

    def can_prove_less(self, expr: Expr | int, upper: int) -> bool:
        """Whether the expression is proved to be below `upper`."""
        e = as_expr(expr)
        return self.can_prove(LT(e, as_expr(upper).astype(e.dtype)))


# Set here, as an analyzer has sets for its own results.
IntSet.values_of = lambda vec: int_set(vec, {}, Analyzer())


def const_bounds(expr: Expr | int, domains: Mapping[Var, Range | tuple[Any, Any]] | None = None) -> Interval:
    """(least, greatest) value of `expr` while each variable stays in its Range, or in (lowest, highest) inclusive."""
    analyzer = Analyzer()
    for var, domain in (domains or {}).items():
        if not isinstance(domain, Range):
            low, high = as_expr(domain[0]), as_expr(domain[1])
            domain = Range.from_min_extent(low, high - low + 1)
        analyzer.bind(var, domain)
    return analyzer.interval(expr)
