"""SingleWriter buffers: the lemma is held against the exact test, and both against the evaluator."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from loopwright import te, tir
from loopwright.analysis.dataflow import Dataflow
from loopwright.evaluator import difference, evaluate_terms
from loopwright.evaluator.errors import AxisOutsideDomain, OutOfBounds, UninitialisedRead
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Stmt,
    Var,
    const,
    decl_buffer,
    logical_and,
    seq,
    substitute,
)
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof import find_mismatch as comparing
from loopwright.schedule.proof.find_mismatch import find_mismatch
from loopwright.schedule.proof.reaching_writes import ReachingWrites
from loopwright.schedule.rewrite.allocations import allocate
from loopwright.script import tir as T
from tests.schedule.pairs import version_of
from tests.schedule.random_pairs import random_cached, random_pair

CELLS, TERMS = 6, 4  # how many sums, and how many numbers in each


class Nest(NamedTuple):
    """Loops around a block, the values that they give to its axes, and when it runs."""

    loops: list[tuple[Var, int]]
    values: list[Expr]
    guards: list[Expr]


class Blocks:
    """A block that fills B (one number a cell, or a sum), and one that reads it."""

    def __init__(self, rng: random.Random) -> None:
        self.sums, self.pairs, self.is_output = rng.random() < 0.6, rng.random() < 0.3, rng.random() < 0.2
        self.unit = rng.choice([1, 1, 2])  # 2: the cell is a number of two digits, the axes of the block
        self.ahead = rng.choice([0, 0, 0, 1, -1])
        self.source, self.target = decl_buffer((CELLS, TERMS), name="A"), decl_buffer((CELLS,), name="C")
        is_pairs = self.pairs and self.unit == 1
        self.buffer = decl_buffer((CELLS // 2, 2) if is_pairs else (CELLS,), name="B")
        v, q, k, u = Var("v"), Var("q"), Var("k"), Var("u")
        axes = [_axis(v, CELLS // self.unit, IterType.DataPar)]
        if self.unit == 2:
            axes.append(_axis(q, 2, IterType.DataPar))
            self.pairs = False
        number = v * 2 + q if self.unit == 2 else v
        cell = self._cell(number)
        value: Expr = BufferLoad(self.source, [number, const(0)])
        init = None
        if self.sums:
            axes.append(_axis(k, TERMS, IterType.CommReduce))
            value = BufferLoad(self.buffer, cell) + BufferLoad(self.source, [number, k])
            init = BufferStore(self.buffer, const(0.0), cell)
        region = BufferRegion(self.buffer, [Range.from_min_extent(index, 1) for index in cell])
        self.fill = Block(axes, (), (region,), "B", BufferStore(self.buffer, value, cell), init)
        last = CELLS - abs(self.ahead)
        load = BufferLoad(self.buffer, self._cell(u + self.ahead if self.ahead else u))
        self.use = Block([_axis(u, last, IterType.DataPar)], (), (), "C", BufferStore(self.target, load, [u]))
        self.first = max(-self.ahead, 0)

    def _cell(self, index: Expr) -> list[Expr]:
        return [index // 2, index % 2] if self.pairs else [index]


def _axis(var: Var, extent: int, kind: IterType) -> IterVar:
    return IterVar(Range(const(0), const(extent)), var, kind)


def _digits(rng: random.Random, extent: int, name: str) -> tuple[list[tuple[Var, int]], Expr]:
    """Loops that count to `extent`, or about that far, and the number they make."""
    if rng.random() < 0.5 or extent < 2:
        var = Var(name)
        return [(var, extent)], var + 0
    outer, inner, tile = Var(f"{name}_0"), Var(f"{name}_1"), rng.choice([2, 3])
    stride = tile if rng.random() < 0.8 else tile + rng.choice([-1, 1])
    return [(outer, -(-extent // tile)), (inner, tile)], outer * stride + inner


def _nest(loops: Sequence[tuple[Var, int]], body: Stmt) -> Stmt:
    for var, extent in reversed(loops):
        body = For(var, const(0), const(extent), ForKind.SERIAL, body)
    return body


def _fused(rng: random.Random, nest: Nest) -> Nest:
    """Two loops as one, now and then, and one of the new loop's parts cut in two again."""
    if len(nest.loops) < 2 or rng.random() < 0.65:
        return nest
    k = rng.randrange(len(nest.loops) - 1)
    (outer, many), (inner, few) = nest.loops[k : k + 2]
    fused = Var("f")
    step = few if rng.random() < 0.95 else few + 1
    first: Expr = fused // step
    if many % 2 == 0 and rng.random() < 0.3:
        first = fused // (2 * step) * 2 + (fused // step % 2 if rng.random() < 0.5 else fused % (2 * step) // step)
    elif rng.random() < 0.3:
        first = first % many
    new = {outer: first, inner: fused % step}
    values, guards = ([substitute(item, new) for item in items] for items in (nest.values, nest.guards))
    return Nest([*nest.loops[:k], (fused, many * few), *nest.loops[k + 2 :]], values, guards)


