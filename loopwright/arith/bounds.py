"""Bounds: the least and greatest value an integer expression can take.

Intervals are exact Python integers, up to `HUGE`: no value of a type we have lies beyond. A variable nobody bounded has
the limits of its type, so there are no infinities inside; only `ConstIntBound`, which users see, calls everything
beyond int64 infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from loopwright.arith.data import is_data
from loopwright.arith.engine import Engine
from loopwright.arith.facts import Interval
from loopwright.arith.linear import LinearForm, Terms, add_terms, is_index
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
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    SizeVar,
    Sub,
)
from loopwright.runtime.dtype import DataType

FAR: Final = 2**30  # a bound beyond it is that of the type, not of the program
ROOMY: Final = 2**20  # memory of more elements is not allocated for a size that may be any, and is small as a rule
DEPTH: Final = 3  # how many facts one proof may combine
HUGE: Final = 1 << 256  # beyond every type: `x = x * x`, forty times, would have a bound of 2**40 digits


@dataclass(frozen=True)
class ConstIntBound:
    """Every value lies between `min_value` and `max_value`, both included."""

    POS_INF: ClassVar[int] = (1 << 63) - 1
    NEG_INF: ClassVar[int] = -(1 << 63)

    min_value: int
    max_value: int

    @staticmethod
    def of(interval: Interval, dtype: DataType) -> ConstIntBound:
        """The interval of an expression; an end that only the limits of its type bound is infinite."""
        low, high = interval
        if is_index(dtype.with_lanes(1)):
            far = dtype.highest if dtype.bits < 64 else 1 << 62  # sums with a limit of int64 come near it
            low, high = low if low > -far else ConstIntBound.NEG_INF, high if high < far else ConstIntBound.POS_INF
        return ConstIntBound(max(low, ConstIntBound.NEG_INF), min(high, ConstIntBound.POS_INF))


def form_range(s: Engine, form: LinearForm) -> Interval:
    """The interval of a linear form, each atom on its own."""
    low = high = form.const
    ranges = s.ranges
    for atom, k in form.terms.items():
        known = ranges.get(atom)
        lo, hi = known if known is not None else atom_range(s, atom)
        if k > 0:
            low += k * lo
            high += k * hi
        else:
            low += k * hi
            high += k * lo
    return low, high


def expr_range(s: Engine, e: Expr) -> Interval:
    """The interval of any integer or truth-valued expression (of each lane, for vectors)."""
    if not is_index(e.dtype):
        return atom_range(s, e)
    low, high = form_range(s, s.form(e))
    limits = type_range(e)
    # Data wraps around when it leaves the type; indices do not.
    if (low < limits[0] or high > limits[1]) and is_data(s, e):
        return limits
    return low, high


def is_exact(s: Engine, form: LinearForm, dtype: DataType) -> bool:
    """Whether the form is the value itself, not just equal to it modulo 2**bits."""
    return not any([is_data(s, atom) for atom in form.terms]) or is_within(s, form, dtype)


def are_exact(s: Engine, a: LinearForm, b: LinearForm, dtype: DataType) -> bool:
    """Whether both forms are what an operation on the two works on: beside data, the low bits of an index count."""
    if not any([is_data(s, atom) for form in (a, b) for atom in form.terms]):
        return True
    return is_within(s, a, dtype) and is_within(s, b, dtype)


def is_within(s: Engine, form: LinearForm, dtype: DataType) -> bool:
    """Whether the form is proved to stay within the limits of the type."""
    low, high = form_range(s, form)
    return dtype.lowest <= low and high <= dtype.highest


def atom_range(s: Engine, atom: Expr) -> Interval:
    """What structure and facts say about one atom; remembered until the facts change."""
    known = s.ranges.get(atom)
    if known is not None:
        return known
    s.left -= 1
    rule = _RULES.get(type(atom)) if s.left >= 0 else None
    low, high = s.ranges[atom] = type_range(atom)  # what a fact that leads back here may use
    if rule is not None:
        result = rule(s, atom)
        # Types narrower than an index wrap around: an interval that leaves the type says nothing.
        if is_index(atom.dtype) or (low <= result[0] and result[1] <= high):
            low, high = result
    fact = s.facts.ranges.get(atom)
    if fact is not None and fact[0] <= high and low <= fact[1]:
        low, high = max(low, fact[0]), min(high, fact[1])
    low, high = s.ranges[atom] = max(low, -HUGE), min(high, HUGE)
    return low, high


def type_range(e: Expr) -> Interval:
    """The limits of the type; sizes are not negative."""
    dtype = e.dtype
    if not (dtype.is_int or dtype.is_bool):
        return ConstIntBound.NEG_INF, ConstIntBound.POS_INF
    return 0 if type(e) is SizeVar else int(dtype.min_value()), int(dtype.max_value())


def _corners(operation: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    values = [operation(x, y) for x in a for y in b]
    return min(values), max(values)


def _value_range(s: Engine, e: Expr) -> Interval:
    """The interval of a value of its type: an index that leaves it counts by its low bits."""
    low, high = expr_range(s, e)
    limits = type_range(e)
    return (low, high) if limits[0] <= low and high <= limits[1] else limits


def operand_ranges(s: Engine, e: Any) -> tuple[Interval, Interval]:
    """The intervals of both operands; beside data, an index counts by its low bits."""
    of = _value_range if is_data(s, e) else expr_range
    return of(s, e.a), of(s, e.b)


def _quotient(s: Engine, e: Expr, divide: Callable[[int, int], int]) -> Interval:
    # A divisor of either sign: the least and greatest of each sign give the corners. Division by 0 has no value.
    a, (lowest, highest) = operand_ranges(s, e)
    results: list[int] = []
    if highest > 0:
        results += _corners(divide, a, (max(lowest, 1), highest))
    if lowest < 0:
        results += _corners(divide, a, (lowest, min(highest, -1)))
    return (min(results), max(results)) if results else type_range(e)


def _floordiv(s: Engine, e: BinaryExpr) -> Interval:
    return _quotient(s, e, lambda x, y: x // y)


def _div(s: Engine, e: BinaryExpr) -> Interval:
    return _quotient(s, e, lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))


def _floormod(s: Engine, e: BinaryExpr) -> Interval:
    a, b = operand_ranges(s, e)
    if b[0] == 0 < b[1]:
        b = (1, b[1])  # division by 0 has no value
    if b[0] > 0:
        if a[0] >= 0:
            return a if a[1] < b[0] else (0, min(a[1], b[1] - 1))
        return 0, b[1] - 1
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _mod(s: Engine, e: BinaryExpr) -> Interval:
    a, b = operand_ranges(s, e)
    size = max(abs(b[0]), abs(b[1]), 1) - 1
    return max(-size, min(a[0], 0)), min(size, max(a[1], 0))


def _min(s: Engine, e: BinaryExpr) -> Interval:
    a, b = operand_ranges(s, e)
    return min(a[0], b[0]), min(a[1], b[1])


def _max(s: Engine, e: BinaryExpr) -> Interval:
    a, b = operand_ranges(s, e)
    return max(a[0], b[0]), max(a[1], b[1])


def _union(s: Engine, one: Expr, other: Expr) -> Interval:
    a, b = expr_range(s, one), expr_range(s, other)
    return min(a[0], b[0]), max(a[1], b[1])


def _cast(s: Engine, e: Cast) -> Interval:
    limits = type_range(e)
    if not (e.value.dtype.is_int or e.value.dtype.is_bool):
        return limits
    inner = _value_range(s, e.value)
    return inner if limits[0] <= inner[0] and inner[1] <= limits[1] else limits


def _call(s: Engine, e: Call) -> Interval:
    name, args, limits = e.op.name, e.args, type_range(e)
    if name == "tir.if_then_else":
        return _union(s, args[1], args[2])
    if name in ("tir.likely", "tir.abs"):
        low, high = _value_range(s, args[0])
        if name == "tir.likely" or low >= 0:
            return low, high
        # |least value| wraps to itself, so it must be excluded before anything can be said.
        return (0, max(-low, high)) if low > limits[0] else limits
    if name == "tir.shift_right":
        bits = _value_range(s, args[1])
        if bits[0] >= 0 and bits[1] < e.dtype.bits:
            return _corners(lambda x, y: x >> y, _value_range(s, args[0]), bits)
        return limits
    if name == "tir.bitwise_and":
        ends = [high for low, high in (_value_range(s, args[0]), _value_range(s, args[1])) if low >= 0]
        return (0, min(ends)) if ends else limits
    if name in ("tir.clz", "tir.popcount"):
        return 0, int(args[0].dtype.bits)
    return limits


def _literal(s: Engine, e: IntImm) -> Interval:
    return e.value, e.value


def _sum(s: Engine, e: BinaryExpr) -> Interval:
    a, b = operand_ranges(s, e)
    return (a[0] + b[0], a[1] + b[1]) if type(e) is Add else (a[0] - b[1], a[1] - b[0])


def _product(s: Engine, e: BinaryExpr) -> Interval:
    factors = s.factors.get(e, ())
    if len(factors) > 3:  # reading the product of all but the last again, and so on, would make ever new ones
        of, result = _value_range if is_data(s, e) else expr_range, (1, 1)
        for factor in factors:
            result = _corners(lambda x, y: x * y, result, of(s, factor))
        return result
    return _corners(lambda x, y: x * y, *operand_ranges(s, e))


def _ramp(s: Engine, e: Ramp) -> Interval:
    base, stride = expr_range(s, e.base), expr_range(s, e.stride)
    last = e.lanes - 1
    return base[0] + min(0, last * stride[0]), base[1] + max(0, last * stride[1])


_RULES: Final[dict[type[Expr], Callable[[Engine, Any], Interval]]] = {
    IntImm: _literal,
    Add: _sum,
    Sub: _sum,
    Mul: _product,
    FloorDiv: _floordiv,
    FloorMod: _floormod,
    Div: _div,
    Mod: _mod,
    Min: _min,
    Max: _max,
    Cast: _cast,
    Call: _call,
    Select: lambda s, e: _union(s, e.true_value, e.false_value),
    Broadcast: lambda s, e: expr_range(s, e.value),
    Ramp: _ramp,
}


def upper(s: Engine, terms: Terms, const: int, goal: int, depth: int = DEPTH) -> int:
    """An upper bound of a linear form from intervals and, while it exceeds `goal`, from facts that relate atoms.

    Each way replaces atoms by something that is no smaller: `c * (n // c)` by `n`, `min(a, b)` by either operand, and
    a multiple of a known inequality by its bound.
    """
    best = form_range(s, LinearForm(terms, const))[1]
    if best <= goal or depth == 0:
        return best
    for atom, k in terms.items():
        parts = s.parts.get(atom)
        if parts is None:
            continue
        rest = dict(terms)
        del rest[atom]
        cls = type(atom)
        if cls is FloorDiv and not parts[1].terms and parts[1].const > 0 and k % parts[1].const == 0:
            n, c = parts[0], parts[1].const
            slack = 0 if k > 0 else (c - 1) * (-k // c)
            result = upper(s, add_terms(rest, n.terms, k // c), const + k // c * n.const + slack, goal, depth - 1)
        elif cls is Min or cls is Max:
            one, other = (
                upper(s, add_terms(rest, part.terms, k), const + k * part.const, goal, depth - 1) for part in parts
            )
            # min(a, b) ≤ a, with a positive factor; otherwise it is one of the two, whichever is worse.
            result = min(one, other) if (cls is Min) == (k > 0) else max(one, other)
        else:
            continue
        best = min(best, result)
        if best <= goal:
            return best
    for known, bound in s.facts.linear:
        tried: set[int] = set()  # a sum of k sizes has k atoms to cancel, as a rule by the same multiple of the fact
        for atom, k in known.items():
            mine = terms.get(atom)
            if mine is None or mine % k or mine // k <= 0 or mine // k in tried:
                continue
            times = mine // k
            tried.add(times)
            best = min(best, upper(s, add_terms(terms, known, -times), const + times * bound, goal, depth - 1))
            if best <= goal:
                return best
    return best


def at_most(s: Engine, form: LinearForm, bound: int) -> bool:
    """Whether the form is proved to be no more than `bound`."""
    return upper(s, form.terms, form.const, bound) <= bound


def at_least(s: Engine, form: LinearForm, bound: int) -> bool:
    """Whether the form is proved to be no less than `bound`."""
    return at_most(s, form.times(-1), -bound)
