"""Attention kernel: tiles of queries, one after the other; the scores never leave registers.

    for tile in blockIdx.x:                                   `resident_blocks` of them run all tiles
        keys:     Q = 64 · groups queries                     tensor copies of one thread
        multiply: O, total = 0, top = -inf
        for j in tiles of keys:                               `warp_role_stages` of them under way
            keys:     K = keys of tile j                      tensor copies
            values:   V = values of tile j - 1                tensor copies
            multiply: S = Q · Kᵀ                              wgmma, accumulators in registers
                      O += P · V                              wgmma, P in registers
                      P = exp2(S · scale - top)               beside the product
                      top, total and O follow the new maximum
        multiply: out = O / total

As it stands this is a program of plain loops in the order of its text; `multiply.py` has what the threads do that
multiply. In order, without overlapping, the values of tile j are weighed in its own turn.

Where few tiles of queries see many keys, several blocks share the keys of each: they store O, top and total, which a
second kernel joins (`join.py`). Of a single query, the rows of the tile are the heads that share keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.analysis.warp_roles import REGISTERS, ROLE, SLOTS, STAGES
from loopwright.autosched.gpu.attention.join import Parts, join_parts
from loopwright.autosched.gpu.attention.multiply import COLUMNS, Multiply
from loopwright.autosched.gpu.attention.plan import ROW_BYTES, AttentionPlan, AttentionShape
from loopwright.ir import Expr, For, ForKind, IntImm, IterType, IterVar, Max, Min, Select, Stmt, Var, const, logical_and
from loopwright.ir.intrinsics import if_then_else
from loopwright.ir.ir_builder import BufferVar, create
from loopwright.transform.on_request.launch_threads import RESIDENT_BLOCKS

_LOADS, _WEIGHTS, _MULTIPLIES = "keys", "values", "multiply"  # the roles
_WARP_LANES = 32


def attention_kernel(shape: AttentionShape, plan: AttentionPlan) -> Stmt:
    """The kernel of a shape, or both of them."""
    return _Kernel(shape, plan).written()


class _Kernel:
    def __init__(self, shape: AttentionShape, plan: AttentionPlan) -> None:
        self.shape, self.plan = shape, plan
        self.ib = create()
        self.query, self.key, self.value, self.out = (
            self.ib.buffer_ptr(buffer) for buffer in (shape.query, shape.key, shape.value, shape.out)
        )
        self.dtype = shape.query.dtype
        self.row = ROW_BYTES // self.dtype.nbytes  # elements of a row of a tile

    def written(self) -> Stmt:
        ib = self.ib
        parts = Parts(ib, self.shape, self.plan.splits) if self.plan.splits > 1 else None
        with ib.new_scope():
            self._kernel(parts)
        if parts is not None:
            with ib.new_scope():
                join_parts(ib, self.shape, parts, self.out)
        return ib.get()

    def _kernel(self, parts: Parts | None) -> None:
        ib, shape, plan = self.ib, self.shape, self.plan
        self._tile_of_queries()
        self.q = self._tile(plan.queries, "Q")
        self.multiply = Multiply(ib, shape, plan)
        with self._role(_LOADS, _WARP_LANES):
            self._copy_queries()
        with self._role(_MULTIPLIES, plan.threads):
            self.multiply.begin()
        with ib.new_scope():
            count = self._key_tiles()
            self._turns(count)
            self.k, self.v = (self._tile(plan.keys, name) for name in ("K", "V"))
            if plan.overlaps:
                self._turn_overlapped(count)
            else:
                self._turn()
        with self._role(_MULTIPLIES, plan.threads):
            if parts is None:
                self._store()
            else:
                self._store_part(parts)

    # --- tiles --------------------------------------------------------------------------------------------------------

    def _tile_of_queries(self) -> None:
        """The rest of the scope runs for each tile of queries, and for each part of the keys."""
        ib, shape, plan = self.ib, self.shape, self.plan
        row_tiles = 1 if plan.rows_are_heads else -(-shape.queries // plan.queries)
        heads = shape.heads // shape.group if plan.rows_are_heads else shape.heads
        tile = self._blocks(row_tiles * shape.batch * heads * plan.splits)
        rest, self.part = (tile // plan.splits, tile % plan.splits) if plan.splits > 1 else (tile, const(0))
        rows, head = rest // (shape.batch * heads), rest % (shape.batch * heads)
        if shape.causal:  # those that see most keys first
            rows = row_tiles - 1 - rows
        self.first = ib.let("first", rows * plan.queries)  # query of the tile
        self.b, self.h = ib.let("b", head // heads), ib.let("h", head % heads)
        self.kh = self.h
        if plan.rows_are_heads:
            self.h = ib.let("first_head", self.kh * shape.group)
        elif shape.group > 1:
            self.kh = ib.let("kh", self.h // shape.group)

    def _blocks(self, count: int) -> Var:
        """The rest of the scope runs on so many blocks."""
        var, tag = Var("tile", "int32"), "blockIdx.x"
        axis = IterVar(None, Var(tag, "int32"), IterType.ThreadIndex, tag)
        marks = {RESIDENT_BLOCKS: IntImm("int32", self.plan.blocks), SLOTS: IntImm("int32", self.plan.query_stages)}

        def loop(body: Stmt) -> Stmt:
            kind = ForKind.THREAD_BINDING
            return For(var, const(0), const(count), kind, body, thread_binding=axis, annotations=marks)

        self.ib.emit(loop)
        return var

    def _key_tiles(self) -> Expr:
        """How many tiles of keys the queries of the tile see, in this part of the keys; the first one is `base`."""
        shape, plan = self.shape, self.plan
        tiles = -(-shape.keys // plan.keys)
        seen: Expr = const(tiles)
        if shape.causal:
            last = self._sees(const(0 if plan.rows_are_heads else plan.queries - 1))
            seen = Max(Min((last + plan.keys) // plan.keys, seen), const(0))
        if plan.splits == 1:
            self.base: Expr = const(0)
            return seen
        each = -(-tiles // plan.splits)
        self.base = self.ib.let("base", self.part * each)
        return Max(Min(seen - self.base, const(each)), const(0))

    def _turns(self, count: Expr) -> None:
        """The rest of the scope runs for each tile of keys, and once more where values come one turn later."""
        plan = self.plan
        annotations = {STAGES: IntImm("int32", plan.stages)}
        if plan.registers:
            annotations[REGISTERS] = IntImm("int32", plan.registers)
        turns = if_then_else(count > 0, count + 1, const(0)) if plan.overlaps else count
        self.j = Var("j", "int32")
        self.ib.emit(lambda body: For(self.j, const(0), turns, ForKind.SERIAL, body, annotations=annotations))

    def _turn(self) -> None:
        """Keys and values of one tile."""
        with self._role(_LOADS, _WARP_LANES):
            self._copy(self.k, self.key, 1, self._first_key(self.j))
        with self._role(_WEIGHTS, _WARP_LANES):
            self._copy(self.v, self.value, 2, self._first_key(self.j))
        with self._role(_MULTIPLIES, self.plan.threads):
            self._scores()
            self._softmax()
            self.multiply.weigh(self.v)

    def _turn_overlapped(self, count: Expr) -> None:
        """Keys of tile j, and values of tile j - 1: tensor cores weigh these while others become weights."""
        ib, j = self.ib, self.j
        with self._role(_LOADS, _WARP_LANES), ib.if_scope(j < count):
            self._copy(self.k, self.key, 1, self._first_key(j))
        with self._role(_WEIGHTS, _WARP_LANES), ib.if_scope(j > 0):
            self._copy(self.v, self.value, 2, self._first_key(j - 1))
        with self._role(_MULTIPLIES, self.plan.threads):
            with ib.if_scope(j.equal(0)):
                self._scores()
                self._softmax()
            with ib.else_scope():
                with ib.if_scope(j < count):
                    self._scores()
                    self.multiply.weigh(self.v)
                    self._softmax()
                with ib.else_scope():
                    self.multiply.weigh(self.v)

    def _scores(self) -> None:
        self.multiply.scores(self.q, self.k)

    def _softmax(self) -> None:
        self.multiply.softmax(self._first_key(self.j), self._sees)

    def _first_key(self, j: Expr) -> Expr:
        return (self.base + j) * self.plan.keys

    def _sees(self, row: Expr) -> Expr:
        """The last key that a row of the tile sees."""
        query = self.first if self.plan.rows_are_heads else self.first + row
        return query + self.shape.diagonal

    @contextmanager
    def _role(self, name: str, threads: int) -> Iterator[None]:
        with self.ib.new_scope():
            self.ib.scope_attr(name, ROLE, threads)
            yield

    # --- memory -------------------------------------------------------------------------------------------------------

    def _tile(self, rows: int, name: str) -> BufferVar:
        """A tile in shared memory: columns of 128 bytes, each with all rows."""
        return self.ib.allocate(self.dtype, (self.shape.depth // self.row, rows, self.row), name, scope="shared.dyn")

    def _copy_queries(self) -> None:
        """The queries of the tile, by one thread; 0 beyond the last one."""
        with self._elements(self.q) as (c, r, i):
            at, column = self.first + r, c * self.row + i
            is_there, place = at < self.shape.queries, self._place(0, self.h, at, column)
            if self.plan.rows_are_heads:
                head = self.h + r
                is_there, place = head < self.shape.heads, self._place(0, head, self.first, column)
            self.q[c, r, i] = if_then_else(is_there, self.query[place], const(0, self.dtype))

    def _copy(self, tile: BufferVar, source: BufferVar, operand: int, first: Expr) -> None:
        """Keys or values from the first one on, by one thread; 0 beyond the last one."""
        with self._elements(tile) as (c, r, i):
            value = source[self._place(operand, self.kh, first + r, c * self.row + i)]
            tile[c, r, i] = if_then_else(first + r < self.shape.keys, value, const(0, self.dtype))

    @contextmanager
    def _elements(self, tile: BufferVar) -> Iterator[tuple[Var, Var, Var]]:
        sizes = tile.asobject().shape
        with (
            self.ib.for_range(0, sizes[0], "c") as c,
            self.ib.for_range(0, sizes[1], "r") as r,
            self.ib.for_range(0, sizes[2], "i") as i,
        ):
            yield c, r, i

    def _place(self, operand: int, head: Expr, at: Expr, element: Expr) -> tuple[Expr, ...]:
        where = {"B": self.b, "H": head, "S": at, "D": element}
        return tuple([where[letter] for letter in self.shape.orders[operand]])

    def _of_row(self, row: Expr) -> tuple[Expr, Expr, Expr]:
        """The head and the query of a row of the tile, and whether there is one."""
        if self.plan.rows_are_heads:
            return self.h + row, self.first, row < self.shape.group
        return self.h, self.first + row, self.first + row < self.shape.queries

    def _store(self) -> None:
        """The sums over totals of weights."""
        ib, shape, multiply = self.ib, self.shape, self.multiply
        o, total = multiply.o, multiply.total
        with multiply.threads() as thread:
            inverse = ib.allocate("float32", (2,), "inverse", scope="local")
            with ib.for_range(0, 2, "h", kind="unroll") as h:
                inverse[h] = total[(*thread, h)]
                multiply.over_quad(inverse, h, lambda x, y: x + y)
                inverse[h] = inverse_of(inverse[h], shape.hidden_is_zero)
            with (
                ib.for_range(0, shape.depth // COLUMNS, "j", kind="unroll") as j,
                ib.for_range(0, 2, "h", kind="unroll") as h,
            ):
                head, query, is_there = self._of_row(thread.row(h))
                with ib.if_scope(is_there), ib.for_range(0, 2, "e", kind="vectorize") as e:
                    value = o[(*thread, j, h, e)] * inverse[h]
                    self.out[self._place(3, head, query, thread.column(j, e))] = value.astype(self.dtype)

    def _store_part(self, parts: Parts) -> None:
        """The sums of this part of the keys, and what they are measured by."""
        ib, shape, multiply = self.ib, self.shape, self.multiply
        with multiply.threads() as thread:
            total = ib.allocate("float32", (2,), "row_total", scope="local")
            with ib.for_range(0, 2, "h", kind="unroll") as h:
                total[h] = multiply.total[(*thread, h)]
                multiply.over_quad(total, h, lambda x, y: x + y)
                head, query, is_there = self._of_row(thread.row(h))
                row = parts.row(self.b, head, query)
                with ib.if_scope(logical_and(is_there, thread.lane.equal(0))):
                    parts.top[row, self.part] = multiply.top[(*thread, h)]
                    parts.total[row, self.part] = total[h]
                with (
                    ib.if_scope(is_there),
                    ib.for_range(0, shape.depth // COLUMNS, "j", kind="unroll") as j,
                    ib.for_range(0, 2, "e", kind="vectorize") as e,
                ):
                    parts.sums[row, self.part, thread.column(j, e)] = multiply.o[(*thread, j, h, e)]


def inverse_of(total: Expr, hidden_is_zero: bool) -> Expr:
    """1 / total; where no key is seen, that is no number, or 0."""
    result: Expr = const(1.0, "float32") / total
    zero = const(0.0, "float32")
    return Select(total.equal(zero), zero, result) if hidden_is_zero else result
