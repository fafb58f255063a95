"""Programs with lets between their loops and blocks, and inside of blocks: any program of text, with a few lets added.

    for i in range(4):                            for i in range(4):
        for j in range(i + 1):             →          x0: T.int32 = i + 1
            with T.block("B"):                        for j in range(x0):
                v0 = T.axis.spatial(4, i)                 with T.block("B"):
                B[v0] = A[v0]                                 v0 = T.axis.spatial(4, x0 - 1)
                                                              x1: T.int32 = A[v0]
                                                              B[v0] = x1

A let names an expression that the statements below it hold, a loop variable or an axis (perhaps shifted or scaled), or
a cell of a buffer, which then is part of a stored value, a guard, the extent of a loop or an index. Later lets see
earlier ones. A program with lets may mean something else, or nothing: who adds them runs the result.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from loopwright.ir import (
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    IntImm,
    IterType,
    LetStmt,
    Min,
    Node,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    is_true,
    logical_and,
    pre_order_visit,
    structural_equal,
)
from loopwright.script import from_source


class Source(Protocol):
    """What programs are made from: a template, a sketch, nests."""

    @property
    def name(self) -> str: ...

    def text(self, sizes: Sequence[int]) -> str: ...

    def smaller(self) -> Iterator[Any]: ...


@dataclass(frozen=True)
class WithLets:
    """A program and its lets, each of which is a seed: where it stands and what it names."""

    source: Any  # a Source
    lets: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.source.name} with lets {', '.join([str(seed) for seed in self.lets])}"

    @property
    def rank(self) -> int:
        return getattr(self.source, "rank", 3)

    def text(self, sizes: Sequence[int]) -> str:
        return _text_with_lets(self.source.text(sizes), self.lets)

    def smaller(self) -> Iterator[Any]:
        for position in range(len(self.lets)):
            lets = (*self.lets[:position], *self.lets[position + 1 :])
            yield replace(self, lets=lets) if lets else self.source
        for source in self.source.smaller():
            yield replace(self, source=source)


def perhaps_with_lets(source: Any, rng: random.Random, share: float = 0.5) -> Any:
    """The source, in a `share` of all cases with one to three lets."""
    if rng.random() >= share:
        return source
    return WithLets(source, tuple([rng.randrange(10**6) for _ in range(rng.choice((1, 1, 2, 2, 3)))]))


@lru_cache(maxsize=4096)
def _text_with_lets(text: str, lets: tuple[int, ...]) -> str:
    function = from_source(text)
    assert isinstance(function, PrimFunc)
    for number, seed in enumerate(lets):
        function = add_let(function, seed, f"x{number}")
    result = str(function.script())
    if "T.reads(" not in text:  # what a block reads is found again: a let of a load reads more
        result = re.sub(r"\n *T\.(reads|writes)\(.*\)(?=\n)", "", result)
    return result


def add_let(function: PrimFunc, seed: int, name: str) -> PrimFunc:
    """The function with one let more, or as it is where none was found to fit."""
    rng = random.Random(f"let {seed}")
    sites = list(_sites(function))
    for _ in range(12):
        site = rng.choice(sites)
        (form,) = rng.choices([form for form, _ in _FORMS], [weight for _, weight in _FORMS])
        new = form(site, rng, name)
        if new is not None:
            return function.with_(body=_Replace(site.body, new).visit(function.body))
    return function


@dataclass(frozen=True)
class _Site:
    """Where a let may stand: around `body`."""

    body: Stmt
    variables: tuple[Var, ...]  # that have a value there
    buffers: tuple[Buffer, ...]


class _Replace(Rewriter):
    def __init__(self, old: Node, new: Node) -> None:
        self.old, self.new = old, new

    def visit(self, node: Any) -> Any:
        return self.new if node is self.old else super().visit(node)


def _sites(function: PrimFunc) -> Iterator[_Site]:
    scalars = [param for param in function.params if param not in function.buffer_map and param.dtype.is_int]
    yield from _sites_in(function.body, tuple(scalars), tuple(function.argument_buffers()))


def _sites_in(
    stmt: Stmt, variables: tuple[Var, ...], buffers: tuple[Buffer, ...], loops: frozenset[Var] = frozenset()
) -> Iterator[_Site]:
    if isinstance(stmt, For):
        inner = (*variables, stmt.loop_var)
        yield _Site(stmt.body, inner, buffers)
        yield from _sites_in(stmt.body, inner, buffers, loops | {stmt.loop_var})
    elif isinstance(stmt, LetStmt):
        inner = (*variables, stmt.var) if stmt.var.dtype.is_int or stmt.var.dtype.is_bool else variables
        yield _Site(stmt.body, inner, buffers)
        yield from _sites_in(stmt.body, inner, buffers, loops)
    elif isinstance(stmt, IfThenElse):
        for case in (stmt.then_case, stmt.else_case):
            if case is not None:
                yield _Site(case, variables, buffers)
                yield from _sites_in(case, variables, buffers, loops)
    elif isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            yield _Site(part, variables, buffers)
            yield from _sites_in(part, variables, buffers, loops)
    elif isinstance(stmt, BlockRealize):
        block = stmt.block
        axes = [axis.var for axis in block.iter_vars]
        inner = (*[var for var in variables if var not in loops], *axes)
        known = (*buffers, *block.alloc_buffers, *[window.buffer for window in block.match_buffers])
        yield _Site(block.body, inner, known)
        yield from _sites_in(block.body, inner, known)
        if block.init is not None:  # which may depend on data axes alone
            reduced = {axis.var for axis in block.iter_vars if axis.iter_type == IterType.CommReduce}
            yield _Site(block.init, tuple([var for var in inner if var not in reduced]), known)
    elif isinstance(stmt, DeclBuffer):
        yield from _sites_in(stmt.body, variables, (*buffers, stmt.buffer), loops)
    elif isinstance(getattr(stmt, "body", None), Stmt):
        yield from _sites_in(stmt.body, variables, buffers, loops)  # type: ignore[attr-defined]


# --- what a let names ---------------------------------------------------------------------------------------------


def _named_expression(site: _Site, rng: random.Random, name: str) -> Stmt | None:
    """An expression from below, and its name in the place of some or all that are like it."""
    candidates = []

    def look(node: Node) -> None:
        if isinstance(node, Expr) and not isinstance(node, (Var, IntImm, Call)) and _is_known(node, site):
            candidates.extend([node] * (3 if isinstance(node, BufferLoad) else 1))

    pre_order_visit(site.body, look)
    if not candidates:
        return None
    value = rng.choice(candidates)
    return _bound(site, rng, name, value, lambda node: structural_equal(node, value), lambda var: var)


def _is_known(value: Expr, site: _Site) -> bool:
    """Whether an expression means the same above the site: integers and conditions of what is known there."""
    fits = True

    def look(node: Node) -> None:
        nonlocal fits
        if isinstance(node, Var):
            fits &= any(node is var for var in site.variables)
        elif isinstance(node, BufferLoad):
            fits &= any(node.buffer is buffer for buffer in site.buffers) and not node.dtype.is_float
        elif isinstance(node, Call):
            fits = False

    pre_order_visit(value, look)
    return fits and (value.dtype.is_int or value.dtype.is_bool) and value.dtype.lanes == 1


def _renamed_variable(site: _Site, rng: random.Random, name: str) -> Stmt | None:
    """A variable from around, shifted or scaled, and the way back to it below."""
    used = [var for var in _integers(site) if _holds(site.body, var)]
    if not used:
        return None
    var, other = rng.choice(used), rng.choice(_integers(site))
    value, back = rng.choice(
        [
            (var, lambda x: x),
            (var, lambda x: x),
            (var + 1, lambda x: x - 1),
            (var * 2, lambda x: x // 2),
            (var * 4 + 1, lambda x: (x - 1) // 4),
            (var + other, lambda x: x - other),
            (5 - var, lambda x: 5 - x),
            (var // 2, lambda x: x * 2 + var % 2),
        ]
    )
    return _bound(site, rng, name, value, lambda node: node is var, back)


def _cell(site: _Site, rng: random.Random, name: str) -> Stmt | None:
    """A cell of a buffer, or arithmetic, as a part of something below that it was no part of."""
    integers = _integers(site)
    buffers = [buffer for buffer in site.buffers if buffer.dtype.is_int and buffer.dtype.bits == 32]
    value: Expr
    if buffers and (not integers or rng.random() < 0.75):
        buffer = rng.choice(buffers)
        value = buffer[tuple([rng.choice((*integers[-3:], 0)) for _ in buffer.shape])]
    elif integers:
        value = rng.choice(integers) + rng.choice(integers) - rng.choice((0, 1, 2))
    else:
        return None
    uses: list[tuple[Node, Callable[[Any], Node]]] = []

    def look(node: Node) -> None:
        if isinstance(node, BufferStore) and node.buffer.dtype == value.dtype:
            uses.extend([(node, lambda x: node.with_(value=_with_term(node, x)))] * 2)
        elif isinstance(node, BlockRealize) and node.block.name_hint != "root":
            plain = is_true(node.predicate)
            guards = (lambda x: x > 0, lambda x: x < 3, lambda x: x % 2 == 0)
            guard = guards[rng.randrange(3)]
            uses.append(
                (node, lambda x: node.with_(predicate=guard(x) if plain else logical_and(node.predicate, guard(x))))
            )
        elif isinstance(node, For) and node.extent.dtype == value.dtype:
            uses.append((node, lambda x: node.with_(extent=Min(node.extent, x))))
        elif isinstance(node, BufferLoad) and node.indices and _is_long(node.buffer, value):
            uses.append((node, lambda x: node.with_(indices=(x % node.buffer.shape[0], *node.indices[1:]))))

    pre_order_visit(site.body, look)
    if not uses:
        return None
    node, make = rng.choice(uses)
    var = Var(name, value.dtype)
    return LetStmt(var, value, _Replace(node, make(var)).visit(site.body))


def _is_long(buffer: Buffer, index: Expr) -> bool:
    """Whether an index, modulo the extent of a buffer, may be several: terms do not tell that `x % 1` is 0."""
    extent = buffer.shape[0]
    return extent.dtype == index.dtype and not (isinstance(extent, IntImm) and extent.value <= 1)


def _with_term(store: BufferStore, term: Expr) -> Expr:
    """What is stored, with a term more: beside a load of another cell, so that an update of a sum stays one."""
    loads: list[BufferLoad] = []

    def look(node: Node) -> None:
        if isinstance(node, BufferLoad) and node.buffer is not store.buffer:
            loads.append(node)

    pre_order_visit(store.value, look)
    return _Replace(loads[0], loads[0] + term).visit(store.value) if loads else store.value + term


_FORMS: tuple[tuple[Callable[[_Site, random.Random, str], Stmt | None], float], ...] = (
    (_named_expression, 4),
    (_renamed_variable, 4),
    (_cell, 2),
)


def _integers(site: _Site) -> list[Var]:
    return [var for var in site.variables if var.dtype == "int32"]


def _holds(root: Node, var: Var) -> bool:
    found = False

    def look(node: Node) -> None:
        nonlocal found
        found |= node is var

    pre_order_visit(root, look)
    return found


def _bound(
    site: _Site,
    rng: random.Random,
    name: str,
    value: Expr,
    is_meant: Callable[[Expr], bool],
    back: Callable[[Any], Expr],
) -> Stmt:
    """The body of the site below the let, some or all of what is meant replaced."""
    var = Var(name, value.dtype)
    for share in (rng.choice((1.0, 1.0, 0.5)), 1.0):
        body = _Some(is_meant, back(var), rng, share).visit(site.body)
        if body is not site.body:
            break
    return LetStmt(var, value, body)


class _Some(Rewriter):
    """A share of the expressions that are meant become another one."""

    def __init__(self, is_meant: Callable[[Expr], bool], new: Expr, rng: random.Random, share: float) -> None:
        self.is_meant, self.new, self.rng, self.share = is_meant, new, rng, share

    def visit(self, node: Any) -> Any:
        if isinstance(node, Expr) and self.is_meant(node) and self.rng.random() < self.share:
            return self.new
        return super().visit(node)
