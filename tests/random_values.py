"""Random expressions over the axes of a stage and the buffers it may read: the values of `random_programs.py`.

Every index is in bounds and every operation has a defined result: no zero divisors, no wide shifts, and floats become
integers only where they are small. Where a value must be exact, nothing that went through `exp` and its kind is in it.
"""

from __future__ import annotations

import random
from typing import NamedTuple, Protocol

from loopwright.ir import (
    Buffer,
    BufferLoad,
    Cast,
    DataType,
    Expr,
    Let,
    Select,
    Var,
    cast,
    const,
    logical_and,
    logical_not,
    logical_or,
)
from loopwright.ir import intrinsics as tir
from loopwright.ir.operators import truncdiv, truncmod

SIGNED = "int8 int16 int32 int64".split()
UNSIGNED = "uint8 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATS]


class Axis(NamedTuple):
    """A value that runs over 0 … extent - 1 in the body of a stage."""

    var: Expr
    extent: int


class Program(Protocol):
    """What values need to know of the program they are for."""

    rng: random.Random
    inputs: list[Buffer]
    approximate: set[Buffer]

    def index(self, value: int) -> Expr: ...

    def dtype(self) -> str: ...

    def name(self, prefix: str) -> str: ...


class Values:
    """Random expressions over the axes of a stage and the buffers it may read."""

    def __init__(
        self, program: Program, axes: list[Axis], readable: list[Buffer], own: list[Buffer], cell: list[Expr]
    ) -> None:
        self.program = program
        self.rng = program.rng
        self.axes = axes
        self.readable = [b for b in readable if self.is_indexable(b)]
        self.own = own  # buffers read at `cell` only
        self.cell = cell
        self.lets: list[Var] = []

    def is_indexable(self, buffer: Buffer) -> bool:
        """An empty dimension can only be indexed by an axis that never runs."""
        empty = any(axis.extent == 0 for axis in self.axes)
        return empty or 0 not in shape_of(buffer)

    # --- leaves ---

    def index(self, extent: int) -> Expr:
        """An index that stays within 0 … extent - 1."""
        rng, zero = self.rng, self.program.index(0)
        fitting = [axis for axis in self.axes if axis.extent <= extent]
        if extent == 0:
            return rng.choice(fitting).var if fitting else zero
        roll = rng.random()
        if fitting and roll < 0.7:
            return rng.choice(fitting).var
        if self.axes and roll < 0.9:
            axis = rng.choice(self.axes)
            if roll < 0.8:
                return axis.var % extent
            if axis.extent == extent:
                return self.program.index(extent - 1) - axis.var
            if axis.extent > extent:
                return axis.var // -(-axis.extent // extent)
            return tir.minimum(axis.var, self.program.index(extent - 1))
        return self.program.index(rng.randrange(extent))

    def load(self, buffer: Buffer) -> Expr:
        if any(buffer is one for one in self.own):
            return BufferLoad(buffer, tuple(self.cell))
        return BufferLoad(buffer, tuple([self.index(extent) for extent in shape_of(buffer)]))

    def guarded(self, dtype: DataType, exact: bool) -> Expr | None:
        """The neighbour of an element where there is one."""
        found = [b for b in self.readable if b.dtype is dtype and len(b.shape) == 1 and self.may_use(b, exact)]
        if not found or not self.axes:
            return None
        buffer, axis = self.rng.choice(found), self.rng.choice(self.axes)
        if axis.extent > shape_of(buffer)[0] + 1:
            return None
        return tir.if_then_else(axis.var > 0, BufferLoad(buffer, (axis.var - 1,)), self.literal(dtype))

    def literal(self, dtype: DataType) -> Expr:
        if dtype.is_bool:
            return const(self.rng.random() < 0.5)
        if dtype.is_float:
            return const(self.rng.randrange(-32, 33) / 4, dtype)
        return const(self.rng.randrange(0 if dtype.is_unsigned else -9, 10), dtype)

    def may_use(self, buffer: Buffer, exact: bool) -> bool:
        return not exact or buffer not in self.program.approximate

    def leaf(self, dtype: DataType, exact: bool) -> Expr:
        usable = [b for b in (*self.readable, *self.own, *self.own) if self.may_use(b, exact)]
        same = [b for b in usable if b.dtype is dtype]
        named = [v for v in self.lets if v.dtype is dtype and not exact]
        roll = self.rng.random()
        if named and roll < 0.5:
            return self.rng.choice(named)
        if same and roll < 0.75:
            return self.load(self.rng.choice(same))
        other = [b for b in usable if not (b.dtype.is_float and not dtype.is_float)]
        if other and roll < 0.88:
            return self.convert(self.load(self.rng.choice(other)), dtype)
        if self.axes and roll < 0.93 and not dtype.is_bool:
            return cast(self.rng.choice(self.axes).var, dtype)
        return self.literal(dtype)

    def convert(self, value: Expr, dtype: DataType) -> Expr:
        if value.dtype is dtype:
            return value
        if dtype.is_bool:
            return (
                Cast(dtype, value)
                if value.dtype.is_int and self.rng.random() < 0.5
                else value != cast(const(0), value.dtype)
            )
        return cast(value, dtype)

    def small_float(self) -> Expr:
        """A float of at most 8 in magnitude, exact: a literal, or an element of an input that no stage changes."""
        floats = [b for b in self.readable if b.dtype.is_float and any(b is one for one in self.program.inputs)]
        return self.load(self.rng.choice(floats)) if floats else self.literal(DataType("float32"))

    # --- compound values ---

    def make(self, dtype: str | DataType, depth: int, exact: bool) -> Expr:
        dtype = DataType(dtype)
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(dtype, exact)
        if dtype.is_bool:
            return self.condition(depth)
        roll = self.rng.random()
        if roll < 0.06:
            chosen = self.guarded(dtype, exact)
            if chosen is not None:
                return chosen
        if roll < 0.14:
            choose: Any = self.rng.choice((tir.if_then_else, Select))
            return choose(
                self.condition(depth - 1), self.make(dtype, depth - 1, exact), self.make(dtype, depth - 1, exact)
            )
        if roll < 0.18:
            var = Var(self.program.name("y"), dtype)
            value, inner = self.make(dtype, depth - 1, exact), self.make(dtype, depth - 1, exact)
            return Let(var, value, var + inner if self.rng.random() < 0.7 else tir.maximum(inner, var))
        if roll < 0.28:
            source = DataType(self.program.dtype())
            if not (source.is_float and not dtype.is_float):
                return self.convert(self.make(source, depth - 1, exact), dtype)
        return self.float_value(dtype, depth, exact) if dtype.is_float else self.int_value(dtype, depth, exact)

    def int_value(self, dtype: DataType, depth: int, exact: bool) -> Expr:
        rng = self.rng
        a = self.make(dtype, depth - 1, exact)
        form = rng.randrange(13)
        if form < 3:
            b = self.make(dtype, depth - 1, exact)
            return (a + b, a - b, a * b)[form]
        if form < 5:
            b = self.make(dtype, depth - 1, exact)
            return (tir.minimum, tir.maximum)[form - 3](a, b)
        if form < 8:
            b = self.make(dtype, depth - 1, exact)
            return (a & b, a | b, a ^ b)[form - 5]
        if form == 8:
            divisor = rng.choice((1, 2, 3, 5, 7) if dtype.is_unsigned else (1, 2, 3, 5, 7, -2, -3))
            divide: Any = rng.choice((lambda x, y: x // y, lambda x, y: x % y, truncdiv, truncmod))
            return divide(a, const(divisor, dtype))
        if form == 9:
            amount = (
                const(rng.randrange(dtype.bits), dtype)
                if rng.random() < 0.6
                else self.shift_amount(dtype, depth, exact)
            )
            return a << amount if rng.random() < 0.5 else a >> amount
        if form == 10:
            return ~a if rng.random() < 0.5 else -a
        if form == 11:
            return tir.abs(a)
        value = self.small_float()
        return Cast(dtype, tir.abs(value) if dtype.is_unsigned else value)

    def shift_amount(self, dtype: DataType, depth: int, exact: bool) -> Expr:
        return self.make(dtype, depth - 1, exact) & const(dtype.bits - 1, dtype)

    def float_value(self, dtype: DataType, depth: int, exact: bool) -> Expr:
        rng = self.rng
        a = self.make(dtype, depth - 1, exact)
        form = rng.randrange(10 if exact else 16)
        if form < 5:
            b = self.make(dtype, depth - 1, exact)
            return (a + b, a - b, a * b, tir.minimum(a, b), tir.maximum(a, b))[form]
        if form == 5:
            return a / const(rng.choice((0.5, 2.0, 4.0, -8.0, 3.0)), dtype)
        if form == 6:
            return a / (tir.abs(self.make(dtype, depth - 1, exact)) + const(1.0, dtype))
        if form == 7:
            return tir.abs(a) if rng.random() < 0.5 else -a
        if form == 8:
            step: Any = rng.choice((tir.floor, tir.ceil, tir.trunc, tir.nearbyint))
            return step(self.make(dtype, depth - 1, True))
        if form == 9:
            return tir.sqrt(tir.abs(a))
        one = const(1.0, dtype)
        return (
            lambda: tir.exp(tir.minimum(a, const(4.0, dtype))),
            lambda: tir.log(tir.abs(a) + one),
            lambda: rng.choice((tir.tanh, tir.sigmoid, tir.erf, tir.atan))(a),
            lambda: rng.choice((tir.sin, tir.cos))(tir.maximum(tir.minimum(a, const(8.0, dtype)), const(-8.0, dtype))),
            lambda: tir.rsqrt(tir.abs(a) + one),
            lambda: tir.pow(
                tir.minimum(tir.abs(a), const(8.0, dtype)) + one, const(rng.choice((0.5, 1.5, 2.0)), dtype)
            ),
        )[form - 10]()

    def condition(self, depth: int) -> Expr:
        """A truth value; it is always exact."""
        rng = self.rng
        form = rng.random()
        if depth > 1 and form < 0.3:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice((logical_and, logical_or))(a, b)
        if depth > 1 and form < 0.4:
            return logical_not(self.condition(depth - 1))
        if form < 0.5:
            return self.leaf(DataType("bool"), True)
        dtype = rng.choice(["int32", "float32", *SIGNED, *UNSIGNED, *FLOATS])
        a, b = self.make(dtype, depth - 1, True), self.make(dtype, depth - 1, True)
        return rng.choice(
            (lambda: a < b, lambda: a <= b, lambda: a > b, lambda: a >= b, lambda: a.equal(b), lambda: a != b)
        )()


def shape_of(buffer: Buffer) -> tuple[int, ...]:
    """The extents of a buffer, which are all known here."""
    return tuple(int(extent) for extent in buffer.shape)  # type: ignore[call-overload]
