"""combiner_laws: whether a combiner commutes or associates, decided for all values it can meet.

    argmax      (i, a), (j, b)  →  Select(a > b or (a == b and i < j), i, j), max(a, b)
    law         combining x and then y gives what combining y and then x gives

What a combiner does with a value decides how the law is checked. The check is exact, not a sample:

    compared    only the order of the values counts: n of them, and the literals they meet, are tried in every order.
                Floats are tried as NaN and as both zeros as well, which compare otherwise than they are selected.
    added,      they stay symbols: for each order of the values that are compared, both sides are polynomials, which are
    multiplied  equal when their coefficients are. This is modulo 2^n for integers; for floats it leaves rounding out.
    bitwise     each bit is 0 or 1.

A value that is both compared and added, or an operation that is none of these, leaves the law undecided.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
)
from loopwright.runtime.dtype import DataType

POINTS: Final = 1 << 18  # assignments that are tried
MONOMIALS: Final = 1024  # in one polynomial

_COMPARE: Final[dict[type[Expr], Any]] = {
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
}
_BITWISE: Final[dict[str, Any]] = {
    "tir.bitwise_and": np.bitwise_and,
    "tir.bitwise_or": np.bitwise_or,
    "tir.bitwise_xor": np.bitwise_xor,
    "tir.bitwise_not": np.invert,
}
_CALLS: Final = frozenset({*_BITWISE, "tir.if_then_else", "tir.fma", "tir.isnan", "tir.likely"})
_NODES: Final = (Add, Sub, Mul, Min, Max, And, Or, Not, Select, Cast, *_COMPARE)

Use = Literal["order", "ring", "bits"]


class Undecided(Exception):
    """The law cannot be decided here. Never leaves the analysis."""


class Combiner(NamedTuple):
    """`results` are the new values of `state`, combined with `operands`; both are variables in them."""

    state: tuple[Var, ...]
    operands: tuple[Var, ...]
    results: tuple[Expr, ...]


def is_understood(expr: Expr) -> bool:
    """Whether the laws know the operation of an expression; its operands are another question."""
    return isinstance(expr, _NODES) or (isinstance(expr, Call) and expr.op.name in _CALLS)


def commutes_with_itself(combiner: Combiner) -> bool:
    """Whether operands may be combined in any order: f(f(c, x), y) = f(f(c, y), x). Raises Undecided."""
    law = _Law(combiner, [], states=1, operands=2)
    (state,), (x, y) = law.states, law.operands
    return law.equal(law.apply(law.apply(state, x), y), law.apply(law.apply(state, y), x))


def is_commutative(combiner: Combiner) -> bool:
    """f(a, b) = f(b, a), for a combiner of as many operands as there are fields. Raises Undecided."""
    law = _Law(combiner, _paired(combiner), states=2, operands=0)
    a, b = law.states
    return law.equal(law.apply(a, b), law.apply(b, a))


def is_associative(combiner: Combiner) -> bool:
    """f(f(a, b), c) = f(a, f(b, c)), for a combiner of as many operands as there are fields. Raises Undecided."""
    law = _Law(combiner, _paired(combiner), states=3, operands=0)
    a, b, c = law.states
    return law.equal(law.apply(law.apply(a, b), c), law.apply(a, law.apply(b, c)))


def absorbs(combiner: Combiner, start: Sequence[Expr], unit: Sequence[Expr]) -> bool:
    """Whether `unit` changes nothing that began with `start`: f(f(s, x), u) = f(s, x) and f(s, u) = s.

    Both are literals, or the start values are variables, which may be anything. Raises Undecided.
    """
    given = [(var, item) for values in (start, unit) for var, item in zip(combiner.state, values, strict=True)]
    is_free = any([isinstance(item, Var) for item in start])
    law = _Law(combiner, [*_paired(combiner), *given], states=2 if is_free else 1, operands=0)
    x, *anything = law.states
    free = dict(zip(start, anything[0], strict=True)) if is_free else {}
    s, u = [law.value(item, free) for item in start], [law.value(item, {}) for item in unit]
    begun = law.apply(s, x)
    return law.equal(law.apply(begun, u), begun) and law.equal(law.apply(s, u), s)


def is_sum(combiner: Combiner) -> bool:
    """Whether every field gains something that depends on the operands alone. Raises Undecided."""
    law = _Law(combiner, [], states=1, operands=1)
    (state,), (x,) = law.states, law.operands
    for before, after in zip(state, law.apply(state, x), strict=True):
        if not isinstance(before, dict) or not isinstance(after, dict):
            return False
        (own,) = before
        gained = _combined(after, before, np.subtract)
        if any([set(own) & set(term) and not _is_zero(count) for term, count in gained.items()]):
            return False
    return True


def combiner_key(combiner: Combiner) -> Hashable:
    """Equal for combiners that are written alike, whatever their variables are called."""
    numbers: dict[Hashable, int] = {}
    done: dict[Expr, int] = {}

    def number(expr: Expr) -> int:
        if expr not in done:
            about: object = _name(expr)
            if isinstance(expr, (IntImm, FloatImm)):
                about = repr(expr.value)
            args = () if isinstance(expr, (Var, IntImm, FloatImm)) else tuple([number(arg) for arg in _args(expr)])
            text: Hashable = (type(expr).__name__, str(expr.dtype), about, args)
            done[expr] = numbers.setdefault(text, len(numbers))
        return done[expr]

    for var in (*combiner.state, *combiner.operands):
        done[var] = numbers.setdefault((len(numbers), str(var.dtype)), len(numbers))
    results = tuple([number(result) for result in combiner.results])
    return (tuple(numbers), results)


def _paired(combiner: Combiner) -> list[tuple[Expr, Expr]]:
    """Operands are of the kind of the field that they are combined into."""
    return list(zip(combiner.state, combiner.operands, strict=True))


# --- values of all assignments at once ----------------------------------------------------------------------------

Polynomial = dict[tuple[int, ...], Any]  # product of symbols → coefficient: a number, or one for each assignment
Value = Any  # an array over the assignments, or a polynomial


class _Law:
    """One combiner, with as many independent tuples of state and of operands as a law speaks of."""

    def __init__(self, combiner: Combiner, alike: Sequence[tuple[Expr, Expr]], states: int, operands: int) -> None:
        self.combiner = combiner
        self.sorts = _Sorts()
        for var, result in zip(combiner.state, combiner.results, strict=True):
            self.sorts.join(self.sorts.of(var), self.sorts.of(result))
        for a, b in alike:
            self.sorts.join(self.sorts.of(a), self.sorts.of(b))
        self.sorts.check(combiner)
        counted = [*[var for var in combiner.state for _ in range(states)]]
        counted += [var for var in combiner.operands for _ in range(operands)]
        self.domains = self._domains(counted)
        self.axis, self.rank = 0, len([var for var in counted if self._is_tried(var)])
        self.symbols = 0
        self.states = [[self._free(var) for var in combiner.state] for _ in range(states)]
        self.operands = [[self._free(var) for var in combiner.operands] for _ in range(operands)]

    def _is_tried(self, var: Var) -> bool:
        return var.dtype.is_bool or self.sorts.use(var) in ("order", "bits")

    def _domains(self, counted: Sequence[Var]) -> dict[int, list[Any]]:
        """The values that the variables of each sort are tried with. Raises Undecided when they are too many."""
        members: dict[int, int] = {}
        for var in counted:
            if not var.dtype.is_bool and self._is_tried(var):
                members[self.sorts.sort(var)] = members.get(self.sorts.sort(var), 0) + 1
        result = {sort: self.sorts.domain(sort, count) for sort, count in members.items()}
        points = 1
        for var in counted:
            if self._is_tried(var):
                points *= 2 if var.dtype.is_bool else len(result[self.sorts.sort(var)])
            if points > POINTS:
                raise Undecided
        return result

    def _free(self, var: Var) -> Value:
        """A variable that can be anything: all its values along an axis of its own, or a symbol."""
        if not self._is_tried(var):
            self.symbols += 1
            return {(self.symbols,): 1}
        shape = [1] * self.rank
        shape[self.axis] = -1
        self.axis += 1
        if var.dtype.is_bool:
            return np.array([False, True]).reshape(shape)
        return np.array(self.domains[self.sorts.sort(var)]).reshape(shape)

    def apply(self, state: Sequence[Value], operands: Sequence[Value]) -> list[Value]:
        """The combiner's results."""
        known = dict(zip([*self.combiner.state, *self.combiner.operands], [*state, *operands], strict=True))
        done: dict[Expr, Value] = {}
        return [self.value(result, known, done) for result in self.combiner.results]

    def value(self, expr: Expr, known: Mapping[Any, Value], done: dict[Expr, Value] | None = None) -> Value:
        done = {} if done is None else done
        result = done.get(expr)
        if result is None:
            result = done[expr] = self._value(expr, known, done)
        return result

    def _value(self, expr: Expr, known: Mapping[Any, Value], done: dict[Expr, Value]) -> Value:
        if isinstance(expr, Var):
            if expr not in known:
                raise Undecided
            return known[expr]
        if isinstance(expr, (IntImm, FloatImm)):
            return self._literal(expr)
        args = [self.value(arg, known, done) for arg in _args(expr)]
        name = _name(expr)
        if isinstance(expr, Select) or name == "tir.if_then_else":
            return _chosen(*args)
        if name == "tir.fma":
            return _combined(_product(args[0], args[1]), args[2], np.add)
        if name == "tir.isnan":
            return np.isnan(args[0].astype(np.float64))
        if name in _BITWISE:
            return _BITWISE[name](*args)
        if isinstance(expr, Not):
            return ~args[0]
        if len(args) == 1:  # a cast, or a hint
            return args[0]
        return self._binary(expr, args[0], args[1])

    def _binary(self, expr: Expr, a: Value, b: Value) -> Value:
        if isinstance(expr, (Add, Sub)):
            return _combined(a, b, np.add if isinstance(expr, Add) else np.subtract)
        if isinstance(expr, Mul):
            return _product(a, b)
        if isinstance(expr, (Min, Max)):
            return _extreme(a, b, greatest=isinstance(expr, Max))
        if isinstance(expr, (And, Or)):
            return a & b if isinstance(expr, And) else a | b
        return _COMPARE[type(expr)](a, b)

    def _literal(self, expr: IntImm | FloatImm) -> Value:
        if expr.dtype.is_bool:
            return np.bool_(expr.value)
        if self.sorts.use(expr) not in ("order", "bits"):
            if isinstance(expr, FloatImm) and not math.isfinite(expr.value):
                raise Undecided
            return {(): Fraction(expr.value)}
        return np.array(self.sorts.point(expr))

    def equal(self, one: Sequence[Value], other: Sequence[Value]) -> bool:
        """Whether the values are the same for every assignment."""
        return all([_is_equal(a, b) for a, b in zip(one, other, strict=True)])


