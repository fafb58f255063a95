"""Random vectorized loops: nested loops, lets, whiles, guards and indices by lane and by data, memory of lanes."""

from __future__ import annotations

import random

import numpy as np

LANES = 8
_INDICES = (
    "i", "i", "i", "7 - i", "(i + 1) % 8", "i // 2", "i * 2 % 8", "3", "i + 8", "15 - i", "I[i]", "I[i] % 4",
    "I[i] + 8", "(i + I[0]) % 8", "B[i] % 8", "i * i % 8",
)  # fmt: skip
_CONDITIONS = (
    "S[0] > 0", "S[1] > 0", "S[i] > 0", "i < 5", "i % 2 == 0", "A[i] > B[i]", "B[0] > 3", "I[i] < i", "n > 2",
)  # fmt: skip


class _Body:
    """Writes statements; every variable has a name of its own."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.names = 0

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def index(self, around: list[str]) -> str:
        index = self.choose.choice(_INDICES)
        return f"({index} + {self.choose.choice(around)}) % 16" if around and self.choose.random() < 0.3 else index

    def value(self, around: list[str]) -> str:
        kind = self.choose.randrange(7)
        if kind == 0:
            return f"A[{self.index(around)}]"
        if kind <= 2:
            return f"B[{self.index(around)}] * 3 + i"
        if kind == 3:
            return f"C[{self.index(around)}] + 1"
        if kind == 4:
            condition = self.choose.choice(_CONDITIONS)
            return f"T.if_then_else({condition}, B[{self.index(around)}], A[i] - 1)"
        if kind == 5:
            return f"T.Select({self.choose.choice(_CONDITIONS)}, C[{self.index(around)}], 7)"
        return self.choose.choice([*around, "i", "5"])

    def statements(self, depth: int, around: list[str]) -> list[str]:
        lines: list[str] = []
        for _ in range(self.choose.randint(1, 2)):
            kind = self.choose.random()
            if not depth or kind < 0.4:
                lines.append(f"{self.choose.choice('BC')}[{self.index(around)}] = {self.value(around)}")
                continue
            inner = around
            if kind < 0.55:
                lines.append(f"if {self.choose.choice(_CONDITIONS)}:")
            elif kind < 0.65:
                inner = [*around, self.fresh("k")]
                lines.append(f"for {inner[-1]} in range({self.choose.choice(['2', '3', 'i % 3', 'I[i] % 3', 'n'])}):")
            elif kind < 0.72:
                name = self.fresh("w")
                lines.append(f'{name} = T.decl_buffer((1,), "int32")')
                lines.append(f"{name}[0] = {self.choose.choice(['0', 'i', '1'])}")
                lines.append(f"while {name}[0] < {self.choose.choice(['2', 'i % 4', 'I[i] % 4'])}:")
                lines.append(f"    {name}[0] = {name}[0] + 1")
            elif kind < 0.85:
                inner = [*around, self.fresh("x")]
                lines.append(f"with T.LetStmt({self.value(around)}) as {inner[-1]}:")
            else:
                name = self.fresh("t")
                lines += [f'{name} = T.decl_buffer((2,), "int32")', f"{name}[0] = {self.value(around)}"]
                lines.append(f"{self.choose.choice('BC')}[{self.index(around)}] = {name}[0]")
                continue
            lines += ["    " + line for line in self.statements(depth - 1, inner)]
        return lines


def vector_program(seed: int) -> str:
    """The text of a program with one vectorized loop, perhaps under a condition and in a loop."""
    body = _Body(seed)
    lines = [f"for i in T.vectorized({LANES}):", *["    " + line for line in body.statements(2, [])]]
    if body.choose.random() < 0.4:
        lines = [f"if {body.choose.choice(['S[0] > 0', 'S[1] > 0', 'n > 2'])}:", *["    " + line for line in lines]]
    if body.choose.random() < 0.3:
        lines = ["for r in range(2):", *["    " + line for line in lines]]
    arrays = ", ".join([f'{name}: T.Buffer(({size},), "int32")' for name, size in _SIZES.items()])
    return f"@T.prim_func\ndef main({arrays}, n: T.int32):\n" + "\n".join(["    " + line for line in lines]) + "\n"


_SIZES = {"A": 24, "B": 24, "C": 24, "I": 8, "S": 8}


def arguments(seed: int) -> list[object]:
    """Arrays of small numbers: indices in range, with some equal ones."""
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 8, size).astype("int32") for size in _SIZES.values()]
    arrays[-1] = rng.integers(-1, 2, 8).astype("int32")
    return [*arrays, int(rng.integers(0, 4))]
