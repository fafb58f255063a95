"""Integer sets that users hold: intervals with symbolic, perhaps infinite, ends, and what expressions make of them.

    int_set(x + y, {x: IntervalSet(0, 10), y: IntervalSet(1, 11)})        [1, 21]
    int_set(x % 10, {x: IntervalSet(13, 15)})                             [3, 5]

An interval contains every value the expression can take; both ends are reached where the expression is affine in
variables that run independently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from loopwright.arith.affine_bounds import affine_bounds
from loopwright.arith.simplify import Simplifier
from loopwright.ir import (
    Add,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Range,
    Select,
    Sub,
    Var,
    any_node,
    as_expr,
    const,
    deep,
    uses_var,
)
from loopwright.ir.operators import floordiv, maximum, minimum, truncdiv
from loopwright.runtime.errors import LoopwrightError

POS_INF: Final = Var("pos_inf", "handle")
NEG_INF: Final = Var("neg_inf", "handle")


class NotASet(LoopwrightError, TypeError):
    """Something stands for a set of integers that is none: give an IntervalSet, a Range, or a pair of ends.

    For example:

        from loopwright import arith, tir

        x = tir.Var("x")
        arith.Analyzer().int_set(x + 1, {x: "0..10"})
    """

    code = "LW0909"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"{type(given).__name__} {given!r} is no set of integers",
            hint="give IntervalSet(least, greatest), a Range, or the pair (least, greatest)",
        )


def pos_inf() -> Expr:
    """The end of an interval that has no greatest value."""
    return POS_INF


def neg_inf() -> Expr:
    """The end of an interval that has no least value."""
    return NEG_INF


class IntSet:
    """A set of integers; all we have are intervals."""

    __slots__ = ()

    values_of: ClassVar[Callable[[Expr], IntervalSet]]  # `int_set` without assumptions; `analyzer.py` sets it

    @staticmethod
    def single_point(point: object) -> IntervalSet:
        """The set of one value."""
        value = as_expr(point)
        return IntervalSet(value, value)

    @staticmethod
    def vector(vec: Expr) -> IntervalSet:
        """The values of the lanes of a Ramp, or of any expression."""
        return IntSet.values_of(vec)

    @staticmethod
    def everything() -> IntervalSet:
        return IntervalSet(NEG_INF, POS_INF)

    @staticmethod
    def nothing() -> IntervalSet:
        return IntervalSet(POS_INF, NEG_INF)


class _Ends(NamedTuple):
    min_value: Expr
    max_value: Expr


class IntervalSet(_Ends, IntSet):
    """All integers from `min_value` to `max_value`, both included; an end may be `neg_inf()` or `pos_inf()`."""

    __slots__ = ()

    def __new__(cls, min_value: object, max_value: object) -> IntervalSet:
        return super().__new__(cls, as_expr(min_value), as_expr(max_value))

    def is_nothing(self) -> bool:
        """Whether no integer is in the set, as far as literals tell."""
        low, high = self
        if low is POS_INF or high is NEG_INF:
            return True
        return isinstance(low, IntImm) and isinstance(high, IntImm) and low.value > high.value

    def is_everything(self) -> bool:
        return self.min_value is NEG_INF and self.max_value is POS_INF

    def is_single_point(self) -> bool:
        low, high = self
        return low is high or (isinstance(low, IntImm) and isinstance(high, IntImm) and low.value == high.value)

    def union(self, other: IntervalSet) -> IntervalSet:
        """The least interval that holds both."""
        if self.is_nothing() or other.is_nothing():
            return other if self.is_nothing() else self
        return IntervalSet(_least(self.min_value, other.min_value), _greatest(self.max_value, other.max_value))

    def intersect(self, other: IntervalSet) -> IntervalSet:
        """What both hold."""
        low, high = _greatest(self.min_value, other.min_value), _least(self.max_value, other.max_value)
        result = IntervalSet(low, high)
        return IntSet.nothing() if result.is_nothing() else result


def union_lower_bound(sets: Sequence[IntervalSet]) -> IntervalSet:
    """An interval within the union: sets that touch are joined; of two that leave a gap, the first counts."""
    result = IntSet.nothing()
    for other in sets:
        if result.is_nothing() or result.is_everything():
            result = other if result.is_nothing() else result
        elif _reaches(result, other) and _reaches(other, result):
            result = result.union(other)
    return result


def _reaches(a: IntervalSet, b: IntervalSet) -> bool:
    """Whether `b` begins no later than just after `a` ends, as far as literals tell."""
    low, high = b.min_value, a.max_value
    if low is NEG_INF or high is POS_INF:
        return True
    return isinstance(low, IntImm) and isinstance(high, IntImm) and low.value <= high.value + 1


Set = IntervalSet | Range | tuple[Any, Any]


def as_interval(given: Set) -> IntervalSet:
    """A set as an interval."""
    if isinstance(given, IntervalSet):
        return given
    if isinstance(given, Range):
        return IntervalSet(given.min, given.min + given.extent - 1)
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return IntervalSet(given[0], given[1])
    raise NotASet(given)


class Prover(Protocol):
    """Who simplifies and proves here; `analyzer.py` has the class."""

    engine: Simplifier

    def simplify(self, expr: Expr | int) -> Expr: ...

    def can_prove(self, condition: Expr | bool) -> bool: ...

    def can_prove_equal(self, a: Expr | int, b: Expr | int) -> bool: ...


@deep
def int_set(expr: Expr | int, dom_map: Mapping[Var, Set], analyzer: Prover) -> IntervalSet:
    """The values of `expr` while each variable stays in its set; other variables stay symbols."""
    return _Eval(analyzer, dom_map).of(as_expr(expr))


class _Eval:
    def __init__(self, analyzer: Prover, dom_map: Mapping[Var, Set]) -> None:
        self.analyzer = analyzer
        self.sets = {var: as_interval(domain) for var, domain in dom_map.items()}
        self.finite = {var: (low, high) for var, (low, high) in self.sets.items() if _is_finite(low, high)}
        self.known: dict[Expr, IntervalSet] = {}

    def of(self, e: Expr) -> IntervalSet:
        result = self.known.get(e)
        if result is None:
            result = self.known[e] = self._simple(self._of(e))
        return result

    def _of(self, e: Expr) -> IntervalSet:
        if isinstance(e, Var) and e in self.sets:
            return self._again(e)
        # What depends on no set is one value (lanes apart).
        if e.dtype.lanes == 1 and not uses_var(e, self.sets.__contains__):
            return IntSet.single_point(e)
        if isinstance(e, FloorMod):
            within = self._in_one_block(e, self.of(e.a), self.of(e.b))
            if within is not None:
                return within
        tight = self._affine(e)
        if tight is not None:
            return tight
        rule = _RULES.get(type(e))
        return rule(self, e) if rule is not None else IntSet.everything()

    def _again(self, var: Var) -> IntervalSet:
        """The set of a variable; its ends may use variables that have sets themselves."""
        low, high = self.sets[var]
        others = {other: domain for other, domain in self.sets.items() if other is not var}
        if not others or not (_uses(low, others) or _uses(high, others)):
            return self.sets[var]
        inner = _Eval(self.analyzer, others)
        return IntervalSet(_low(inner, low), _high(inner, high))

    def _affine(self, e: Expr) -> IntervalSet | None:
        """Through linear forms, where a variable that stands twice counts once; all its sets must be finite."""
        used = {var for var in self.sets if uses_var(e, lambda other, var=var: other is var)}  # type: ignore[misc]
        if not used <= self.finite.keys() or any(_uses(end, self.sets) for var in used for end in self.finite[var]):
            return None
        if e.dtype.lanes != 1:
            return None
        ends = affine_bounds(e, {var: self.finite[var] for var in used}, self.analyzer.engine)
        return None if ends is None else IntervalSet(*ends)

    def _simple(self, result: IntervalSet) -> IntervalSet:
        ends = [end if _is_infinite(end) else self.analyzer.simplify(end) for end in result]
        return IntervalSet(*ends)

    def sign(self, e: Expr) -> int:
        """1 when `e` is proved not to be negative, -1 when not to be positive, else 0."""
        if self.analyzer.can_prove(e >= 0):
            return 1
        return -1 if self.analyzer.can_prove(e <= 0) else 0

    # --- rules -----------------------------------------------------------------------------------------------------

    def sum(self, e: BinaryExpr) -> IntervalSet:
        a, b = self.of(e.a), self.of(e.b)
        if isinstance(e, Sub):
            b = IntervalSet(_negative(b.max_value), _negative(b.min_value))
        return IntervalSet(_plus(a.min_value, b.min_value), _plus(a.max_value, b.max_value))

    def product(self, e: BinaryExpr) -> IntervalSet:
        a, b = self.of(e.a), self.of(e.b)
        if a.is_single_point():
            a, b = b, a
        if not b.is_single_point():
            ends = [end for end in (*a, *b) if _is_infinite(end)]
            if ends or not all(isinstance(end, IntImm) for end in (*a, *b)):
                return IntSet.everything()
            corners = [x * y for x in a for y in b]
            return IntervalSet(_fold(minimum, corners), _fold(maximum, corners))
        factor = b.min_value
        if _is_infinite(factor) or (sign := self.sign(factor)) == 0:
            return IntSet.everything()
        ends = [_times(end, factor, sign) for end in a]
        return IntervalSet(*ends) if sign > 0 else IntervalSet(ends[1], ends[0])

    def quotient(self, e: BinaryExpr) -> IntervalSet:
        a, b = self.of(e.a), self.of(e.b)
        if not _is_finite(*b) or self.sign(b.min_value - 1) <= 0:
            return IntSet.everything()
        divide = floordiv if isinstance(e, FloorDiv) else truncdiv
        low, high = a
        # By the sign of the dividend, one end of the divisor or the other makes the quotient least.
        if not _is_infinite(low):
            low = _fold(minimum, [divide(low, end) for end in (b[:1] if b.is_single_point() else b)])
        if not _is_infinite(high):
            high = _fold(maximum, [divide(high, end) for end in (b[:1] if b.is_single_point() else b)])
        return IntervalSet(low, high)

    def remainder(self, e: BinaryExpr) -> IntervalSet:
        a, b = self.of(e.a), self.of(e.b)
        divisor = b.max_value
        if _is_infinite(divisor) or _is_infinite(b.min_value) or self.sign(b.min_value - 1) <= 0:
            return IntSet.everything()
        least: Expr = const(0, e.dtype)
        if isinstance(e, Mod) and (_is_infinite(a.min_value) or self.sign(a.min_value) <= 0):
            least = 1 - divisor
        return self._in_one_block(e, a, b) or IntervalSet(least, divisor - 1)

    def _in_one_block(self, e: BinaryExpr, a: IntervalSet, b: IntervalSet) -> IntervalSet | None:
        """Between two multiples of the divisor the remainder is the value less a constant."""
        low, high = a
        if not b.is_single_point() or not _is_finite(*a) or not _is_finite(*b) or self.sign(b.min_value - 1) <= 0:
            return None
        block = floordiv(low, b.min_value)
        if not (isinstance(e, FloorMod) or self.sign(low) > 0):
            return None
        if not self.analyzer.can_prove_equal(block, floordiv(high, b.min_value)):
            return None
        ends = [self.analyzer.simplify(end - block * b.min_value) for end in a]
        # A shift that divides says no more than the remainder did.
        return None if any(any_node(end, _divides) for end in ends) else IntervalSet(*ends)

    def minimum(self, e: BinaryExpr) -> IntervalSet:
        a, b = self.of(e.a), self.of(e.b)
        return IntervalSet(_least(a.min_value, b.min_value), _least(a.max_value, b.max_value))

    def maximum(self, e: BinaryExpr) -> IntervalSet:
        a, b = self.of(e.a), self.of(e.b)
        return IntervalSet(_greatest(a.min_value, b.min_value), _greatest(a.max_value, b.max_value))

    def select(self, e: Select) -> IntervalSet:
        return self.of(e.true_value).union(self.of(e.false_value))

    def call(self, e: Call) -> IntervalSet:
        if e.op.name == "tir.if_then_else":
            return self.of(e.args[1]).union(self.of(e.args[2]))
        return self.of(e.args[0]) if e.op.name == "tir.likely" else IntSet.everything()

    def ramp(self, e: Ramp) -> IntervalSet:
        base, stride = self.of(e.base), self.of(e.stride)
        last = const(e.lanes - 1, e.stride.dtype)
        if not stride.is_single_point() or (sign := self.sign(stride.min_value)) == 0:
            return IntSet.everything()
        low, high = base
        reach = stride.min_value * last
        return IntervalSet(low, _plus(high, reach)) if sign > 0 else IntervalSet(_plus(low, reach), high)

    def cast(self, e: Cast) -> IntervalSet:
        source = e.value.dtype
        if not (source.is_int and e.dtype.is_int and e.dtype.bits >= source.bits) or source.is_unsigned:
            return IntSet.everything()
        result = self.of(e.value)
        return IntervalSet(*[end if _is_infinite(end) else end.astype(e.dtype.element) for end in result])

    def let(self, e: Let) -> IntervalSet:
        inner = _Eval(self.analyzer, {**self.sets, e.var: self.of(e.value)})
        return inner.of(e.body)


_RULES: Final[dict[type[Expr], Any]] = {
    Add: _Eval.sum,
    Sub: _Eval.sum,
    Mul: _Eval.product,
    FloorDiv: _Eval.quotient,
    Div: _Eval.quotient,
    FloorMod: _Eval.remainder,
    Mod: _Eval.remainder,
    Min: _Eval.minimum,
    Max: _Eval.maximum,
    Select: _Eval.select,
    Call: _Eval.call,
    Ramp: _Eval.ramp,
    Broadcast: lambda walk, e: walk.of(e.value),
    Cast: _Eval.cast,
    Let: _Eval.let,
}


def _is_infinite(end: Expr) -> bool:
    return end is POS_INF or end is NEG_INF


def _is_finite(low: Expr, high: Expr) -> bool:
    return not (_is_infinite(low) or _is_infinite(high))


def _divides(node: object) -> bool:
    return isinstance(node, (FloorDiv, FloorMod, Div, Mod))


def _uses(e: Expr, variables: Mapping[Var, object]) -> bool:
    return uses_var(e, variables.__contains__)


def _low(walk: _Eval, end: Expr) -> Expr:
    return end if _is_infinite(end) else walk.of(end).min_value


def _high(walk: _Eval, end: Expr) -> Expr:
    return end if _is_infinite(end) else walk.of(end).max_value


def _fold(combine: Callable[[Expr, Expr], Expr], values: Sequence[Expr]) -> Expr:
    total = values[0]
    for value in values[1:]:
        total = combine(total, value)
    return total


def _negative(end: Expr) -> Expr:
    if _is_infinite(end):
        return NEG_INF if end is POS_INF else POS_INF
    return -end


def _plus(a: Expr, b: Expr) -> Expr:
    # Least and greatest ends meet only their own kind of infinity.
    return a if _is_infinite(a) else b if _is_infinite(b) else a + b


def _times(end: Expr, factor: Expr, sign: int) -> Expr:
    if not _is_infinite(end):
        return end * factor
    return end if sign > 0 else _negative(end)


def _least(a: Expr, b: Expr) -> Expr:
    if a is NEG_INF or b is NEG_INF:
        return NEG_INF
    return b if a is POS_INF else a if b is POS_INF else minimum(a, b)


def _greatest(a: Expr, b: Expr) -> Expr:
    if a is POS_INF or b is POS_INF:
        return POS_INF
    return b if a is NEG_INF else a if b is NEG_INF else maximum(a, b)
