"""Random valid programs, for tests that hold two ways of running or writing a program against each other.

`random_function(seed)` is a PrimFunc of a few stages. Each stage fills a buffer (element by element, by a reduction, by
a reduction of pairs, through a local buffer) from inputs and earlier stages. Every cell is written before it is read,
every index is in bounds, every operation has a defined result: no zero divisors, no wide shifts, and floats become
integers only where they are small (`random_values.py`). `random_arguments(func, seed)` are arrays to call it with.

Results that went through `exp` and its kind are approximate; they never decide a branch, an index or an integer, so
two correct implementations differ by rounding only. `math=False` leaves such functions out. Float inputs are small
multiples of 1/4: most float32 sums and products of them are exact.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loopwright.ir import (
    Allocate,
    And,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DataType,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    LetStmt,
    MatchBufferRegion,
    Or,
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
from loopwright.ir import intrinsics as tir
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.regions import infer_regions
from tests.random_values import DTYPES, FLOATS, SIGNED, Axis, Values, shape_of

EXTENTS = [0, 1, 1, 2, 2, 3, 3, 5, 5, 7]
_HERE = SourceLine(__file__, 1)


class Loop(NamedTuple):
    var: Var
    low: int
    extent: int
    spatial: bool


class Nest(NamedTuple):
    """Loops and, for each dimension, the value that runs over it; `guards` keep out what splitting added."""

    loops: list[Loop]
    bindings: list[Expr]
    guards: list[Expr]


def random_function(seed: int, *, math: bool = True, name: str = "main") -> PrimFunc:
    """A valid program; the same one for the same seed."""
    return Program(random.Random(seed), math).make(name)


def random_arguments(func: PrimFunc, seed: int) -> list[np.ndarray]:
    """An array for each buffer parameter: small numbers, and now and then the extreme integers."""
    rng = np.random.default_rng(seed)
    return [_random_array(rng, buffer) for buffer in func.argument_buffers()]


def _random_array(rng: np.random.Generator, buffer: Buffer) -> np.ndarray:
    shape = tuple(int(extent) for extent in buffer.shape)  # type: ignore[call-overload]
    dtype = buffer.dtype
    if dtype.is_bool:
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.is_float:
        return np.asarray(rng.integers(-32, 33, shape) / 4, dtype.numpy())
    values = np.asarray(rng.integers(0 if dtype.is_unsigned else -8, 9, shape), dtype.numpy())
    extremes = np.array([dtype.min_value(), dtype.max_value()], dtype.numpy())[rng.integers(0, 2, shape)]
    return np.asarray(np.where(rng.random(shape) < 0.05, extremes, values), dtype.numpy())


class Program:
    def __init__(self, rng: random.Random, math: bool) -> None:
        self.rng = rng
        self.math = math
        self.counter: dict[str, int] = {}
        self.index_dtype = DataType("int64" if rng.random() < 0.15 else "int32")
        self.inputs: list[Buffer] = []
        self.readable: list[Buffer] = []
        self.approximate: set[Buffer] = set()
        self.allocated: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.scalars: list[Var] = []
        self.plain_programs = 0.25  # the share without blocks

    def values(self, *parts: Any) -> Values:
        """What makes the values of a stage."""
        return Values(self, *parts)

    # --- choices ---

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, prefix: str) -> str:
        number = self.counter.get(prefix, 0)
        self.counter[prefix] = number + 1
        return f"{prefix}{number or ''}"

    def index(self, value: int) -> Expr:
        return const(value, self.index_dtype)

    def shape(self, ranks: tuple[int, ...] = (0, 1, 1, 2, 2, 2, 3)) -> tuple[int, ...]:
        made: list[int] = []
        size = 1
        for _ in range(self.rng.choice(ranks)):
            extent = self.rng.choice([e for e in EXTENTS if size * e <= 60])
            made.append(extent)
            size *= max(extent, 1)
        return tuple(made)

    def dtype(self) -> str:
        # The everyday types come up as often as all others together.
        return self.rng.choice(["float32", "int32"] if self.chance(0.4) else DTYPES)

    def buffer(self, prefix: str, shape: tuple[int, ...], dtype: str) -> Buffer:
        return decl_buffer([self.index(extent) for extent in shape], dtype, self.name(prefix))

    # --- the whole ---

    def make(self, name: str) -> PrimFunc:
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            self.inputs.append(self.buffer("A", self.shape(), self.dtype()))
        # Some float input is always there: it is what integers may be made from.
        self.inputs.append(self.buffer("A", self.shape((1, 2)), self.rng.choice(FLOATS)))
        self.readable = list(self.inputs)
        blocks = self.chance(1 - self.plain_programs)
        stages = self.rng.choice((1, 1, 2, 2, 3, 4))
        body: list[Stmt] = []
        for number in range(stages):
            kinds = [self.elementwise, self.elementwise, self.reduction, self.pairs]
            if blocks:
                kinds += [self.through_local, self.nested, self.matched]
            is_last = number == stages - 1
            body += self.rng.choice(kinds)(blocks, is_last)
        whole = seq(body)
        if blocks:
            whole = BlockRealize((), const(True), Block((), (), (), "root", whole, None, tuple(self.allocated)))
        else:
            for buffer in reversed(self.allocated):
                whole = Allocate(buffer.data, buffer.dtype, buffer.shape, const(True), DeclBuffer(buffer, whole))
        attrs: dict[str, object] = {"global_symbol": name}
        if self.chance(0.5):
            attrs["tir.noalias"] = True
        return PrimFunc([*self.inputs, *self.outputs, *self.scalars], whole, attrs=attrs)

    def target(self, shape: tuple[int, ...], dtype: str, is_last: bool, exact: bool) -> Buffer:
        """A new buffer for a stage to fill: an output, or memory of the function."""
        made = self.buffer("C" if is_last or self.chance(0.3) else "B", shape, dtype)
        (self.outputs if made.name.startswith("C") else self.allocated).append(made)
        if not exact:
            self.approximate.add(made)
        return made

    # --- nests ---

    def nest(self, extents: list[tuple[int, bool]]) -> Nest:
        """Loops over the dimensions: plain, from another start, split, or two of them fused."""
        loops: list[Loop] = []
        bindings: list[Expr] = []
        guards: list[Expr] = []
        position = 0
        while position < len(extents):
            extent, spatial = extents[position]
            following = extents[position + 1] if position + 1 < len(extents) else (0, not spatial)
            if following[1] == spatial and following[0] > 0 and self.chance(0.12):
                var = Var(self.name("f"), self.index_dtype)
                loops.append(Loop(var, 0, extent * following[0], spatial))
                bindings += [var // following[0], var % following[0]]
                position += 2
                continue
            if extent > 1 and self.chance(0.2):
                factor = self.rng.choice((2, 3))
                outer, inner = Var(self.name("io"), self.index_dtype), Var(self.name("ii"), self.index_dtype)
                loops += [Loop(outer, 0, -(-extent // factor), spatial), Loop(inner, 0, factor, spatial)]
                bindings.append(outer * factor + inner)
                if extent % factor:
                    guards.append(bindings[-1] < extent)
            else:
                low = self.rng.choice((1, 2)) if self.chance(0.1) else 0
                var = Var(self.name("i" if spatial else "k"), self.index_dtype)
                loops.append(Loop(var, low, extent, spatial))
                bindings.append(var - low if low else var)
            position += 1
        if self.chance(0.3):
            self.rng.shuffle(loops)
        return Nest(loops, bindings, guards)

    def wrap(self, nest: Nest, body: Stmt, vector: bool = True) -> Stmt:
        """The loops of the nest around `body`, with kinds that cannot change its result."""
        last = len(nest.loops) - 1
        for place in range(last, -1, -1):
            loop = nest.loops[place]
            kind = ForKind.SERIAL
            if place == last and vector and loop.spatial and loop.extent > 1 and self.chance(0.25):
                kind = ForKind.VECTORIZED
            elif place == 0 and loop.spatial and self.chance(0.2):
                kind = ForKind.PARALLEL
            elif loop.extent <= 4 and self.chance(0.1):
                kind = ForKind.UNROLLED
            annotations: dict[str, object] = {"pragma_note": place} if self.chance(0.03) else {}
            body = For(loop.var, self.index(loop.low), self.index(loop.extent), kind, body, None, annotations)
        return body

    def block(
        self,
        nest: Nest,
        extents: list[tuple[int, bool]],
        make: Callable[[list[Expr]], tuple[Stmt, Stmt | None]],
        **parts: Any,
    ) -> Stmt:
        """A block over the nest; `make` gives its body and init in terms of its axes."""
        axes, values, inside = [], [], []
        for (extent, spatial), binding in zip(extents, nest.bindings, strict=True):
            low = 1 if self.chance(0.06) else 0
            var = Var(self.name("vi" if spatial else "vk"), self.index_dtype)
            dom = Range.from_min_extent(self.index(low), self.index(extent))
            axes.append(IterVar(dom, var, IterType.DataPar if spatial else IterType.CommReduce))
            values.append(binding + low if low else binding)
            inside.append(var - low if low else var)
        body, init = make(inside)
        block = Block(tuple(axes), (), (), self.name("block"), body, init, **parts)
        reads, writes = infer_regions(block, _HERE)
        predicate = logical_and(*nest.guards) if nest.guards else const(True)
        return BlockRealize(tuple(values), predicate, block.with_(reads=tuple(reads), writes=tuple(writes)))

    def stage(
        self,
        blocks: bool,
        extents: list[tuple[int, bool]],
        make: Callable[[list[Expr]], tuple[Stmt, Stmt | None]],
        vector: bool = True,
    ) -> Stmt:
        """One stage over `extents`: a block, or plain loops when the program has no blocks (then without init)."""
        nest = self.nest(extents)
        if blocks:
            return self.wrap(nest, self.block(nest, extents, make), vector)
        body, _ = make(nest.bindings)
        if nest.guards:
            body, vector = IfThenElse(logical_and(*nest.guards), body), False
        return self.wrap(nest, body, vector)

    # --- stages ---

    def elementwise(self, blocks: bool, is_last: bool) -> list[Stmt]:
        shape, dtype, exact = self.shape(), self.dtype(), not (self.math and self.chance(0.4))
        updated = [b for b in (*self.allocated, *self.outputs) if b in self.readable]
        in_place = bool(updated) and not is_last and self.chance(0.2)
        if in_place:
            out = self.rng.choice(updated)
            shape, dtype = shape_of(out), str(out.dtype)
            exact = exact and out not in self.approximate
            if not exact:
                self.approximate.add(out)
        else:
            out = self.target(shape, dtype, is_last, exact)
        extents = [(extent, True) for extent in shape]
        form = self.rng.random()
        plain = form > 0.3

        def make(inside: list[Expr]) -> tuple[Stmt, None]:
            axes = [Axis(var, extent) for var, extent in zip(inside, shape, strict=True)]
            # An in-place update may read its own cell only: other cells of the buffer change meanwhile.
            hidden = [b for b in self.readable if b is not out]
            own = [out] if in_place else []
            values = self.values(axes, hidden, own, inside)
            value = values.make(dtype, 3, exact)
            if plain:
                return BufferStore(out, value, inside), None
            if form > 0.2:
                var = Var(self.name("x"), value.dtype)
                values.lets.append(var)
                return LetStmt(var, value, BufferStore(out, values.make(dtype, 2, exact), inside)), None
            condition = values.condition(2)
            if form > 0.1:
                other = BufferStore(out, values.make(dtype, 2, exact), inside)
                return IfThenElse(condition, BufferStore(out, value, inside), other), None
            first = BufferStore(out, value, inside)
            return seq([first, IfThenElse(condition, BufferStore(out, values.make(dtype, 2, exact), inside))]), None

        made = self.stage(blocks, extents, make, vector=plain)
        if not in_place:
            self.readable.append(out)
        return [made]

    def reduction(self, blocks: bool, is_last: bool) -> list[Stmt]:
        dtype, exact = self.dtype(), not (self.math and self.chance(0.3))
        shape = self.shape((0, 1, 1, 2))
        out = self.target(shape, dtype, is_last, exact)
        reduced = [self.rng.choice(EXTENTS) for _ in range(self.rng.choice((1, 1, 2)))]
        combine, start = self.combiner(out.dtype)
        extents = [(extent, True) for extent in shape] + [(extent, False) for extent in reduced]
        rank = len(shape)

        def make(inside: list[Expr]) -> tuple[Stmt, Stmt]:
            axes = [Axis(var, extent) for var, (extent, _) in zip(inside, extents, strict=True)]
            value = self.values(axes, self.readable, [], []).make(dtype, 2, exact)
            cell = inside[:rank]
            update = BufferStore(out, combine(BufferLoad(out, tuple(cell)), value), cell)
            return update, BufferStore(out, start, cell)

        made = self._reduce(blocks, shape, extents, make)
        self.readable.append(out)
        return made

    def _reduce(
        self,
        blocks: bool,
        shape: tuple[int, ...],
        extents: list[tuple[int, bool]],
        make: Callable[[list[Expr]], tuple[Stmt, Stmt]],
    ) -> list[Stmt]:
        if blocks:
            return [self.stage(True, extents, make)]
        # Without blocks the start values are a nest of their own.
        unused = [const(0, self.index_dtype)] * (len(extents) - len(shape))

        def start(inside: list[Expr]) -> tuple[Stmt, None]:
            return make([*inside, *unused])[1], None

        first = self.stage(False, extents[: len(shape)], start)
        return [first, self.stage(False, extents, make, vector=False)]

    def combiner(self, dtype: DataType) -> tuple[Callable[[Expr, Expr], Expr], Expr]:
        if dtype.is_bool:
            return self.rng.choice([(Or, const(False)), (And, const(True))])
        lowest = const(float("-inf"), dtype) if dtype.is_float else tir.min_value(dtype)
        highest = const(float("inf"), dtype) if dtype.is_float else tir.max_value(dtype)
        return self.rng.choice(
            [
                (lambda a, b: a + b, const(0, dtype)),
                (lambda a, b: a + b, const(0, dtype)),
                (lambda a, b: b + a, const(1, dtype)),
                (tir.maximum, lowest),
                (tir.minimum, highest),
            ]
        )

    def pairs(self, blocks: bool, is_last: bool) -> list[Stmt]:
        """The greatest (or least) value along an axis and where it stands: two buffers, one reduction."""
        dtype = self.rng.choice(["float32", "int32", *SIGNED, *FLOATS])
        shape = self.shape((0, 1, 1, 2))
        place = self.target(shape, self.rng.choice(("int32", "int64")), is_last, True)
        best = self.target(shape, dtype, is_last, True)
        length = self.rng.choice(EXTENTS)
        extents = [(extent, True) for extent in shape] + [(length, False)]
        greatest = self.chance(0.5)

        def make(inside: list[Expr]) -> tuple[Stmt, Stmt]:
            axes = [Axis(var, extent) for var, (extent, _) in zip(inside, extents, strict=True)]
            value = self.values(axes, self.readable, [], []).make(dtype, 1, True)
            cell = tuple(inside[:-1])
            old, at = BufferLoad(best, cell), BufferLoad(place, cell)
            keep = old >= value if greatest else old <= value
            new_place = Var(self.name("v_place"), place.dtype)
            new_best = Var(self.name("v_best"), best.dtype)
            body: Stmt = seq([BufferStore(place, new_place, cell), BufferStore(best, new_best, cell)])
            body = LetStmt(new_best, Select(keep, old, value), body)
            body = LetStmt(new_place, Select(keep, at, cast(inside[-1], place.dtype)), body)
            bound = float("-inf" if greatest else "inf")
            edge = tir.min_value(dtype) if greatest else tir.max_value(dtype)
            start = const(bound, dtype) if best.dtype.is_float else edge
            init = seq([BufferStore(place, const(-1, place.dtype), cell), BufferStore(best, start, cell)])
            return body, init

        made = self._reduce(blocks, shape, extents, make)
        self.readable += [place, best]
        return made

    def through_local(self, blocks: bool, is_last: bool) -> list[Stmt]:
        """A block that fills memory of its own, then reads it."""
        shape, dtype, exact = self.shape((1, 1, 2)), self.dtype(), not (self.math and self.chance(0.3))
        out = self.target(shape, dtype, is_last, exact)
        length = self.rng.choice((1, 2, 3, 5))
        local = self.buffer("L", (length,), self.dtype())
        extents = [(extent, True) for extent in shape]
        if not exact:
            self.approximate.add(local)

        def make(inside: list[Expr]) -> tuple[Stmt, None]:
            axes = [Axis(var, extent) for var, extent in zip(inside, shape, strict=True)]
            var = Var(self.name("j"), self.index_dtype)
            values = self.values([*axes, Axis(var, length)], self.readable, [], [])
            fill = BufferStore(local, values.make(str(local.dtype), 2, exact), (var,))
            kind = ForKind.UNROLLED if self.chance(0.3) else ForKind.SERIAL
            loop = For(var, self.index(0), self.index(length), kind, fill)
            use = self.values(axes, [local, local, *self.readable], [], []).make(dtype, 2, exact)
            return seq([loop, BufferStore(out, use, inside)]), None

        nest = self.nest(extents)
        made = self.wrap(nest, self.block(nest, extents, make, alloc_buffers=(local,)), vector=False)
        self.readable.append(out)
        return [made]

    def nested(self, blocks: bool, is_last: bool) -> list[Stmt]:
        """A reduction in a block inside a block."""
        dtype, exact = self.dtype(), not (self.math and self.chance(0.3))
        shape = self.shape((1, 2))
        out = self.target(shape, dtype, is_last, exact)
        combine, start = self.combiner(out.dtype)
        outer, inner = [(shape[0], True)], [(e, True) for e in shape[1:]] + [(self.rng.choice(EXTENTS), False)]

        def make_outer(first: list[Expr]) -> tuple[Stmt, None]:
            def make_inner(rest: list[Expr]) -> tuple[Stmt, Stmt]:
                axes = [Axis(v, e) for v, (e, _) in zip([*first, *rest], [*outer, *inner], strict=True)]
                value = self.values(axes, self.readable, [], []).make(dtype, 2, exact)
                cell = (*first, *rest[:-1])
                return BufferStore(out, combine(BufferLoad(out, cell), value), cell), BufferStore(out, start, cell)

            nest = self.nest(inner)
            return self.wrap(nest, self.block(nest, inner, make_inner), vector=False), None

        nest = self.nest(outer)
        made = self.wrap(nest, self.block(nest, outer, make_outer), vector=False)
        self.readable.append(out)
        return [made]

    def matched(self, blocks: bool, is_last: bool) -> list[Stmt]:
        """A block that looks at a row of an input under another name."""
        rows = [b for b in self.inputs if len(b.shape) == 2 and 0 not in shape_of(b)]
        if not rows:
            return self.elementwise(blocks, is_last)
        source = self.rng.choice(rows)
        count, length = shape_of(source)
        dtype, exact = self.dtype(), not (self.math and self.chance(0.3))
        out = self.target((count,), dtype, is_last, exact)
        row = decl_buffer([self.index(length)], source.dtype, self.name("row"), offset_factor=1)
        extents = [(count, True)]
        nest = self.nest(extents)

        def make(inside: list[Expr]) -> tuple[Stmt, None]:
            axes = [Axis(inside[0], count)]
            value = self.values(axes, [row, row, *self.readable], [], []).make(dtype, 2, exact)
            return BufferStore(out, value, inside), None

        realize = self.block(nest, extents, make)
        assert isinstance(realize, BlockRealize)
        block = realize.block
        at = block.iter_vars[0].var - block.iter_vars[0].dom.min  # type: ignore[union-attr]
        at = block.iter_vars[0].var if int(block.iter_vars[0].dom.min) == 0 else at  # type: ignore[union-attr, call-overload]
        region = BufferRegion(
            source,
            (
                Range.from_min_extent(at, self.index(1)),
                Range.from_min_extent(self.index(0), self.index(length)),
            ),
        )
        whole = BufferRegion(source, tuple([Range.from_min_extent(self.index(0), extent) for extent in source.shape]))
        reads = tuple([r for r in block.reads if r.buffer is not row and r.buffer is not source])
        block = block.with_(match_buffers=(MatchBufferRegion(row, region),), reads=(*reads, whole))
        made = self.wrap(nest, realize.with_(block=block), vector=False)
        self.readable.append(out)
        return [made]
