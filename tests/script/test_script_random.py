"""Random texts made of the forms that people write: sugar, scopes, vectors, macros, nested statements.

Unlike `tests/random_programs.py`, which makes nodes, this makes text, so that the reader's own rules are used: scopes
over the rest of a block, slices as vectors, conversions at stores, starred names. Each text is read, written in both
styles, read again, and then runs in the evaluator and as native code.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import loopwright
from loopwright import ir
from loopwright.evaluator import evaluate
from loopwright.script import from_source
from loopwright.script import tir as T

SEEDS = range(60)


@T.macro
def add_to(A, i, x):
    twice = x + x
    A[i] = A[i] + twice


class Texts:
    """Statements on A (float32[16]), K (int32[16]) and the number n; every index is in bounds."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = 0

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def index(self, loops: list[str]) -> str:
        return self.rng.choice(
            [str(self.rng.randrange(16)), *loops, *[f"({one} + {self.rng.randrange(8)})" for one in loops]]
        )

    def number(self, loops: list[str], lets: list[str]) -> str:
        load = f"A[{self.index(loops)}]"
        forms = [
            load,
            "T.float32(0.5)",
            "1.5",
            *lets,
            f"T.max({load}, 0.25)",
            f"({load} + 2)",
            f"({load} - 0.5 * {load})",
        ]
        forms += [f"T.if_then_else(K[{self.index(loops)}] > n, {load}, 0.0)", f"({load} if 0 <= n < 9 else 1.0)"]
        forms += [f"T.Select(n == 3 or n > 5, {load}, T.float32(2))", f"T.Cast('float32', K[{self.index(loops)}])"]
        return self.rng.choice(forms)

    def block(self, depth: int, loops: list[str], lets: list[str]) -> list[str]:
        lines: list[str] = []
        lets = list(lets)
        for _ in range(self.rng.randint(1, 3)):
            lines += self.statement(depth, loops, lets)
        return lines

    def inside(self, header: str, depth: int, loops: list[str], lets: list[str]) -> list[str]:
        return [header, *["    " + line for line in self.block(depth - 1, loops, lets)]]

    def statement(self, depth: int, loops: list[str], lets: list[str]) -> list[str]:
        kind = self.rng.randrange(14 if depth > 0 else 6)
        index, value = self.index(loops), self.number(loops, lets)
        if kind == 0:
            return [f"A[{index}] = {value}"]
        if kind == 1:
            return [f"A[{index}] {self.rng.choice(['+=', '-=', '*='])} {value}"]
        if kind == 2:
            low, lanes = self.rng.randrange(8), self.rng.choice([2, 4])
            return [f"A[{low}:{low + lanes}] = A[{8 - lanes}:8] * 2.0 + A[0:{2 * lanes}:2]"]
        if kind == 3:
            name = self.name("x")
            lets.append(name)
            return [f"{name}{self.rng.choice(['', ': T.float32'])} = A[{index}] + {value}"]
        if kind == 4:
            return [f"K[{index}] = K[{self.index(loops)}] {self.rng.choice(['+', '*', '//', '%', '&', '^'])} 3"]
        if kind == 5:
            return [f"add_to(A, {index}, A[{self.index(loops)}])"]
        if kind in (6, 7):
            i = self.name("i")
            loop = self.rng.choice(
                [f"range({self.rng.randint(0, 7)})", f"T.serial(1, {self.rng.randint(1, 8)})", "T.unroll(3)"]
            )
            return self.inside(f"for {i} in {loop}:", depth, [*loops, i], lets)
        if kind == 8:
            i, j = self.name("i"), self.name("j")
            return self.inside(f"for {i}, *{j} in T.grid(2, 3, 2):", depth, [*loops, i, f"{j}[0]", f"{j}[1]"], lets)
        if kind == 9:
            lines = self.inside(f"if K[{index}] > n and not A[0] < A[1]:", depth, loops, lets)
            return lines + (self.inside("else:", depth, loops, lets) if self.rng.random() < 0.5 else [])
        if kind == 10:
            name = self.name("x")
            return self.inside(f"with T.LetStmt({value} * A[0]) as {name}:", depth, loops, [*lets, name])
        if kind == 11:
            return self.inside("with T.attr(A.data, 'note', n):", depth, loops, lets)
        if kind == 12:
            name = self.name("C")
            inner = self.block(depth - 1, loops, lets)
            return [
                f"with T.decl_buffer((2,)) as {name}:",
                f"    {name}[0] = A[{index}]",
                *["    " + line for line in inner],
                f"    A[{index}] = {name}[0]",
            ]
        name = self.name("v")
        return [
            f"for {name}_0 in range(4):",
            f"    with T.block({name!r}):",
            f"        {name} = T.axis.opaque(4, {name}_0)",
            f"        A[{name}] = A[{name} + 4] + T.float32(1)",
        ]

    def text(self) -> str:
        lines = [line for _ in range(4) for line in self.statement(3, [], [])]
        header = (
            '@T.prim_func\ndef main(A: T.Buffer((16,)), K: T.Buffer((16,), "int32"), n: T.int32):\n    T.evaluate(n)'
        )
        return "\n".join([header, *["    " + line for line in lines]])


def program(seed: int) -> ir.PrimFunc:
    return from_source(Texts(seed).text(), {"add_to": add_to})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_texts_read_back_as_themselves(seed):
    func = program(seed)
    for options in ({}, {"syntax_sugar": False}):
        ir.assert_structural_equal(from_source(func.script(**options)), func, block_names=True)


@pytest.fixture(scope="module")
def built():
    functions = {f"p{seed}": program(seed).with_attr("global_symbol", f"p{seed}") for seed in SEEDS}
    return loopwright.build(ir.IRModule(functions))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_evaluator_and_native_code_agree(seed, built):
    random_numbers = np.random.default_rng(seed)
    a = (random_numbers.integers(-16, 17, 16) / 4).astype("float32")
    k = random_numbers.integers(-9, 10, 16).astype("int32")
    expected, found = (a.copy(), k.copy()), (a.copy(), k.copy())
    evaluate(program(seed), *expected, seed % 7)
    built[f"p{seed}"](*found, seed % 7)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