def arranged(rng: random.Random, blocks: Blocks) -> PrimFunc:
    """The two blocks in some loops: often right, but cells may be filled too late, twice, or in part."""
    shared = [] if rng.random() < 0.3 else [(Var("l"), rng.choice([2, 3]))]
    if shared and rng.random() < 0.3:
        shared.append((Var("m"), rng.choice([1, 2])))
    tile = total = CELLS // blocks.unit
    start: Expr = const(0)
    for var, extent in shared:
        if rng.random() < 0.85:
            tile = -(-tile // extent)
            start = start + var * tile
    tile += rng.choice([0, 0, 0, 0, 1, -1])
    loops, value = _digits(rng, max(tile, 1), "i")
    value = start + value + rng.choice([0, 0, 0, 0, -1])
    values, guards = [value], [value >= 0, value < (total if rng.random() < 0.9 else total - 1)]
    if blocks.unit == 2:
        digit, count = Var("q"), rng.choice([2, 2, 2, 1, 3])
        loops, values = [*loops, (digit, count)], [value, digit]
        guards += [digit < 2] if count == 3 else []
    if blocks.sums:
        more, number = _digits(rng, TERMS if rng.random() < 0.9 else TERMS - 1, "k")
        loops = [*loops, *more]
        values.append(number)
        guards.append(number < TERMS)
        if rng.random() < 0.1 and shared:  # a part of the sum in each iteration
            start = start + 0
            values[-1] = shared[0][0]
            guards[-1] = values[-1] < TERMS
    rng.shuffle(loops)
    if rng.random() < 0.1:
        loops.insert(rng.randrange(len(loops) + 1), (Var("again"), 2))
    loops, values, guards = _fused(rng, Nest(loops, values, guards))
    fill = _nest(loops, BlockRealize(values, logical_and(const(True), *guards), blocks.fill))

    more, at = _digits(rng, max(tile * blocks.unit + rng.choice([0, 0, 0, -1]), 1), "j")
    at = start * blocks.unit + at + rng.choice([0, 0, 0, blocks.first])
    rng.shuffle(more)
    more, (at,), wheres = _fused(rng, Nest(more, [at], [at >= blocks.first, at < CELLS - abs(blocks.ahead)]))
    use = _nest(more, BlockRealize([at], logical_and(*wheres), blocks.use))
    parts = [fill, use] if rng.random() < 0.9 else [use, fill]
    inside = shared and not blocks.is_output and rng.random() < 0.5
    body = seq(parts)
    if len(shared) == 2 and rng.random() < 0.5:
        (l, many), (m, few) = shared
        shared = [(Var("l_m"), many * few)]
        body = substitute(body, {l: shared[0][0] // few, m: shared[0][0] % few})
    root_buffers = [] if blocks.is_output or inside else [blocks.buffer]
    for depth in reversed(range(len(shared))):
        if inside and depth == len(shared) - 1:
            body = allocate(blocks.buffer, body)
        body = _nest(shared[depth : depth + 1], body)
    arguments: list[Buffer] = [blocks.source, *([blocks.buffer] if blocks.is_output else []), blocks.target]
    return PrimFunc(arguments, BlockRealize((), const(True), Block((), (), (), "root", body, None, root_buffers)))


def compared(before: PrimFunc, after: PrimFunc, origins: Origins | None = None) -> Counter[str]:
    """How often the lemma says yes to a buffer that somebody writes; asserts that the exact test does too."""
    counts: Counter[str] = Counter()
    old = ReachingWrites(comparing._reaching_writes(before).dataflow)
    new = ReachingWrites(comparing._reaching_writes(after).dataflow, origins)
    comparison = comparing._Comparison(old, new, by_lemmas=True)
    for buffer in dict.fromkeys([*new.dataflow.by_buffer, *after.argument_buffers()]):
        if not any(access.writes for access in new.dataflow.by_buffer.get(buffer, ())):
            continue
        says_yes = comparison._is_settled(buffer)
        counts["yes" if says_yes else "unknown"] += 1
        if says_yes:
            assert comparison._compare(buffer) is None, f"{buffer.name}\n{before.script()}\n{after.script()}"
    return counts


@pytest.mark.one_in(4)
@pytest.mark.parametrize("chunk", range(4))
def test_a_yes_is_always_right(chunk):
    """Two arrangements of the same blocks, most of which do not compute the same."""
    counts: Counter[str] = Counter()
    for seed in range(20 * chunk, 20 * (chunk + 1)):
        rng = random.Random(seed)
        blocks = Blocks(rng)
        versions = [arranged(rng, blocks) for _ in range(3)]
        results = []
        for version in versions:
            try:
                results.append(evaluate_terms(version))
            except (AxisOutsideDomain, OutOfBounds, UninitialisedRead):
                results.append(None)
        for before, expected in zip(versions, results, strict=True):
            for after, found in zip(versions, results, strict=True):
                if before is after:
                    continue  # the very same statements: a yes for another reason (`unchanged_writers.py`)
                counts += compared(before, after)
                answer = find_mismatch(before, after)
                exact = find_mismatch(before, after, by_lemmas=False)
                assert type(answer) is type(exact), f"{seed}\n{before.script()}\n{after.script()}"
                if answer is None and expected is not None and found is not None:
                    counts["same"] += 1
                    assert difference(expected, found) is None, f"{seed}\n{before.script()}\n{after.script()}"
    assert min(counts["yes"], counts["unknown"]) > 10 and counts["same"] > 2, counts


def test_random_pairs_and_copies():
    counts: Counter[str] = Counter()
    for seed in range(150):
        counts += compared(*random_pair(seed))
        before, after, copy = random_cached(seed)
        counts += compared(before, after, Origins(copies=frozenset([copy])))
    assert counts["yes"] > 50 and counts["unknown"] > 50, counts


@pytest.fixture
def no_search(monkeypatch):
    """Whoever computes an exact flow fails the test."""

    def refuse(self: Dataflow, buffer: Buffer) -> None:
        raise AssertionError(f"the flow through {buffer.name} was searched")

    monkeypatch.setattr(Dataflow, "flow", refuse)


@pytest.mark.parametrize("sizes", [(64, 64, 64), (63, 48, 61), (12, 48, 1)])
def test_a_packed_product_needs_no_search(no_search, sizes):
    n, m, depth = sizes
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    packing, out = sch.cache_read("C", 1, "global"), sch.cache_write("C", 0, "global")
    sch.transform_layout(packing, ("write", 0), lambda k, j: (j // 16, k, j % 16))
    i, j, kk = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 6])
    j0, j1 = sch.split(j, [None, 16])
    outer, tile = sch.split(j0, [None, 3])  # four panels of 16 are no multiple of three
    sch.reorder(outer, i0, tile, kk, i1, j1)
    sch.compute_at(packing, i0)
    sch.sink_alloc(packing, "B_global")
    sch.reverse_compute_at(out, tile)
    sch.sink_alloc("C", "C_global")
    sch.fuse(outer, i0)


def test_a_row_at_a_time_needs_no_search(no_search):
    a = te.placeholder((8, 32), name="A")
    k, l = te.reduce_axis((0, 32), name="k"), te.reduce_axis((0, 32), name="l")
    top = te.compute((8,), lambda i: te.max(a[i, k], axis=k), name="top")
    powers = te.compute((8, 32), lambda i, j: te.exp(a[i, j] - top[i]), name="powers")
    total = te.compute((8,), lambda i: te.sum(powers[i, l], axis=l), name="total")
    shares = te.compute((8, 32), lambda i, j: powers[i, j] / total[i], name="shares")
    sch = tir.Schedule(te.create_prim_func([a, shares]))
    row = sch.get_loops("shares")[0]
    for name in ("total", "powers", "top"):
        sch.compute_at(name, row)
    for name in ("total", "powers", "top"):
        sch.sink_alloc(name, name)


def test_an_init_of_its_own_needs_no_search(no_search):
    a = te.placeholder((8, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    sch.decompose_reduction("B", sch.get_loops("B")[1])


def is_settled(function: PrimFunc, name: str) -> bool:
    sight = comparing._reaching_writes(function)
    return sight.settled.of(next(item for item in sight.dataflow.by_buffer if item.name == name)) is not None


def test_what_is_not_settled():
    @T.prim_func
    def partial_sum(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        B = T.alloc_buffer((4,))
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                ui, uk = T.axis.remap("SS", [i, k])
                C[ui, uk] = B[ui]

    @T.prim_func
    def twice(A: T.Buffer((4, 8)), C: T.Buffer(4)):
        B = T.alloc_buffer((4,))
        for i in range(4):
            for _again, k in T.grid(2, 8):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                ui = T.axis.spatial(4, i)
                C[ui] = B[ui]

    @T.prim_func
    def halo(A: T.Buffer(9), C: T.Buffer(8)):
        B = T.alloc_buffer((9,))
        for i in range(4):
            for j in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(9, i * 2 + j)
                    B[vi] = A[vi]
            for j in range(2):
                with T.block("C"):
                    ui = T.axis.spatial(8, i * 2 + j)
                    C[ui] = B[ui + 1]

    @T.prim_func
    def gaps(A: T.Buffer(9), C: T.Buffer(9)):
        B = T.alloc_buffer((9,))
        for i, j in T.grid(3, 2):
            with T.block("B"):
                vi = T.axis.spatial(9, i * 3 + j)
                B[vi] = A[vi]
        for j in range(9):
            with T.block("C"):
                ui = T.axis.spatial(9, j)
                C[ui] = B[ui]

    @T.prim_func
    def guarded(A: T.Buffer(8), C: T.Buffer(8)):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.where(i < 7)
                B[vi] = A[vi]
        for j in range(8):
            with T.block("C"):
                ui = T.axis.spatial(8, j)
                C[ui] = B[ui]

    @T.prim_func
    def two_names_a_cell(A: T.Buffer((4, 2)), C: T.Buffer(4)):
        B = T.alloc_buffer((4,))
        for i, j in T.grid(4, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi] = A[vi, vj]
        for j in range(4):
            with T.block("C"):
                ui = T.axis.spatial(4, j)
                C[ui] = B[ui]

    @T.prim_func
    def one_axis_twice(A: T.Buffer(4), C: T.Buffer(16)):
        B = T.alloc_buffer((16,))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi * 4 + vi] = A[vi]
        for j in range(16):
            with T.block("C"):
                ui = T.axis.spatial(16, j)
                C[ui] = B[ui]

    for function in (partial_sum, twice, halo, gaps, guarded, two_names_a_cell, one_axis_twice):
        assert not is_settled(function, "B"), function.script()
        assert is_settled(function, "C") or function in (partial_sum,), function.script()


def test_tiles_that_are_whole_or_not_there():
    """A guard on the number of the tile says how far the axis runs."""

    @T.prim_func
    def before(A: T.Buffer(20), C: T.Buffer(20)):
        B = T.alloc_buffer((20,))
        for i, j, k in T.grid(2, 3, 4):
            with T.block("B"):
                vi = T.axis.spatial(20, i * 12 + j * 4 + k)
                T.where(i * 3 + j < 5)
                B[vi] = A[vi]
        for j in range(20):
            with T.block("C"):
                ui = T.axis.spatial(20, j)
                C[ui] = B[ui]

    @T.prim_func
    def shorter(A: T.Buffer(20), C: T.Buffer(20)):
        B = T.alloc_buffer((20,))
        for i, j, k in T.grid(2, 3, 4):
            with T.block("B"):
                vi = T.axis.spatial(20, i * 12 + j * 4 + k)
                T.where(i * 3 + j < 4)
                B[vi] = A[vi]
        for j in range(20):
            with T.block("C"):
                ui = T.axis.spatial(20, j)
                C[ui] = B[ui]

    assert is_settled(before, "B") and not is_settled(shorter, "B")
    assert find_mismatch(before, version_of(before, shorter)) is not None


class Filled(NamedTuple):
    """A program in which blocks fill a buffer together, and what they are said to stand for."""

    function: PrimFunc
    origins: Origins


def _run_all(what: Block, rows: int, columns: int) -> Stmt:
    i, j = Var("i"), Var("j")
    return _nest([(i, rows), (j, columns)], BlockRealize([i + 0, j + 0], const(True), what))


def whole_and_in_parts(rng: random.Random) -> tuple[PrimFunc, Filled]:
    """B filled by one block, and by two or three that were cut from it: often right, but parts are missing or late."""
    rows, columns = rng.choice([8, 12]), rng.choice([1, 1, 2])
    is_output, layout = rng.random() < 0.3, rng.choice([1, 1, 2])
    source, target = decl_buffer((rows, columns), name="A"), decl_buffer((rows, columns), name="C")
    buffer = decl_buffer((rows, columns) if layout == 1 else (rows // 2, columns, 2), name="B")

    def cell(v: Expr, q: Expr) -> list[Expr]:
        return [v, q] if layout == 1 else [v // 2, q, v % 2]

    def block(name: str, stored: Buffer, store: Sequence[Expr], value: Expr, axes: Sequence[Var]) -> Block:
        domains = [_axis(axes[0], rows, IterType.DataPar), _axis(axes[1], columns, IterType.DataPar)]
        return Block(domains, (), (), name, BufferStore(stored, value, store), None)

    def fill(name: str) -> Block:
        v, q = Var("v"), Var("q")
        return block(name, buffer, cell(v, q), BufferLoad(source, [v, q]), [v, q])

    u, w = Var("u"), Var("w")
    whole, use = fill("B"), block("C", target, [u, w], BufferLoad(buffer, cell(u, w)), [u, w])

    def run(what: Block, count: int, start: Expr, columns: int = columns) -> Stmt:
        i, j = Var("i"), Var("j")
        if count > 2 and count % 2 == 0 and rng.random() < 0.3:
            k = Var("k")
            loops, value = [(i, count // 2), (k, 2), (j, columns)], start + i * 2 + k
        else:
            loops, value = [(i, count), (j, columns)], start + i
        guards = [value < rows - rng.choice([0, 0, 0, 1])] if rng.random() < 0.2 else []
        if rng.random() < 0.3:
            rng.shuffle(loops)
        inside = logical_and(const(True), value >= 0, value < rows, *guards)
        return _nest(loops, BlockRealize([value, j + 0], inside, what))

    def function(body: Stmt) -> PrimFunc:
        arguments = [source, *([buffer] if is_output else []), target]
        memory = [] if is_output else [buffer]
        return PrimFunc(arguments, BlockRealize((), const(True), Block((), (), (), "root", body, None, memory)))

    before = function(seq([_run_all(whole, rows, columns), _run_all(use, rows, columns)]))
    many = rng.choice([1, 2, 2, 4])
    outer, tile = Var("l"), rows // many
    around = [(outer, many)] if many > 1 else []
    start: Expr = outer * tile if many > 1 else const(0)
    if many == 4 and rng.random() < 0.3:
        fused = Var("f")
        around, start = [(fused, 8)], fused // 2 * tile
    parts, renamed, done = [], {}, 0
    for k in range(rng.choice([2, 2, 3])):
        copy = whole if k == 0 else fill("B_tail")
        count = rng.randint(1, max(tile - done, 1)) if k == 0 or rng.random() < 0.3 else max(tile - done, 1)
        at = done + rng.choice([0] * 8 + [1, -1])
        parts.append(run(copy, count, start + at, columns - (rng.random() < 0.1 and columns > 1)))
        done += count
        if k:
            wrong = rng.random() < 0.15
            renamed[block_key(copy)] = (block_key(whole), lambda axes, wrong=wrong: _old_axes(axes, wrong, rows))
    if rng.random() < 0.3:
        rng.shuffle(parts)
    reading = [run(use, tile, start)]
    if rng.random() < 0.4:
        body = seq([_nest(around, seq(parts)), _run_all(use, rows, columns)])
    elif rng.random() < 0.1:
        body = seq([_nest(around, part) for part in [*parts, *reading]])
    else:
        parts.insert(len(parts) if rng.random() < 0.85 else rng.randrange(len(parts)), reading[0])
        body = _nest(around, seq(parts))
    return before, Filled(function(body), Origins(renamed=renamed))


def _old_axes(axes: Sequence[Var], is_wrong: bool, rows: int) -> list[Expr]:
    return [(axes[0] + 1) % rows if is_wrong else axes[0] + 0, axes[1] + 0]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("chunk", range(4))
def test_a_yes_to_blocks_that_fill_together_is_always_right(chunk):
    counts: Counter[str] = Counter()
    for seed in range(75 * chunk, 75 * (chunk + 1)):
        before, (after, origins) = whole_and_in_parts(random.Random(seed))
        sight = comparing._reaching_writes(after)
        settled = sight.settled.of(next(buffer for buffer in sight.dataflow.by_buffer if buffer.name == "B"))
        counts["together"] += settled is not None and len(settled.parts) > 1
        counts += compared(before, after, origins)
        answer = find_mismatch(before, after, origins)
        exact = find_mismatch(before, after, origins, by_lemmas=False)
        assert type(answer) is type(exact), f"{seed}\n{before.script()}\n{after.script()}"
        counts["same" if answer is None else "different"] += 1
        if answer is None:
            assert difference(evaluate_terms(before), evaluate_terms(after)) is None, f"{seed}\n{after.script()}"
    assert min(counts["together"], counts["same"], counts["different"]) > 10, counts


def test_a_loop_that_runs_once_and_two_guards_at_once():
    @T.prim_func
    def function(A: T.Buffer((1, 4, 4)), C: T.Buffer((6, 6))):
        B = T.alloc_buffer((1, 4, 4))
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[0, vi // 4, vi % 4] = A[0, vi // 4, vi % 4]
        for n, i, j in T.grid(1, 6, 6):
            with T.block("C"):
                un, ui, uj = T.axis.remap("SSS", [n, i, j])
                C[ui, uj] = T.if_then_else(ui < 4 and uj < 4, B[un, ui, uj], 0.0)

    assert is_settled(function, "B")
