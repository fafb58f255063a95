"""Programs with loops that are bound to threads: any program of text, with some of its loops bound.

    B = T.alloc_buffer((4,), "int32")             B = T.alloc_buffer((4,), "int32", scope="shared")
    for i in range(4):                     →      for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("B"): …                          with T.block("B"): …
    for i in range(4):                            for i in range(4):
        with T.block("C"): …                          with T.block("C"): …

Loops may be bound to one axis inside of each other, and memory may be that of blocks or of threads. A program with
threads may race, or mean something else: who binds loops runs the result.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from loopwright.ir import For, ForKind, IntImm, IterType, IterVar, PrimFunc, Rewriter, Stmt, Var
from loopwright.script import from_source

AXES = ("threadIdx.x", "threadIdx.x", "threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread")
SCOPES = ("global", "shared", "local", "local", "shared", "warp")


@dataclass(frozen=True)
class WithThreads:
    """A program and its bound loops, each of which is a seed: which loop, and which axis."""

    source: Any  # a Source
    bound: tuple[int, ...]
    scopes: int  # a seed: where the memory of the program is

    @property
    def name(self) -> str:
        return f"{self.source.name} with threads {', '.join([str(seed) for seed in self.bound])} in {self.scopes}"

    @property
    def rank(self) -> int:
        return getattr(self.source, "rank", 3)

    def text(self, sizes: Sequence[int]) -> str:
        return _text_with_threads(self.source.text(sizes), self.bound, self.scopes)

    def smaller(self) -> Iterator[Any]:
        for position in range(len(self.bound)):
            bound = (*self.bound[:position], *self.bound[position + 1 :])
            yield replace(self, bound=bound) if bound else self.source
        if self.scopes:
            yield replace(self, scopes=0)
        for source in self.source.smaller():
            yield replace(self, source=source)


def with_threads(source: Any, rng: random.Random) -> WithThreads:
    """The source with one to three loops bound, and memory anywhere."""
    bound = [rng.randrange(10**6) for _ in range(rng.choice((1, 2, 2, 3)))]
    return WithThreads(source, tuple(bound), rng.choice((0, rng.randrange(1, 10**6))))


@lru_cache(maxsize=4096)
def _text_with_threads(text: str, bound: tuple[int, ...], scopes: int) -> str:
    function = from_source(text)
    assert isinstance(function, PrimFunc)
    for seed in bound:
        function = bind_loop(function, seed)
    result = str(function.script())
    if "T.reads(" not in text:
        result = re.sub(r"\n *T\.(reads|writes)\(.*\)(?=\n)", "", result)
    if not scopes:
        return result
    rng = random.Random(scopes)
    return re.sub(
        r'(= T\.(?:alloc|decl)_buffer\(\([^()]*\), "\w+")\)',
        lambda match: f'{match[1]}, scope="{rng.choice(SCOPES)}")',
        result,
    )


def bind_loop(function: PrimFunc, seed: int) -> PrimFunc:
    """The function with one more loop bound; as it is where no loop is left. (Lengths of an axis are literals.)"""
    rng = random.Random(seed)
    loops: list[For] = []
    _Loops(loops).visit(function.body)
    if not loops:
        return function
    chosen, tag = rng.choice(loops), rng.choice(AXES)
    return function.with_(body=_Bind(chosen, tag).visit(function.body))


class _Loops(Rewriter):
    """Collects what may be bound."""

    def __init__(self, result: list[For]) -> None:
        self.result = result

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is ForKind.SERIAL and isinstance(loop.extent, IntImm):
            self.result.append(loop)
        return self.rebuild(loop)


class _Bind(Rewriter):
    def __init__(self, loop: For, tag: str) -> None:
        self.loop, self.tag = loop, tag

    def visit_For(self, loop: For) -> Stmt:
        if loop is not self.loop:
            return self.rebuild(loop)
        axis = IterVar(None, Var(self.tag, loop.loop_var.dtype), IterType.ThreadIndex, self.tag)
        return loop.with_(kind=ForKind.THREAD_BINDING, thread_binding=axis)
