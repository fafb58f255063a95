"""Random hybrid functions: as Python, in the evaluator and natively, they give the same bits."""

from __future__ import annotations

import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.evaluator import evaluate
from loopwright.te.hybrid import HybridModule

SIZE = 5


class _Writer:
    """Writes one random function of `a` (int32) and `x` (float32), both of SIZE × SIZE."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.scalars: dict[str, str] = {}  # name → type
        self.count = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def text(self) -> str:
        lines = ["def f(a, x):", f"    p = output_tensor(({SIZE}, {SIZE}), 'int32')"]
        lines.append(f"    q = output_tensor(({SIZE}, {SIZE}), 'float32')")
        lines.append(f"    t = allocate(({SIZE},), 'float32')")
        self.lines = lines
        lines += [f"    for i in range({SIZE}):", "        t[i] = 0.0", f"        for j in range({SIZE}):"]
        lines += ["            p[i, j] = 0", "            q[i, j] = 0.0"]
        for _ in range(self.random.randint(1, 3)):
            self.statement(1, 3)
        return "\n".join([*self.lines, "    return p, q", ""])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def body(self, depth: int, budget: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, budget - 1)

    def statement(self, depth: int, budget: int) -> None:
        kinds = ["store", "store", "scalar", "update"] + ["loop", "loop", "if", "scope"] * (budget > 0)
        kind = self.random.choice(kinds)
        saved = dict(self.scalars)
        if kind == "loop":
            low, word = self.random.randint(0, 2), self.random.choice(["range", "range", "unroll", "const_range"])
            var = self.name("v")
            self.line(depth, f"for {var} in {word}({f'{low}, ' * (low > 0)}{self.random.randint(low, SIZE)}):")
            self.loops.append(var)
            self.body(depth + 1, budget)
            self.loops.pop()
            self.scalars = saved
        elif kind == "if":
            self.line(depth, f"if {self.condition(2)}:")
            self.body(depth + 1, budget)
            self.scalars = dict(saved)  # a name of one branch may have no value after it
            if self.random.random() < 0.6:
                self.line(depth, f"elif {self.condition(1)}:" if self.random.random() < 0.3 else "else:")
                self.body(depth + 1, budget)
                self.scalars = dict(saved)
        elif kind == "scope":
            var, memory = self.name("v"), self.name("m")
            self.line(depth, f"for {var} in range({self.random.randint(1, SIZE)}):")
            self.loops.append(var)
            self.line(depth + 1, f"{memory} = allocate((2,), 'int32', 'local')")
            self.line(depth + 1, f"{memory}[0] = {self.integer(1)}")
            self.line(depth + 1, f"{memory}[1] = {memory}[0] + {self.integer(1)}")
            self.line(depth + 1, f"p[{self.index()}, {self.index()}] = {memory}[{self.random.randint(0, 1)}]")
            self.loops.pop()
        elif kind == "scalar":
            name, dtype = self.name("s"), self.random.choice(["int32", "float32"])
            self.line(depth, f"{name} = {self.value(dtype, 2)}")
            self.scalars[name] = dtype
            self.line(depth, f"{name} {self.random.choice('+-')}= {self.value(dtype, 1)}")
        elif kind == "update" and self.scalars:
            name = self.random.choice(list(self.scalars))
            self.line(depth, f"{name} = {self.value(self.scalars[name], 2)}")
        else:
            self.store(depth)

    def store(self, depth: int) -> None:
        if self.random.random() < 0.2:
            self.line(depth, f"t[{self.index()}] = {self.value('float32', 2)}")
            return
        target, dtype = self.random.choice([("p", "int32"), ("q", "float32")])
        sign = self.random.choice(["=", "=", "+=", "-="])
        self.line(depth, f"{target}[{self.index()}, {self.index()}] {sign} {self.value(dtype, 3)}")

    def index(self) -> str:
        if not self.loops or self.random.random() < 0.3:
            return str(self.random.randrange(SIZE))
        var = self.random.choice(self.loops)
        return self.random.choice([var, var, f"{SIZE - 1} - {var}", f"({var} + {self.random.randint(1, 9)}) % {SIZE}"])

    def value(self, dtype: str, depth: int) -> str:
        return self.integer(depth) if dtype == "int32" else self.number(depth)

    def integer(self, depth: int) -> str:
        choice = self.random.randrange(9 if depth else 3)
        if choice == 0:
            return str(self.random.randint(-3, 9))
        if choice == 1:
            names = [*self.loops, *[name for name, dtype in self.scalars.items() if dtype == "int32"]]
            return self.random.choice(names) if names else "2"
        if choice == 2:
            return f"{self.random.choice('ap')}[{self.index()}, {self.index()}]"
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        if choice == 3:
            return f"({a} // {self.random.choice([2, 3, -2])})"
        if choice == 4:
            return f"({a} % {self.random.choice([2, 3, 5])})"
        if choice == 5:
            return f"{self.random.choice(['min', 'max'])}({a}, {b})"
        if choice == 6:
            return f"({a} if {self.condition(depth - 1)} else {b})"
        return f"({a} {self.random.choice('+-')} {b})"

    def number(self, depth: int) -> str:
        choice = self.random.randrange(8 if depth else 3)
        if choice == 0:
            return repr(self.random.choice([0.0, 0.5, -1.25, 2.0, 3.5]))
        if choice == 1:
            names = [name for name, dtype in self.scalars.items() if dtype == "float32"]
            return self.random.choice(names) if names else f"t[{self.index()}]"
        if choice == 2:
            return f"{self.random.choice('xq')}[{self.index()}, {self.index()}]"
        a, b = self.number(depth - 1), self.number(depth - 1)
        if choice == 3:
            return f"{self.random.choice(['min', 'max'])}({a}, {b})"
        if choice == 4:
            return f"float32({self.integer(depth - 1)})"
        if choice == 5:
            return f"({a} if {self.condition(depth - 1)} else {b})"
        return f"({a} {self.random.choice('+-*')} {b})"

    def condition(self, depth: int) -> str:
        sign = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        pair = (self.integer(1), self.integer(1)) if self.random.random() < 0.6 else (self.number(1), self.number(1))
        test = f"{pair[0]} {sign} {pair[1]}"
        if depth and self.random.random() < 0.4:
            test = f"({test}) {self.random.choice(['and', 'or'])} {self.condition(depth - 1)}"
        return f"not ({test})" if self.random.random() < 0.15 else test


def _arguments(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-9, 9, (SIZE, SIZE)).astype("int32")
    return a, rng.integers(-8, 8, (SIZE, SIZE)).astype("float32") / np.float32(4)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(40))
def test_all_ways_of_running_agree(seed):
    text = _Writer(seed).text()
    function = HybridModule(text)
    a, x = _arguments(seed)
    with np.errstate(all="ignore"):
        expected = function(a, x)
    A, X = te.placeholder(a.shape, "int32", "a"), te.placeholder(x.shape, "float32", "x")
    outputs = function(A, X)
    program = te.create_prim_func([A, X, *outputs])
    got = [np.zeros_like(a), np.zeros_like(x)]
    evaluate(program, a, x, *got)
    for k, name in enumerate("pq"):
        np.testing.assert_array_equal(got[k], expected[k], f"{name} in the evaluator\n{text}")
    written = te.hybrid.build(None, [A, X], outputs)
    with np.errstate(all="ignore"):
        read_back = written(a, x)
    for k, name in enumerate("pq"):
        np.testing.assert_array_equal(read_back[k], expected[k], f"{name} written out\n{written.get_source()}")
    if seed % 4 == 0 and "*" not in text:  # multiply-adds round once where Python rounds twice
        again = [np.zeros_like(a), np.zeros_like(x)]
        lw.build(program)(a, x, *again)
        for k, name in enumerate("pq"):
            np.testing.assert_array_equal(again[k], expected[k], f"{name} in native code\n{text}")
