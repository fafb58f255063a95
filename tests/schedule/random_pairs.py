"""Random pairs of tiny programs: the same blocks in two random arrangements of loops.

A block is a statement over one or two axes that reads and writes small argument buffers at affine indices; some are
reductions. An arrangement puts each under loops of its own: permuted, reversed, tiled, fused, skewed, repeated; puts
the nests in some order; and merges some neighbours under one loop. Most pairs do not compute the same.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    const,
    decl_buffer,
    logical_and,
    seq,
    substitute,
)


@dataclass
class Statement:
    """A block, and how far its axes run."""

    block: Block
    extents: list[int]


@dataclass
class Nest:
    """Loops, the values they give to the axes, and when the block runs."""

    loops: list[tuple[Var, int]]
    values: list[Expr]
    guards: list[Expr]
    statement: Statement


def random_pair(seed: int) -> tuple[PrimFunc, PrimFunc]:
    """Two arrangements of the same random blocks."""
    rng = random.Random(seed)
    size = 8
    buffers = [decl_buffer((size,), "float32", name) for name in "ABC"]
    square = decl_buffer((size, size), "float32", "M")
    count = rng.choice([1, 2, 2, 3])
    statements = [_statement(rng, k, buffers, square) for k in range(count)]
    # The text of the first version is calm, so that many second ones compute the same.
    before = _program(rng, statements, buffers, square, calm=rng.random() < 0.8)
    after = _program(rng, statements, buffers, square, calm=rng.random() < 0.3, order=rng.random() < 0.25)
    return before, after


def random_nest(seed: int) -> tuple[PrimFunc, list[PrimFunc]]:
    """One nest of two loops around one or two blocks, and the same with its loops permuted and reversed."""
    rng = random.Random(seed)
    buffers = [decl_buffer((8,), "float32", name) for name in "ABC"]
    square = decl_buffer((8, 8), "float32", "M")
    extents = [rng.choice([2, 3]), rng.choice([2, 3])]
    statements = [_statement(rng, k, buffers, square, extents) for k in range(rng.choice([1, 1, 2]))]
    loops = [(Var("i"), extents[0]), (Var("j"), extents[1])]

    def version(order: list[tuple[Var, int]], backwards: bool) -> PrimFunc:
        values = [const(extent - 1) - var if backwards else var for var, extent in loops]
        body = seq([_realize(Nest(loops, values, [], statement)) for statement in statements])
        return _function(_loops(order, body), buffers, square)

    return version(loops, False), [version(loops[::-1], False), version(loops, True), version(loops[::-1], True)]


def _statement(
    rng: random.Random, number: int, buffers: list[Buffer], square: Buffer, given: list[int] | None = None
) -> Statement:
    rank = len(given) if given else rng.choice([1, 2, 2])
    extents = given or [rng.choice([1, 2, 3, 4]) for _ in range(rank)]
    axes = [Var(f"v{number}{'ij'[k]}") for k in range(rank)]
    reduces = rank == 2 and rng.random() < 0.45
    kinds = [IterType.DataPar] * rank
    if reduces:
        kinds[rng.randrange(rank)] = IterType.CommReduce
    data = [axis for axis, kind in zip(axes, kinds, strict=True) if kind == IterType.DataPar]

    def index(of: list[Var]) -> Expr:
        if not of or rng.random() < 0.1:
            return const(rng.randrange(3))
        chosen = [rng.choice(of)] if rng.random() < 0.6 else of
        total: Expr = const(rng.choice([0, 0, 1, 2]))
        for var in chosen:
            total = total + var * rng.choice([1, 1, 2] if len(chosen) == 1 else [1])
        if len(chosen) == 1 and rng.random() < 0.5:
            return chosen[0]
        if rng.random() < 0.2:
            total = const(7) - total
        return total

    def cell(of: list[Var]) -> tuple[Buffer, list[Expr]]:
        if rng.random() < 0.35:
            return square, [index(of), index(of)]
        return rng.choice(buffers), [index(of)]

    target, place = cell(data if reduces else axes)
    init = None
    value: Expr = const(float(number + 2), "float32")
    for _ in range(rng.choice([1, 1, 2])):
        source, where = cell(axes)
        if reduces and source is target:
            continue
        value = value * BufferLoad(source, where)
    if reduces:
        value = BufferLoad(target, place) + value
        if rng.random() < 0.6:
            init = BufferStore(target, const(0.0, "float32"), place)
    body: Stmt = BufferStore(target, value, place)
    iters = tuple(
        [
            IterVar(Range(const(0), const(extent)), axis, kind)
            for axis, extent, kind in zip(axes, extents, kinds, strict=True)
        ]
    )
    return Statement(Block(iters, (), (), f"S{number}", body, init), extents)


def _nest(rng: random.Random, statement: Statement, calm: bool) -> Nest:
    loops = [(Var("ij"[k]), extent) for k, extent in enumerate(statement.extents)]
    values: list[Expr] = [var for var, _ in loops]
    guards: list[Expr] = []
    if calm:
        return Nest(loops, values, guards, statement)
    for k, extent in enumerate(statement.extents):
        if rng.random() < 0.2:
            values[k] = const(extent - 1) - values[k]
    if len(loops) == 2 and rng.random() < 0.5:
        loops.reverse()
    choice = rng.random()
    if choice < 0.2:
        at = rng.randrange(len(loops))
        var, extent = loops[at]
        outer, inner = Var(f"{var.name}0"), Var(f"{var.name}1")
        whole = outer * 2 + inner
        parts = [(outer, (extent + 1) // 2), (inner, 2)]
        if rng.random() < 0.3:
            parts.reverse()
        loops[at : at + 1] = parts
        values = [_put(value, var, whole) for value in values]
        if extent % 2:
            guards.append(whole < extent)
        if rng.random() < 0.5:
            rng.shuffle(loops)
    elif choice < 0.35 and len(loops) == 2:
        (a, n), (b, m) = loops
        fused = Var("f")
        loops = [(fused, n * m)]
        values = [_put(_put(value, a, fused // m), b, fused % m) for value in values]
    elif choice < 0.5 and len(loops) == 2:
        (a, n), (b, m) = loops
        skewed = Var("s")
        loops = [(skewed, n + m - 1), (b, m)] if rng.random() < 0.5 else [(b, m), (skewed, n + m - 1)]
        values = [_put(value, a, skewed - b) for value in values]
        guards += [skewed - b >= 0, skewed - b < n]
    elif choice < 0.57:
        loops.insert(rng.randrange(len(loops) + 1), (Var("t"), 2))
    elif choice < 0.62:
        guards.append(loops[0][0] < loops[0][1] - 1)
    return Nest(loops, values, guards, statement)


def _put(value: Expr, var: Var, new: Expr) -> Expr:
    return substitute(value, {var: new})


def _program(
    rng: random.Random,
    statements: list[Statement],
    buffers: list[Buffer],
    square: Buffer,
    calm: bool,
    order: bool = False,
) -> PrimFunc:
    nests = [_nest(rng, statement, calm) for statement in statements]
    if not calm and rng.random() < 0.1:
        nests.append(_nest(rng, rng.choice(statements), True))
    if order:
        rng.shuffle(nests)
    parts: list[Stmt] = []
    k = 0
    while k < len(nests):
        if k + 1 < len(nests) and not calm and rng.random() < 0.4:
            parts.append(_merged(nests[k], nests[k + 1]))
            k += 2
        else:
            parts.append(_loops(nests[k].loops, _realize(nests[k])))
            k += 1
    return _function(seq(parts), buffers, square)


def _function(body: Stmt, buffers: list[Buffer], square: Buffer) -> PrimFunc:
    return PrimFunc([*buffers, square], BlockRealize((), const(True), Block((), (), (), "root", body)))


def _realize(nest: Nest) -> Stmt:
    predicate = logical_and(const(True), *nest.guards)
    return BlockRealize(tuple(nest.values), predicate, nest.statement.block)


def _loops(loops: list[tuple[Var, int]], body: Stmt) -> Stmt:
    for var, extent in reversed(loops):
        body = For(var, const(0), const(extent), ForKind.SERIAL, body)
    return body


def _merged(first: Nest, second: Nest) -> Stmt:
    (a, n), (b, m) = first.loops[0], second.loops[0]
    both = Var("m")
    bodies = []
    for nest, var, extent in ((first, a, n), (second, b, m)):
        guards = [_put(guard, var, both) for guard in nest.guards]
        if extent < max(n, m):
            guards.append(both < extent)
        values = [_put(value, var, both) for value in nest.values]
        bodies.append(_loops(nest.loops[1:], _realize(Nest(nest.loops[1:], values, guards, nest.statement))))
    return _loops([(both, max(n, m))], seq(bodies))


def random_cached(seed: int) -> tuple[PrimFunc, PrimFunc, Var]:
    """A program, the same with one block reading a copy of a buffer, and the axis of the block that copies.

    The copy is made somewhere, perhaps too early or too late, of all of the buffer or of a part; perhaps under a loop.
    """
    rng = random.Random(seed)
    buffers = [decl_buffer((8,), "float32", name) for name in "ABC"]
    square = decl_buffer((8, 8), "float32", "M")
    statements = [_statement(rng, k, buffers, square) for k in range(rng.choice([2, 3]))]
    nests = [_nest(rng, statement, rng.random() < 0.5) for statement in statements]
    chosen = rng.randrange(len(statements))
    source = rng.choice(buffers)
    copy = decl_buffer((8,), "float32", "copy")
    axis = Var("w")
    copied = Statement(
        Block(
            (IterVar(Range(const(0), const(8)), axis, IterType.DataPar),),
            (),
            (),
            "copy",
            BufferStore(copy, BufferLoad(source, [axis]), [axis]),
        ),
        [8],
    )
    extent = 8 if rng.random() < 0.75 else rng.choice([3, 6])
    inside = rng.random() < 0.4
    here = chosen if rng.random() < 0.7 else rng.randrange(len(nests) + 1)

    def whole(with_copy: bool) -> PrimFunc:
        parts = []
        for k, nest in enumerate(nests):
            body = _realize(nest)
            var = Var("c")
            copying = _loops([(var, extent)], _realize(Nest([], [var], [], copied)))
            if with_copy and k == chosen:
                block = _Redirect(source, copy).visit(nest.statement.block)
                body = _realize(Nest(nest.loops, nest.values, nest.guards, Statement(block, nest.statement.extents)))
                if inside:
                    depth = rng.randrange(len(nest.loops) + 1)
                    parts.append(_loops(nest.loops[:depth], seq([copying, _loops(nest.loops[depth:], body)])))
                    continue
            parts.append(_loops(nest.loops, body))
        if with_copy and not inside:
            parts.insert(here, copying)
        made = [copy] if with_copy else []
        root = Block((), (), (), "root", seq(parts), None, tuple(made))
        return PrimFunc([*buffers, square], BlockRealize((), const(True), root))

    before = whole(False)
    return before, whole(True), axis


class _Redirect(Rewriter):
    """Loads of one buffer become loads of another, but for those that update it."""

    def __init__(self, source: Buffer, target: Buffer) -> None:
        self.source, self.target = source, target
        self.stored = False

    def visit_Block(self, block: Block) -> Block:
        self.stored = isinstance(block.body, BufferStore) and block.body.buffer is self.source
        reduces = any(one.iter_type == IterType.CommReduce for one in block.iter_vars)
        return block if self.stored and reduces else block.with_(body=self.visit(block.body))

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        return BufferLoad(self.target, load.indices) if load.buffer is self.source else load
