"""Random nests through the whole pipeline: split loops with tails, guards, lets, every loop kind and data type."""

from __future__ import annotations

import random

import pytest

from loopwright.ir import (
    Block,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    LetStmt,
    PrimFunc,
    Range,
    Select,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    logical_and,
    seq,
)
from loopwright.ir.intrinsics import if_then_else, maximum, minimum
from loopwright.ir.stmt import BlockRealize
from loopwright.runtime.dtype import DataType
from tests.transform.before_after import PLAIN, same_at_every_stage
from tests.transform.test_pipeline import keeps_the_contract

DTYPES = ["float32", "float32", "int32", "int8", "uint8", "float16", "bfloat16", "float64", "int64"]


class Program:
    """One random function that writes a buffer from two others, element by element or by reduction."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dtype = DataType(self.random.choice(DTYPES))
        self.shape = [self.random.choice([1, 2, 3, 4, 5, 7, 8]) for _ in range(self.random.randint(1, 3))]
        self.inputs = [decl_buffer(self.shape, self.dtype, name=name) for name in "AB"]
        self.output = decl_buffer(self.shape, self.dtype, name="C")

    def value(self, axes: list[Var], depth: int = 2) -> Expr:
        choose = self.random
        if depth == 0 or choose.random() < 0.2:
            return choose.choice([self.load(axes), self.load(axes), const(choose.randint(0, 3), self.dtype)])
        kind = choose.randint(0, 7)
        if kind == 0:
            return if_then_else(self.condition(axes), self.value(axes, depth - 1), self.value(axes, depth - 1))
        if kind == 1:
            return Select(self.condition(axes), self.value(axes, depth - 1), self.value(axes, depth - 1))
        if kind == 2:
            return cast(cast(choose.choice(axes), DataType("int32")) * 3, self.dtype)
        if kind == 3:
            return self.shifted(axes)
        a, b = self.value(axes, depth - 1), self.value(axes, depth - 1)
        return [a + b, a * b, a - b, maximum(a, b), minimum(a, b)][choose.randint(0, 4)]

    def load(self, axes: list[Var]) -> Expr:
        indices = []
        for axis, extent in zip(axes, self.shape, strict=True):
            indices.append(self.random.choice([axis, axis, extent - 1 - axis, (axis + 1) % extent, axis // 2]))
        return self.random.choice(self.inputs)[tuple(indices)]

    def shifted(self, axes: list[Var]) -> Expr:
        """A load that only its guard keeps inside."""
        step = self.random.choice([-2, -1, 1, 2])
        inside = [axis + step for axis in axes]
        guard = [condition for at, n in zip(inside, self.shape, strict=True) for condition in (at >= 0, at < n)]
        return if_then_else(logical_and(*guard), self.inputs[0][tuple(inside)], const(1, self.dtype))

    def condition(self, axes: list[Var]) -> Expr:
        choose = self.random
        axis = choose.choice(axes)
        limit = choose.randint(0, 8)
        return choose.choice(
            [axis < limit, axis >= limit, axis * 2 + 1 <= limit, axis.equal(limit), sum(axes[1:], axes[0]) < limit]
        )

    def nest(self, axes: list[Var], body: Block) -> Stmt:
        """Loops around the block, each axis split or not, with a guard where the parts do not fit."""
        loops: list[tuple[Var, int]] = []
        bindings: list[Expr] = []
        guards: list[Expr] = []
        for axis, extent in zip(axes, self.shape, strict=True):
            if self.random.random() < 0.5:
                inner_extent = self.random.choice([2, 3, 4])
                outer, inner = Var(f"{axis.name}_0"), Var(f"{axis.name}_1")
                loops += [(outer, -(-extent // inner_extent)), (inner, inner_extent)]
                bindings.append(outer * inner_extent + inner)
                if extent % inner_extent:
                    guards.append(outer * inner_extent + inner < extent)
            else:
                loop = Var(axis.name[1:])
                loops.append((loop, extent))
                bindings.append(loop)
        kinds = [self.random.choice([ForKind.SERIAL, ForKind.SERIAL, ForKind.UNROLLED]) for _ in loops]
        kinds[0] = self.random.choice([ForKind.SERIAL, ForKind.PARALLEL])
        kinds[-1] = self.random.choice([ForKind.SERIAL, ForKind.VECTORIZED])
        statement: Stmt = BlockRealize(bindings, logical_and(True, *guards), body)
        for (var, extent), kind in zip(reversed(loops), reversed(kinds), strict=True):
            statement = For(var, 0, extent, kind, statement)
        return statement

    def block(self, name: str) -> Stmt:
        axes = [Var(f"v{letter}") for letter in "ijk"[: len(self.shape)]]
        domains = [IterVar(Range(0, n), axis, IterType.DataPar) for axis, n in zip(axes, self.shape, strict=True)]
        body: Stmt = BufferStore(self.output, self.value(axes), axes)
        extra = self.random.randint(0, 3)
        if extra == 0:
            body = IfThenElse(self.condition(axes), body)
        elif extra == 1:
            x = Var("x", self.dtype)
            body = LetStmt(x, self.value(axes), BufferStore(self.output, x + self.load(axes), axes))
        elif extra == 2:
            body = seq([body, BufferStore(self.output, self.output[tuple(axes)] + self.load(axes), axes)])
        return self.nest(axes, Block(domains, (), (), name, body))

    def function(self) -> PrimFunc:
        blocks = [self.block(f"C{k}") for k in range(self.random.randint(1, 2))]
        root = Block((), (), (), "root", seq(blocks))
        return PrimFunc([*self.inputs, self.output], BlockRealize((), const(True), root))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_values_at_every_stage(seed):
    keeps_the_contract(same_at_every_stage(Program(seed).function(), PLAIN))
