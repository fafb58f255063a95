"""Index arithmetic in a program that is walked: which integers are exact, and between which numbers they lie.

An int32 or int64 made of variables and literals by `+ - * // % div mod min max` and choices between them is exact,
whatever its type: see docs/semantics.md. `fits` says where that makes no difference, since no value leaves the type:
there 32-bit arithmetic is as good as any. Whoever walks a program says what its loops and lets bind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.arith.data import computed_from
from loopwright.arith.facts import Interval
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
    Select,
    SizeVar,
    Sub,
    Var,
    cast,
)
from loopwright.runtime.dtype import INT32, INT64, DataType

EXACT_NODES: Final = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)
_ENDLESS: Final = (-(1 << 2000), 1 << 2000)


class IndexArithmetic:
    """What is known of the integers of one program at the point the walk has reached."""

    def __init__(self) -> None:
        self.data_vars: set[Var] = set()  # lets of what was read from memory
        self.ranges: dict[Var, Interval] = {}  # of loops and lets; a parameter has the limits of its type
        self._data: dict[Expr, bool] = {}
        self._intervals: dict[Expr, Interval] = {}

    # --- what the walk says

    def loop(self, var: Var, low: Expr, extent: Expr) -> None:
        """`var` runs through a loop from here on."""
        first, count = self.interval(low), self.interval(extent)
        # The bounds of a loop are no operands: what is data there was read once, and fits its type.
        self._bind(var, (first[0], max(first[0], first[1] + count[1] - 1)))

    def let(self, var: Var, value: Expr) -> None:
        """`var` stands for `value` from here on."""
        if var.dtype.element is not INT32 and var.dtype.element is not INT64:
            return
        is_data = self.is_data(value)
        if is_data != (var in self.data_vars):
            if var in self.ranges:  # defined anew: what was known of it is no longer so
                self._forget()
            (self.data_vars.add if is_data else self.data_vars.discard)(var)
        self._bind(var, self.interval(value))

    def _bind(self, var: Var, interval: Interval) -> None:
        known = self.ranges.get(var)
        if known != interval:
            if known is not None:
                self._forget()  # the variable of an earlier loop: what was known of it is no longer so
            self.ranges[var] = interval

    def _forget(self) -> None:
        self._data.clear()
        self._intervals.clear()

    # --- questions

    def is_index(self, e: Expr) -> bool:
        """Whether it is index arithmetic, lane by lane: exact."""
        return is_index_type(e.dtype) and not self.is_data(e)

    def is_data(self, e: Expr) -> bool:
        """Whether memory, a float or an unknown call takes part in the number."""
        if isinstance(e, Var):
            return e in self.data_vars
        if isinstance(e, IntImm):
            return False
        result = self._data.get(e)
        if result is None:
            if isinstance(e, Let):
                self.let(e.var, e.value)
                result = self.is_data(e.body)
            else:
                operands = computed_from(e)
                result = operands is None or any([self.is_data(operand) for operand in operands])
            self._data[e] = result
        return result

    def fits(self, e: Expr) -> bool:
        """Whether the exact value lies within the type for sure."""
        low, high = self.interval(e)
        return e.dtype.lowest <= low and high <= e.dtype.highest

    def interval(self, e: Expr) -> Interval:
        """The least and greatest value an integer takes, before anything counts by its low bits."""
        if isinstance(e, IntImm):
            return e.value, e.value
        if isinstance(e, Var):
            known = self.ranges.get(e)
            return known if known is not None else _limits(e)
        result = self._intervals.get(e)
        if result is None:
            low, high = _limits(e)
            if is_index_type(e.dtype):
                low, high = self._computed(e)
                if self.is_data(e) and not (e.dtype.lowest <= low and high <= e.dtype.highest):
                    low, high = _limits(e)
            result = self._intervals[e] = (low, high)
        return result

    def operand(self, e: Expr) -> Interval:
        """The interval of the value as one of its type: what a conversion or data meets."""
        return self.interval(e) if self.fits(e) else _limits(e)

    def _computed(self, e: Expr) -> Interval:
        if isinstance(e, EXACT_NODES):
            assert isinstance(e, BinaryExpr)
            of = self.operand if self.is_data(e) else self.interval
            return _combined(type(e), of(e.a), of(e.b))
        if isinstance(e, Select):
            return _union(self.interval(e.true_value), self.interval(e.false_value))
        if isinstance(e, Call) and e.op.name == "tir.if_then_else":
            return _union(self.interval(e.args[1]), self.interval(e.args[2]))
        if isinstance(e, Cast) and e.value.dtype.is_int:
            low, high = self.operand(e.value)
            return (low, high) if e.dtype.lowest <= low and high <= e.dtype.highest else _limits(e)
        if isinstance(e, Broadcast):
            return self.interval(e.value)
        if isinstance(e, Ramp):
            (low, high), (least, most), last = self.interval(e.base), self.interval(e.stride), e.lanes - 1
            return low + min(0, last * least), high + max(0, last * most)
        if isinstance(e, Let):
            self.let(e.var, e.value)
            return self.interval(e.body)
        return _limits(e)


def in_64_bits(e: Expr) -> Expr:
    """Index arithmetic on parameters, written so that 64-bit arithmetic gives its exact value."""
    wide = INT64.with_lanes(e.dtype.lanes)
    if isinstance(e, EXACT_NODES):
        assert isinstance(e, BinaryExpr)
        return type(e)._make(in_64_bits(e.a), in_64_bits(e.b), span=e.span)
    if isinstance(e, Select):
        return Select(e.condition, in_64_bits(e.true_value), in_64_bits(e.false_value))
    if isinstance(e, Cast) and is_index_type(e.value.dtype):
        low_bits = cast(in_64_bits(e.value), e.value.dtype)
        return cast(cast(low_bits, e.dtype), wide)
    return cast(e, wide)


def is_index_type(dtype: DataType) -> bool:
    """Whether arithmetic of this type can be index arithmetic, lane by lane."""
    element = dtype.element
    return element is INT32 or element is INT64


def _limits(e: Expr) -> Interval:
    dtype = e.dtype.element
    return 0 if isinstance(e, SizeVar) else dtype.lowest, dtype.highest


def _union(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _combined(kind: type[Expr], a: Interval, b: Interval) -> Interval:
    """The interval of an operation; beyond all types it stays without bounds: the exact ones have no end of digits."""
    if _is_endless(a) or _is_endless(b):
        return _ENDLESS
    result = _COMBINE[kind](a, b)
    return _ENDLESS if _is_endless(result) else result


def _is_endless(interval: Interval) -> bool:
    return interval[0] <= _ENDLESS[0] or interval[1] >= _ENDLESS[1]


def _corners(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a: Interval, b: Interval) -> Interval:
    """Of either way to round; no quotient is larger than its dividend, except that -1 // huge is -1."""
    if b[0] > 0:
        return min(a[0] // b[0], a[0] // b[1]), max(a[1] // b[0], a[1] // b[1], 0)
    size = max(abs(a[0]), abs(a[1]), 1)
    return -size, size


def _remainder(a: Interval, b: Interval) -> Interval:
    """With the sign of the divisor."""
    if b[0] > 0:
        return (a[0], a[1]) if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _truncated_remainder(a: Interval, b: Interval) -> Interval:
    """With the sign of the dividend."""
    size = max(abs(b[0]), abs(b[1]), 1) - 1
    return max(-size, min(a[0], 0)), min(size, max(a[1], 0))


_COMBINE: Final[dict[type, Callable[[Interval, Interval], Interval]]] = {
    Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Mul: _corners,
    FloorDiv: _quotient,
    Div: _quotient,
    FloorMod: _remainder,
    Mod: _truncated_remainder,
    Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