def _args(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call):
        return list(expr.args)
    if isinstance(expr, Select):
        return [expr.condition, expr.true_value, expr.false_value]
    if isinstance(expr, Cast):
        return [expr.value]
    if isinstance(expr, Not):
        return [expr.a]
    return [expr.a, expr.b]  # type: ignore[attr-defined]


def _name(expr: Expr) -> str:
    return expr.op.name if isinstance(expr, Call) else ""


def _chosen(condition: Value, one: Value, other: Value) -> Value:
    if not isinstance(one, dict):
        return np.where(condition, one, other)
    result = {}
    for term in {**one, **other}:
        yes, no = [np.array(side.get(term, 0), dtype=object) for side in (one, other)]
        result[term] = np.where(condition, yes, no)
    return result


def _combined(one: Polynomial, other: Polynomial, operation: Any) -> Polynomial:
    result = {term: operation(one.get(term, 0), other.get(term, 0)) for term in {**one, **other}}
    if len(result) > MONOMIALS:
        raise Undecided
    return result


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for a, x in one.items():
        for b, y in other.items():
            term = tuple(sorted((*a, *b)))
            result[term] = result.get(term, 0) + x * y
    if len(result) > MONOMIALS:
        raise Undecided
    return result


def _extreme(a: Any, b: Any, greatest: bool) -> Any:
    """NaN if either is; −0 is less than +0 (docs/semantics.md)."""
    if a.dtype.kind != "f":
        return np.maximum(a, b) if greatest else np.minimum(a, b)
    takes_a = (a > b) | ((a == b) & ~np.signbit(a)) if greatest else (a < b) | ((a == b) & np.signbit(a))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(takes_a, a, b))


