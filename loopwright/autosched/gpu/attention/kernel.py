"""Attention kernel: blocks of queries, one after the other; the scores never leave registers.

    for tile in blockIdx.x:                                   `resident_blocks` of them run all tiles
        keys:     Q = 64 · groups queries                     tensor copies of one thread
        multiply: O, total = 0, top = -inf
        for j in tiles of keys:                               `warp_role_stages` of them under way
            keys:     K = keys of the tile                    tensor copies
            values:   V = values of the tile                  tensor copies
            multiply: S = Q · Kᵀ                              wgmma, accumulators in registers
                      top, total and O follow the new maximum
                      P = exp2(S · scale - top)               float16 or bfloat16
                      O += P · V                              wgmma, P in registers
        multiply: out = O / total

As it stands this is a program of plain loops in the order of its text. What a thread holds of S and O is what tensor
cores leave to it: lane x of a quad, quad y of a warp, warp z. P is written by these threads and multiplied by their
quad: `use_warpgroups` finds that each has what it needs, so that P takes no shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import e as euler
from math import log2
from typing import Final, NamedTuple

from loopwright.analysis.warp_roles import REGISTERS, ROLE, SLOTS, STAGES, TENSOR_CORE
from loopwright.autosched.gpu.attention.plan import GROUP_ROWS, ROW_BYTES, AttentionPlan, AttentionShape
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import shuffled
from loopwright.ir import (
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    IterVar,
    Max,
    Min,
    Select,
    Stmt,
    StringImm,
    Var,
    const,
    logical_or,
)
from loopwright.ir.intrinsics import exp2_approx, if_then_else
from loopwright.ir.ir_builder import BufferVar, create
from loopwright.ir.machine_intrinsics import tvm_warp_shuffle_xor
from loopwright.ir.warpgroup_intrinsics import compute_now
from loopwright.transform.on_request.launch_threads import RESIDENT_BLOCKS

_NEVER: Final = float("-inf")
_STEP: Final = 16  # of K in one wgmma
_COLUMNS: Final = 8  # of D from one pair of a thread to the next


class _Thread(NamedTuple):
    """The number of a thread of the role that multiplies: its warp, its quad, its lane of that."""

    warp: Expr
    quad: Expr
    lane: Expr

    def row(self, h: Expr) -> Expr:
        """The query of the block that row h of a thread's share is."""
        return self.warp * 16 + h * 8 + self.quad

    def column(self, j: Expr, e: Expr) -> Expr:
        return j * 8 + self.lane * 2 + e


