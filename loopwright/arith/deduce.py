"""What conditions say about a variable: `deduce_bound`, `detect_clip_bound`.

    deduce_bound(a, b * a + c >= 0, {b: positive}, {c: [0, 10]})       a >= ceil(0 / b): for every c of its interval
    detect_clip_bound(all(i < n, i >= 2), [i])                         [2, n - 1]

A condition is a linear form that is not negative; the variable's own term is brought to one side, and opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.bounds import at_least, at_most
from loopwright.arith.int_set import NEG_INF, POS_INF, IntervalSet, IntSet, Set, as_interval, int_set
from loopwright.arith.linear import LinearForm, TooWide, is_index
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    And,
    Call,
    Expr,
    FloorDiv,
    IntImm,
    Max,
    Min,
    Not,
    Range,
    Var,
    deep,
    uses_var,
)
from loopwright.ir.operators import floordiv, maximum, minimum
from loopwright.runtime.dtype import DataType


@deep
def deduce_bound(
    var: Var, cond: Expr, hint_map: Mapping[Var, Set] | None = None, relax_map: Mapping[Var, Set] | None = None
) -> IntervalSet:
    """The values of `var` for which `cond` holds, whatever the variables of `relax_map` are within their sets.

    `hint_map` says what is known of other variables (their signs, above all); they stay symbols in the result. When
    nothing can be deduced the set is empty: no value is proved to satisfy the condition.
    """
    analyzer = Analyzer()
    relaxed = {other: as_interval(domain) for other, domain in (relax_map or {}).items()}
    for other, hint in {**relaxed, **{key: as_interval(given) for key, given in (hint_map or {}).items()}}.items():
        if other is not var and isinstance(hint.min_value, IntImm) and isinstance(hint.max_value, IntImm):
            analyzer.bind(other, Range(hint.min_value, hint.max_value + 1), allow_override=True)
    return _Deduce(analyzer, var, relaxed).of(analyzer.simplify(cond))


class _Deduce:
    def __init__(self, analyzer: Analyzer, var: Var, relaxed: Mapping[Var, IntervalSet]) -> None:
        self.analyzer, self.engine, self.var, self.relaxed = analyzer, analyzer.engine, var, relaxed

    def of(self, cond: Expr) -> IntervalSet:
        if isinstance(cond, IntImm):
            return IntSet.everything() if cond.value else IntSet.nothing()
        if isinstance(cond, Call) and cond.op.name == "tir.likely":
            return self.of(cond.args[0])
        if isinstance(cond, And):
            a, b = self.of(cond.a), self.of(cond.b)
            return self._simple(a.intersect(b))
        if isinstance(cond, Not):
            return IntSet.nothing()
        if not isinstance(cond, (LT, LE, GT, GE, EQ)) or not is_index(cond.a.dtype):
            return IntSet.nothing()
        engine, dtype = self.engine, cond.a.dtype
        difference = engine.form(cond.a).plus(engine.form(cond.b), -1)
        one = LinearForm({}, 1)
        try:
            if isinstance(cond, (GE, GT)):
                return self._at_least_zero(difference.plus(one, -1) if isinstance(cond, GT) else difference, dtype)
            opposite = difference.times(-1)
            if isinstance(cond, (LE, LT)):
                return self._at_least_zero(opposite.plus(one, -1) if isinstance(cond, LT) else opposite, dtype)
            low, high = self._at_least_zero(difference, dtype), self._at_least_zero(opposite, dtype)
            return self._simple(low.intersect(high))
        except TooWide:
            return IntSet.nothing()

    def _at_least_zero(self, form: LinearForm, dtype: DataType) -> IntervalSet:
        """Where `form >= 0`: k * (what holds the variable) >= -rest, opened from outside in."""
        held = [(atom, k) for atom, k in form.terms.items() if self._holds(atom)]
        rest = LinearForm({atom: k for atom, k in form.terms.items() if not self._holds(atom)}, form.const)
        if not held:
            return IntSet.nothing()
        cofactor = self._coefficient(held)
        if cofactor is None:
            return self._open(held, rest, dtype)
        bound = self._greatest(rest.times(-1), dtype)
        if bound is None:
            return IntSet.nothing()
        factor = self.engine.write(cofactor, dtype)
        # factor * var >= bound
        if at_least(self.engine, cofactor, 1):
            return self._from(_ceildiv(bound, factor))
        if at_most(self.engine, cofactor, -1):
            return self._up_to(floordiv(-bound, -factor))
        return IntSet.nothing()

    def _from(self, low: Expr) -> IntervalSet:
        """All from `low` on, whatever the relaxed variables in it are."""
        if uses_var(low, self.relaxed.__contains__):
            low = int_set(low, self.relaxed, Analyzer()).max_value
        return IntSet.nothing() if low is POS_INF else IntervalSet(self.analyzer.simplify(low), POS_INF)

    def _up_to(self, high: Expr) -> IntervalSet:
        """All up to `high`, whatever the relaxed variables in it are."""
        if uses_var(high, self.relaxed.__contains__):
            high = int_set(high, self.relaxed, Analyzer()).min_value
        return IntSet.nothing() if high is NEG_INF else IntervalSet(NEG_INF, self.analyzer.simplify(high))

    def _coefficient(self, held: Sequence[tuple[Expr, int]]) -> LinearForm | None:
        """The sum of what the variable is multiplied with; None when it stands inside something else."""
        total = LinearForm({}, 0)
        for atom, k in held:
            cofactor = self.engine.without_factor(atom, self.var) if atom is not self.var else LinearForm({}, 1)
            if cofactor is None or any(self._holds(other) for other in cofactor.terms):
                return None
            total = total.plus(cofactor, k)
        return total

    def _open(self, held: Sequence[tuple[Expr, int]], rest: LinearForm, dtype: DataType) -> IntervalSet:
        """k * (x // d) >= -rest: a division is undone by multiplying the bound."""
        if len(held) != 1 or not isinstance(held[0][0], FloorDiv):
            return IntSet.nothing()
        atom, k = held[0]
        parts = self.engine.parts.get(atom)
        if parts is None:
            return IntSet.nothing()
        x, d = parts
        if not at_least(self.engine, d, 1):
            return IntSet.nothing()
        bound = self._greatest(rest.times(-1), dtype)
        if bound is None:
            return IntSet.nothing()
        divisor = self.engine.write(d, dtype)
        if k > 0:  # x // d >= m is x >= m * d
            least = self.engine.form(self.analyzer.simplify(_ceildiv(bound, k) * divisor))
            return self._at_least_zero(x.plus(least, -1), dtype)
        # x // d <= m is x <= m * d + d - 1
        most = self.engine.form(self.analyzer.simplify(floordiv(-bound, -k) * divisor + divisor - 1))
        return self._at_least_zero(most.plus(x, -1), dtype)

    def _greatest(self, form: LinearForm, dtype: DataType) -> Expr | None:
        """The greatest value over the relaxed variables; None when there is none."""
        written = self.engine.write(form, dtype)
        if not uses_var(written, self.relaxed.__contains__):
            return written
        result = int_set(written, self.relaxed, Analyzer()).max_value
        return None if result is POS_INF or result is NEG_INF else result

    def _holds(self, atom: Expr) -> bool:
        return atom is self.var or uses_var(atom, lambda used: used is self.var)

    def _simple(self, result: IntervalSet) -> IntervalSet:
        ends = [end if end is POS_INF or end is NEG_INF else self.analyzer.simplify(end) for end in result]
        return IntervalSet(*ends)


def _ceildiv(a: Expr, b: object) -> Expr:
    return -floordiv(-a, b)


def _both(cond: Expr) -> list[Expr] | None:
    """A minimum above something is two conditions, as a maximum below is; None for any other comparison."""
    if not isinstance(cond, (LT, LE, GT, GE)):
        return None
    cls, below, above = type(cond), *((cond.a, cond.b) if isinstance(cond, (LT, LE)) else (cond.b, cond.a))
    if isinstance(above, Min):
        pairs = [(below, above.a), (below, above.b)]
    elif isinstance(below, Max):
        pairs = [(below.a, above), (below.b, above)]
    else:
        return None
    return [cls(low, high) if isinstance(cond, (LT, LE)) else cls(high, low) for low, high in pairs]


@deep
def detect_clip_bound(expr: Expr, vars: Sequence[Var]) -> list[Expr | None]:
    """The least and greatest value of each variable that a conjunction allows: [min, max] for each, None for no bound.

    Empty when the expression is no conjunction of comparisons each of which bounds one variable by what uses none.
    """
    analyzer = Analyzer()
    bounds: dict[Var, list[Expr | None]] = {var: [None, None] for var in vars}
    pending = [analyzer.simplify(expr)]
    while pending:
        cond = pending.pop()
        if isinstance(cond, And):
            pending += [cond.b, cond.a]
            continue
        if isinstance(cond, Call) and cond.op.name == "tir.likely":
            pending.append(cond.args[0])
            continue
        parts = _both(cond)
        if parts is not None:
            pending += parts
            continue
        used = [var for var in vars if uses_var(cond, lambda other, var=var: other is var)]  # type: ignore[misc]
        if not used and isinstance(cond, IntImm) and cond.value:
            continue
        if len(used) != 1:
            return []
        low, high = deduce_bound(used[0], cond)
        result = bounds[used[0]]
        if IntervalSet(low, high).is_nothing():
            return []
        if low is not NEG_INF:
            result[0] = low if result[0] is None else maximum(result[0], low)
        if high is not POS_INF:
            result[1] = high if result[1] is None else minimum(result[1], high)
    return [None if end is None else analyzer.simplify(end) for var in vars for end in bounds[var]]
