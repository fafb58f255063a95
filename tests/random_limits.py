"""Random valid programs near the limits of integers: scalars, literals, loop bounds and casts that may leave them.

`limit_function(seed)` is a program of `random_programs.py` whose values also use int32 and int64 parameters, literals
at the ends of types, products of both with axes, and indices `(…) % extent` of such; programs without blocks have loops
whose bounds are loaded from memory that their bodies change. `limit_arguments(function, seed)` are arrays, and then
numbers.

A program whose index arithmetic leaves 64 bits where the number counts has no result: `runs` says whether one has.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import IndexTooLarge, IntegerDivisionByZero
from loopwright.ir import (
    BufferLoad,
    BufferStore,
    DataType,
    Expr,
    For,
    ForKind,
    LetStmt,
    PrimFunc,
    Select,
    Stmt,
    Var,
    cast,
    const,
    seq,
)
from loopwright.ir import intrinsics as tir
from loopwright.ir.operators import truncdiv, truncmod
from tests.agreement import copies
from tests.random_programs import Program, random_arguments
from tests.random_values import Axis, Values, shape_of

NUMBERS = [0, 1, -1, 3, 7, 46341, 65536, -65536]


def limit_function(seed: int, name: str = "main") -> PrimFunc:
    """A valid program; the same one for the same seed."""
    return _LimitProgram(random.Random(seed), False).make(name)


def limit_arguments(function: PrimFunc, seed: int) -> list[Any]:
    """Arrays, then a number for each scalar parameter."""
    rng = random.Random(seed)
    given: list[Any] = list(random_arguments(function, seed))
    for position, buffer in enumerate(function.argument_buffers()):
        if buffer.name == "N":  # loops run to what is in here
            given[position] = np.array([rng.randrange(0, 4) for _ in range(4)], "int32")
    for param in function.params:
        if param not in function.buffer_map:
            low, high = param.dtype.lowest, param.dtype.highest
            if param.dtype.bits == 64:
                low, high = -(1 << 33), 1 << 33
            ends = [low, low + 1, high, high - 1, high // 2, low // 3]
            given.append(rng.choice(ends if rng.random() < 0.6 else NUMBERS))
    return given


def runs(function: PrimFunc, arguments: list[Any]) -> bool:
    """Whether the program has a result on these arguments."""
    try:
        evaluate(function, *copies(arguments))
    except (IndexTooLarge, IntegerDivisionByZero):
        return False
    return True


class _LimitProgram(Program):
    def make(self, name: str) -> PrimFunc:
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            self.scalars.append(Var(self.name("n"), self.rng.choice(("int32", "int32", "int64"))))
        self.counts = self.buffer("N", (4,), "int32")
        self.inputs.append(self.counts)
        self.plain_programs = 0.6  # those have loops that run to what was loaded
        return super().make(name)

    def values(self, *parts: Any) -> Values:
        return _LimitValues(self, *parts)

    def elementwise(self, blocks: bool, is_last: bool) -> list[Stmt]:
        made = super().elementwise(blocks, is_last)
        if blocks or not self.chance(0.5):
            return made
        writable = [b for b in (*self.allocated, *self.outputs) if b in self.readable and 0 not in shape_of(b)]
        return [*made, *self.counted(self.rng.choice(writable))] if writable else made

    def counted(self, out: Any) -> list[Stmt]:
        """A loop from one loaded number to another, whose body changes both, and what it has computed."""
        bounds = self.buffer("T", (2,), "int32")
        self.allocated.append(bounds)

        def at(place: int) -> Expr:
            return BufferLoad(bounds, (self.index(place),))

        def number(axes: list[Axis]) -> Expr:
            return BufferLoad(self.counts, (self.values(axes, [], [], []).index(4),))

        start = [BufferStore(bounds, number([]), (self.index(place),)) for place in range(2)]
        var = Var(self.name("j"), "int32")
        axes = [Axis(cast(var, self.index_dtype) % self.index(3), 3)]
        values = self.values(axes, [b for b in self.readable if b is not out], [], [])
        cell = [values.index(extent) for extent in shape_of(out)]
        store: Stmt = BufferStore(out, values.make(str(out.dtype), 2, True), cell)
        if self.chance(0.3):
            name = Var(self.name("z"), "int32")
            store = LetStmt(name, var * at(1) + number(axes), BufferStore(out, cast(name, out.dtype), cell))
        changes = [BufferStore(bounds, number(axes), (self.index(place),)) for place in range(2) if self.chance(0.7)]
        body = [*changes, store] if self.chance(0.5) else [store, *changes]
        low = at(0) if self.chance(0.6) else const(0, "int32")
        return [*start, For(var, low, at(1), ForKind.SERIAL, seq(body))]


class _LimitValues(Values):
    def big(self, dtype: DataType) -> Expr:
        """A literal near the limits of its type."""
        low, high = dtype.lowest, dtype.highest
        if dtype.bits == 64:
            low, high = max(low, -(1 << 33)), 1 << 33
        fitting = [n for n in (low, low + 1, high, high - 1, high // 2, 46341, 65536) if low <= n <= high]
        return const(self.rng.choice(fitting), dtype)

    def literal(self, dtype: DataType) -> Expr:
        if dtype.is_int and self.rng.random() < 0.35:
            return self.big(dtype)
        return super().literal(dtype)

    def variable(self, dtype: DataType) -> Expr:
        """Index arithmetic of a type: scalars and axes, and what they make together."""
        scalars = [v for v in self.program.scalars if v.dtype is dtype]  # type: ignore[attr-defined]
        axes = [axis.var for axis in self.axes if axis.var.dtype is dtype]
        leaves = [*scalars, *scalars, *axes] or [cast(self.rng.choice(self.program.scalars), dtype)]  # type: ignore[attr-defined]
        a: Expr = self.rng.choice(leaves)
        roll = self.rng.random()
        if roll < 0.3:
            return a
        b = self.rng.choice([*leaves, self.literal(dtype)])
        return a + b if roll < 0.5 else a - b if roll < 0.65 else a * b if roll < 0.9 else a * b + self.literal(dtype)

    def tree(self, dtype: DataType, depth: int) -> Expr:
        """Index arithmetic with what needs the number itself: quotients, remainders, the lesser of two, choices."""
        a = self.variable(dtype) if depth <= 1 else self.tree(dtype, depth - 1)
        form = self.rng.randrange(8)
        if form < 3:
            divide: Any = self.rng.choice((lambda x, y: x // y, lambda x, y: x % y, truncdiv, truncmod))
            return divide(a, const(self.rng.choice((2, 3, 7, -3, 1000)), dtype))
        if form < 5:
            b = self.variable(dtype)
            return tir.minimum(a, b) if form == 3 else tir.maximum(a, b)
        if form == 5:
            choose: Any = self.rng.choice((tir.if_then_else, Select))
            return choose(self.condition(1), a, self.variable(dtype))
        return a + self.variable(dtype) if form == 6 else a

    def make(self, dtype: str | DataType, depth: int, exact: bool) -> Expr:
        kind = DataType(dtype)
        if str(kind) in ("int32", "int64") and self.rng.random() < 0.35:
            return self.tree(kind, self.rng.choice((1, 2)))
        return super().make(kind, depth, exact)

    def condition(self, depth: int) -> Expr:
        if self.rng.random() < 0.4:
            dtype = DataType(self.rng.choice(("int32", "int32", "int64")))
            a, b = self.variable(dtype), self.variable(dtype)
            if self.rng.random() < 0.4:
                a = self.tree(dtype, 1)
            return self.rng.choice((lambda: a < b, lambda: a <= b, lambda: a >= b, lambda: a.equal(b)))()
        return super().condition(depth)

    def leaf(self, dtype: DataType, exact: bool) -> Expr:
        if str(dtype) in ("int32", "int64") and self.rng.random() < 0.4:
            return self.variable(dtype)
        if not dtype.is_bool and self.rng.random() < 0.2:
            return cast(self.variable(DataType(self.rng.choice(("int32", "int64")))), dtype)
        return super().leaf(dtype, exact)

    def index(self, extent: int) -> Expr:
        if extent > 0 and self.rng.random() < 0.15:
            wild = self.variable(DataType(self.rng.choice(("int32", "int32", "int64"))))
            if self.rng.random() < 0.3:
                wild = wild // self.rng.choice((2, 3, 7))
            return cast(wild % const(extent, wild.dtype), DataType(str(self.program.index(0).dtype)))
        return super().index(extent)