def attention_kernel(shape: AttentionShape, plan: AttentionPlan) -> Stmt:
    """The kernel of a shape."""
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
        self.warps = plan.threads // 32
        self.scale = shape.scale * log2(euler)  # powers of 2 cost less than those of e

    def written(self) -> Stmt:
        ib, shape, plan = self.ib, self.shape, self.plan
        self.row_tiles = -(-shape.queries // plan.queries)
        tiles = self.row_tiles * shape.batch * shape.heads
        tile = self._loop("blockIdx.x", tiles, {RESIDENT_BLOCKS: plan.blocks, SLOTS: plan.query_stages})
        rows, head = tile // (shape.batch * shape.heads), tile % (shape.batch * shape.heads)
        if shape.causal:  # those that see most keys first
            rows = self.row_tiles - 1 - rows
        self.first = ib.let("first", rows * plan.queries)
        self.b, self.h = ib.let("b", head // shape.heads), ib.let("h", head % shape.heads)
        self.kh = ib.let("kh", self.h // shape.group) if shape.group > 1 else self.h
        self._allocate()
        with self._role("keys", 32):
            self._copy(self.q, self.query, 0, self.h, self.first, plan.queries, shape.queries)
        with self._role("multiply", plan.threads):
            self._begin()
        with ib.new_scope():
            self.j = Var("j", "int32")
            annotations = {STAGES: IntImm("int32", plan.stages)}
            if plan.registers:
                annotations[REGISTERS] = IntImm("int32", plan.registers)
            count = self._blocks()
            turns = count if not plan.overlaps else if_then_else(count > 0, count + 1, const(0))
            ib.emit(lambda body: For(self.j, const(0), turns, ForKind.SERIAL, body, annotations=annotations))
            self.k, self.v = (self._tile(plan.keys, name) for name in ("K", "V"))
            if plan.overlaps:
                self._turn_overlapped(count)
            else:
                self._turn()
        with self._role("multiply", plan.threads):
            self._store()
        return ib.get()

    def _turn(self) -> None:
        """Keys and values of one tile."""
        ib, shape, plan = self.ib, self.shape, self.plan
        with self._role("keys", 32):
            self._copy(self.k, self.key, 1, self.kh, self.j * plan.keys, plan.keys, shape.keys)
        with self._role("values", 32):
            self._copy(self.v, self.value, 2, self.kh, self.j * plan.keys, plan.keys, shape.keys)
        with self._role("multiply", plan.threads):
            self.p = ib.allocate(self.dtype, (plan.queries, plan.keys), "P", scope="shared")
            self._in_threads(self._scores)
            self._in_threads(self._softmax)
            self._in_threads(self._weigh)

    def _turn_overlapped(self, count: Expr) -> None:
        """Keys of tile j, and values of tile j - 1: tensor cores weigh these while others become weights."""
        ib, shape, plan, j = self.ib, self.shape, self.plan, self.j
        with self._role("keys", 32), ib.if_scope(j < count):
            self._copy(self.k, self.key, 1, self.kh, j * plan.keys, plan.keys, shape.keys)
        with self._role("values", 32), ib.if_scope(j > 0):
            self._copy(self.v, self.value, 2, self.kh, (j - 1) * plan.keys, plan.keys, shape.keys)
        with self._role("multiply", plan.threads):
            with ib.if_scope(j.equal(0)):
                self._in_threads(self._scores)
                self._in_threads(self._softmax)
            with ib.else_scope():
                with ib.if_scope(j < count):
                    self._in_threads(self._scores)
                    self._in_threads(self._weigh)
                    self._in_threads(self._softmax)
                with ib.else_scope():
                    self._in_threads(self._weigh)

    def _in_threads(self, what: Callable[[_Thread], None]) -> None:
        with self._threads() as thread:
            what(thread)

    # --- structure ----------------------------------------------------------------------------------------------------

    def _loop(self, tag: str, extent: int, annotations: dict[str, int]) -> Var:
        """The rest of the scope runs on so many blocks."""
        var = Var(tag.replace("Idx.", "_"), "int32")
        axis = IterVar(None, Var(tag, "int32"), IterType.ThreadIndex, tag)
        marks = {name: IntImm("int32", value) for name, value in annotations.items()}

        def loop(body: Stmt) -> Stmt:
            kind = ForKind.THREAD_BINDING
            return For(var, const(0), const(extent), kind, body, thread_binding=axis, annotations=marks)

        self.ib.emit(loop)
        return var

    @contextmanager
    def _role(self, name: str, threads: int) -> Iterator[None]:
        with self.ib.new_scope():
            self.ib.scope_attr(name, ROLE, threads)
            yield

    @contextmanager
    def _threads(self) -> Iterator[_Thread]:
        with self.ib.new_scope():
            z, y, x = (run_on(self.ib, f"threadIdx.{a}", size) for a, size in (("z", self.warps), ("y", 8), ("x", 4)))
            yield _Thread(z, y, x)

    def _blocks(self) -> Expr:
        """How many tiles of keys the queries of the tile see."""
        shape, plan = self.shape, self.plan
        blocks = -(-shape.keys // plan.keys)
        if not shape.causal:
            return const(blocks)
        seen = (self.first + (plan.queries + shape.diagonal + plan.keys - 1)) // plan.keys
        return Max(Min(seen, const(blocks)), const(0))

    # --- memory -------------------------------------------------------------------------------------------------------

    def _allocate(self) -> None:
        """What lives as long as a tile of queries: of each thread its share of the tiles, and of the rows."""
        ib, plan = self.ib, self.plan
        own = (self.warps, 8, 4)
        self.q = self._tile(plan.queries, "Q")
        self.s = ib.allocate("float32", (*own, plan.keys // _COLUMNS, 2, 2), "S", scope="local")
        self.o = ib.allocate("float32", (*own, self.shape.depth // _COLUMNS, 2, 2), "O", scope="local")
        self.top = ib.allocate("float32", (*own, 2), "top", scope="local")
        self.total = ib.allocate("float32", (*own, 2), "total", scope="local")
        if plan.overlaps:  # weights live until the next turn
            self.p = ib.allocate(self.dtype, (plan.queries, plan.keys), "P", scope="shared")

    def _tile(self, rows: int, name: str) -> BufferVar:
        """A tile in shared memory: columns of 128 bytes, each with all rows."""
        return self.ib.allocate(self.dtype, (self.shape.depth // self.row, rows, self.row), name, scope="shared.dyn")

    def _copy(
        self, tile: BufferVar, source: BufferVar, operand: int, head: Expr, first: Expr, rows: int, length: int
    ) -> None:
        """Rows of a tensor become a tile, by one thread: 0 beyond the last one."""
        ib = self.ib
        with (
            ib.for_range(0, self.shape.depth // self.row, "c") as c,
            ib.for_range(0, rows, "r") as r,
            ib.for_range(0, self.row, "i") as i,
        ):
            value = source[self._place(operand, head, first + r, c * self.row + i)]
            tile[c, r, i] = if_then_else(first + r < length, value, const(0, self.dtype))

    def _place(self, operand: int, head: Expr, at: Expr, element: Expr) -> tuple[Expr, ...]:
        where = {"B": self.b, "H": head, "S": at, "D": element}
        return tuple(where[letter] for letter in self.shape.orders[operand])

    # --- what the threads that multiply do ----------------------------------------------------------------------------

    def _unrolled(self, extent: int, name: str) -> object:
        return self.ib.for_range(0, extent, name, kind="unroll")

    def _begin(self) -> None:
        ib = self.ib
        with self._threads() as thread:
            self._clear(self.o, thread)
            with ib.for_range(0, 2, "h", kind="unroll") as h:
                self.top[(*thread, h)] = _NEVER
                self.total[(*thread, h)] = 0.0

    def _clear(self, tile: BufferVar, thread: _Thread) -> None:
        with self._share(tile) as (j, h, e):
            tile[(*thread, j, h, e)] = 0.0

    @contextmanager
    def _share(self, tile: BufferVar) -> Iterator[tuple[Var, Var, Var]]:
        """A thread's share of a tile of accumulators."""
        extents = [size.value for size in tile.asobject().shape[3:]]  # type: ignore[attr-defined]
        ib = self.ib
        with (
            ib.for_range(0, extents[0], "j", kind="unroll") as j,
            ib.for_range(0, 2, "h", kind="unroll") as h,
            ib.for_range(0, 2, "e", kind="unroll") as e,
        ):
            yield j, h, e

    def _product(
        self, tile: BufferVar, thread: _Thread, a: Callable[[Expr, Expr], Expr], b: Callable[[Expr, Expr], Expr]
    ) -> None:
        """tile[row, column] += a(row, k) * b(column, k) for 16 of K: a thread's share of what tensor cores do."""
        ib = self.ib
        pairs = tile.asobject().shape[3]
        loop = Var("jo", "int32")
        marks = {TENSOR_CORE: StringImm("wgmma")}
        with ib.new_scope():
            ib.emit(lambda body: For(loop, const(0), pairs, ForKind.SERIAL, body, annotations=marks))
            with ib.for_range(0, 2, "h") as h, ib.for_range(0, 2, "e") as e, ib.for_range(0, _STEP, "kk") as k:
                place = (*thread, loop, h, e)
                row, column = thread.row(h), thread.column(loop, e)
                tile[place] = tile[place] + a(row, k).astype("float32") * b(column, k).astype("float32")

    def _scores(self, thread: _Thread) -> None:
        """S = Q · Kᵀ."""
        ib = self.ib
        self._clear(self.s, thread)
        with (
            ib.for_range(0, self.shape.depth // self.row, "c") as c,
            ib.for_range(0, self.row // _STEP, "ks") as ks,
        ):
            self._product(
                self.s,
                thread,
                lambda row, k: self.q[c, row, ks * _STEP + k],
                lambda column, k: self.k[c, column, ks * _STEP + k],
            )

    def _softmax(self, thread: _Thread) -> None:
        """The scores become weights; what was summed up before follows the new maximum."""
        ib, s, o, top, total = self.ib, self.s, self.o, self.top, self.total
        self._mask(thread)
        shift = ib.allocate("float32", (2,), "shift", scope="local")
        factor = ib.allocate("float32", (2,), "factor", scope="local")
        with ib.for_range(0, 2, "h", kind="unroll") as h:
            shift[h] = _NEVER
        with self._share(s) as (j, h, e):
            shift[h] = Max(shift[h], s[(*thread, j, h, e)])
        with ib.for_range(0, 2, "h", kind="unroll") as h:
            self._over_quad(shift, h, Max)
            shift[h] = Max(shift[h], top[(*thread, h)])
            # Where nothing is seen yet, all weights are 0.
            factor[h] = self._power(top[(*thread, h)], self._shift_of(shift[h]))
            top[(*thread, h)] = shift[h]
            shift[h] = self._shift_of(shift[h])
            total[(*thread, h)] = total[(*thread, h)] * factor[h]
        with self._share(s) as (j, h, e):
            place = (*thread, j, h, e)
            s[place] = self._power(s[place], shift[h])
            total[(*thread, h)] = total[(*thread, h)] + s[place]
        if self.plan.overlaps:
            ib.emit(compute_now(total[(*thread, 0)] + total[(*thread, 1)]))
        with (
            ib.for_range(0, self.plan.keys // _COLUMNS, "j", kind="unroll") as j,
            ib.for_range(0, 2, "h", kind="unroll") as h,
            ib.for_range(0, 2, "e", kind="vectorize") as e,
        ):
            self.p[thread.row(h), thread.column(j, e)] = s[(*thread, j, h, e)].astype(self.dtype)
        with self._share(o) as (j, h, e):
            place = (*thread, j, h, e)
            o[place] = o[place] * factor[h]

    def _shift_of(self, top: Expr) -> Expr:
        """What is taken from scaled scores: finite where no score is seen yet."""
        return Select(top.equal(const(_NEVER, "float32")), const(0.0, "float32"), top * const(self.scale, "float32"))

    def _power(self, score: Expr, shift: Expr) -> Expr:
        result: Expr = exp2_approx(score * const(self.scale, "float32") - shift)
        return result

    def _over_quad(self, values: BufferVar, at: Expr, join: Callable[[Expr, Expr], Expr]) -> None:
        """All lanes of a quad get the total of theirs."""
        for step in (1, 2):
            values[at] = join(values[at], shuffled(tvm_warp_shuffle_xor, values[at], step, 32))

    def _mask(self, thread: _Thread) -> None:
        """Scores of keys that are not seen are -inf; most tiles have none."""
        ib, shape, plan, s = self.ib, self.shape, self.plan, self.s
        end = (self.j + 1) * plan.keys  # the key behind the tile
        conditions: list[Expr] = []
        if shape.keys % plan.keys:
            conditions.append(end > shape.keys)
        if shape.causal:
            # Rows of a warpgroup are 64 side by side; its first one sees least.
            sees = self.first + thread.warp // 4 * GROUP_ROWS + shape.diagonal
            conditions.append(end - 1 > sees)
        if not conditions:
            return
        some = conditions[0] if len(conditions) == 1 else logical_or(*conditions)
        with ib.if_scope(some), self._share(s) as (j, h, e):
            limit: Expr = const(shape.keys - 1)
            if shape.causal:
                limit = Min(limit, self.first + thread.row(h) + shape.diagonal)
            place = (*thread, j, h, e)
            last = limit - (self.j * plan.keys + thread.lane * 2)  # of this thread's columns
            s[place] = Select(j * 8 + e <= last, s[place], const(_NEVER, "float32"))

    def _weigh(self, thread: _Thread) -> None:
        """O += P · V."""
        with self.ib.for_range(0, self.plan.keys // _STEP, "ks") as ks:
            self._product(
                self.o,
                thread,
                lambda row, k: self.p[row, ks * _STEP + k],
                lambda column, k: self.v[column // self.row, ks * _STEP + k, column % self.row],
            )

    def _store(self) -> None:
        """The sums over totals of weights."""
        ib, shape, o, total = self.ib, self.shape, self.o, self.total
        with self._threads() as thread:
            inverse = ib.allocate("float32", (2,), "inverse", scope="local")
            with ib.for_range(0, 2, "h", kind="unroll") as h:
                inverse[h] = total[(*thread, h)]
                self._over_quad(inverse, h, lambda x, y: x + y)
                result: Expr = const(1.0, "float32") / inverse[h]
                if shape.hidden_is_zero:
                    zero = const(0.0, "float32")
                    result = Select(inverse[h].equal(zero), zero, result)
                inverse[h] = result
            with (
                ib.for_range(0, shape.depth // _COLUMNS, "j", kind="unroll") as j,
                ib.for_range(0, 2, "h", kind="unroll") as h,
            ):
                row = self.first + thread.row(h)
                with ib.if_scope(row < shape.queries), ib.for_range(0, 2, "e", kind="vectorize") as e:
                    value = o[(*thread, j, h, e)] * inverse[h]
                    place = self._place(3, self.h, row, thread.column(j, e))
                    self.out[place] = value.astype(self.dtype)