def _is_zero(count: Any) -> bool:
    return not np.any(np.asarray(count) != 0)


def _is_equal(a: Value, b: Value) -> bool:
    if isinstance(a, dict):
        return all([_is_zero(count) for count in _combined(a, b, np.subtract).values()])
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool(np.all(same | (np.isnan(a) & np.isnan(b))))


# --- which values meet --------------------------------------------------------------------------------------------


class _Sorts:
    """Expressions whose values are compared with, combined with or chosen instead of each other are of one sort."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.uses: dict[int, set[Use]] = {}
        self.literals: dict[int, list[float]] = {}
        self.types: dict[int, set[DataType]] = {}
        self.known: dict[Expr, int] = {}
        self._points: dict[int, dict[float, Any]] = {}

    def of(self, expr: Expr) -> int:
        """The sort of an expression, and those of all that is in it. Raises Undecided."""
        result = self.known.get(expr)
        if result is None:
            result = self.known[expr] = len(self.parents)
            self.parents.append(result)
            self.types[result] = {expr.dtype}
            self._look(expr, result)
        return self._root(result)

    def _look(self, expr: Expr, own: int) -> None:
        if isinstance(expr, Var):
            return
        if isinstance(expr, (IntImm, FloatImm)):
            self.literals.setdefault(own, []).append(expr.value)
            return
        if not is_understood(expr):
            raise Undecided
        args = _args(expr)
        sorts = [self.of(arg) for arg in args]
        name = _name(expr)
        if isinstance(expr, Select) or name == "tir.if_then_else":
            self.join(own, sorts[1])
            self.join(own, sorts[2])
        elif type(expr) in _COMPARE:
            self.join(sorts[0], sorts[1])
            self._use("order", args[0], sorts[0])
        elif name == "tir.isnan":
            self._use("order", args[0], sorts[0])
        elif isinstance(expr, (Add, Sub, Mul, Min, Max, Cast)) or name == "tir.fma" or name in _BITWISE:
            for sort in sorts:
                self.join(own, sort)
            if isinstance(expr, Cast):
                self._check_cast(expr.value.dtype, expr.dtype)
            use: Use = "order" if isinstance(expr, (Min, Max)) else "bits" if name in _BITWISE else "ring"
            self._use(use, expr, own)

    def _use(self, use: Use, expr: Expr, sort: int) -> None:
        if expr.dtype.is_bool:
            if use == "ring":
                raise Undecided
        else:
            self.uses.setdefault(self._root(sort), set()).add(use)

    def _check_cast(self, source: DataType, target: DataType) -> None:
        """A cast between floats rounds; one between integers keeps the value modulo 2^n (`check` asks for n)."""
        if source.is_bool or target.is_bool or source.is_float != target.is_float or source.is_int != target.is_int:
            raise Undecided

    def join(self, a: int, b: int) -> None:
        a, b = self._root(a), self._root(b)
        if a == b:
            return
        self.parents[b] = a
        for use in self.uses.pop(b, ()):
            self.uses.setdefault(a, set()).add(use)
        self.literals.setdefault(a, []).extend(self.literals.pop(b, ()))
        self.types[a] |= self.types.pop(b)

    def _root(self, sort: int) -> int:
        while self.parents[sort] != sort:
            sort = self.parents[sort]
        return sort

    def sort(self, expr: Expr) -> int:
        return self._root(self.known[expr])

    def use(self, expr: Expr) -> Use | None:
        """What is done with the values of its sort; None when they are only moved."""
        return next(iter(self.uses.get(self.of(expr), ())), None)

    def check(self, combiner: Combiner) -> None:
        """One sort has one use, in types that it makes sense in."""
        for sort, uses in self.uses.items():
            if len(uses) != 1:
                raise Undecided
            (use,) = uses
            types = self.types[sort]
            if any([dtype.lanes != 1 for dtype in types]) or (use != "ring" and len(types) > 1):
                raise Undecided
            if use == "bits" and not all([dtype.is_int for dtype in types]):
                raise Undecided
        for result in combiner.results:
            types = self.types[self.sort(result)]
            # Integers wrap: what is computed in fewer bits than are stored is not the same modulo 2^n.
            if result.dtype.is_int and any([dtype.bits < result.dtype.bits for dtype in types]):
                raise Undecided

    # --- what is tried ------------------------------------------------------------------------------------------

    def domain(self, sort: int, count: int) -> list[Any]:
        """Values in every order that `count` of them can have, with each other and with the literals of their sort."""
        (dtype,) = self.types[sort]
        if "bits" in self.uses[sort]:
            ones = (1 << dtype.bits) - 1 if dtype.is_unsigned else -1
            if not {0, ones}.issuperset(self.literals.get(sort, ())):
                raise Undecided
            self._points[sort] = {0: 0, ones: -1}
            return [0, -1]
        numbers = sorted({value for value in self.literals.get(sort, ()) if value == value})
        if dtype.is_float:
            numbers = sorted({*numbers, 0.0})
        if not numbers:
            return list(range(count))
        # Of literals only the order counts as well: each gets room for `count` values on both sides, if there are any.
        kind, zero, room = float if dtype.is_float else int, numbers.index(0) if 0 in numbers else 0, count + 1
        self._points[sort] = {value: kind((k - zero) * room) for k, value in enumerate(numbers)}
        least, greatest = (-math.inf, math.inf) if dtype.is_float else (dtype.min_value(), dtype.max_value())
        low, high = -zero * room, (len(numbers) - 1 - zero) * room
        low -= count if numbers[0] > least else 0
        high += count if numbers[-1] < greatest else 0
        result = [kind(value) for value in range(low, high + 1)]
        return [*result, -0.0, math.nan] if dtype.is_float else result

    def point(self, expr: IntImm | FloatImm) -> Any:
        """What stands for a literal among the values that are tried."""
        sort = self.sort(expr)
        if sort not in self._points:
            self.domain(sort, 0)
        if isinstance(expr, FloatImm) and (math.isnan(expr.value) or expr.value == 0):
            return expr.value
        return self._points[sort][expr.value]
