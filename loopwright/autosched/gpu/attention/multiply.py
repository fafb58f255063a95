"""What the threads do that multiply: scores, their softmax, and the sums of weighted values, all in registers.

    S[t, j, h, e] = Q · Kᵀ                       t: warp z, quad y, lane x; rows h * 8 apart, columns j * 8 + e
    top = max(top, S), over the quad             the rows of a quad are the same
    total, O *= exp2((old top - top) · scale)
    P = exp2((S - top) · scale), total += P      float32, then as the values are
    O += P · V

What a thread holds of S and O is what tensor cores leave to it. P is written by these threads and multiplied by their
warpgroup: each has what it needs of it, so that it takes no shared memory (`transform/parts/register_operands.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import e as euler
from math import log2
from typing import Final, NamedTuple

from loopwright.analysis.warp_roles import TENSOR_CORE
from loopwright.autosched.gpu.attention.plan import QUERY_ROWS, AttentionPlan, AttentionShape
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import shuffled
from loopwright.ir import Expr, For, ForKind, Max, Min, Select, StringImm, Var, const, logical_or
from loopwright.ir.intrinsics import exp2_approx
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.ir.machine_intrinsics import tvm_warp_shuffle_xor
from loopwright.ir.warpgroup_intrinsics import compute_now

NEVER: Final = float("-inf")  # the score of a key that is not seen
COLUMNS: Final = 8  # of a tile of accumulators, from one pair of a thread to the next
_STEP: Final = 16  # of K in one wgmma
_LANES: Final = 32


class Thread(NamedTuple):
    """The number of a thread: its warp, its quad, its lane of that."""

    warp: Expr
    quad: Expr
    lane: Expr

    def row(self, h: Expr) -> Expr:
        """The row of the tile that row h of a thread's share is."""
        return self.warp * 16 + h * 8 + self.quad

    def column(self, j: Expr, e: Expr) -> Expr:
        return j * 8 + self.lane * 2 + e


def power(score: Expr, shift: Expr, scale: float) -> Expr:
    """The weight of a score, of which `shift` is taken when it is scaled."""
    result: Expr = exp2_approx(score * const(scale, "float32") - shift)
    return result


def shift_of(top: Expr, scale: float) -> Expr:
    """What is taken from scaled scores: finite where no score is seen yet, so that all weights are 0."""
    return Select(top.equal(const(NEVER, "float32")), const(0.0, "float32"), top * const(scale, "float32"))


def scale_of(shape: AttentionShape) -> float:
    """Of scores, as powers of 2, which cost less than those of e."""
    return shape.scale * log2(euler)


class Multiply:
    """Writes what these threads do; its memory lives as long as a tile of queries."""

    def __init__(self, ib: IRBuilder, shape: AttentionShape, plan: AttentionPlan) -> None:
        self.ib, self.shape, self.plan = ib, shape, plan
        self.dtype, self.scale = shape.query.dtype, scale_of(shape)
        self.warps = plan.threads // _LANES
        own = (self.warps, 8, 4)
        self.s = ib.allocate("float32", (*own, plan.keys // COLUMNS, 2, 2), "S", scope="local")
        self.o = ib.allocate("float32", (*own, shape.depth // COLUMNS, 2, 2), "O", scope="local")
        self.top = ib.allocate("float32", (*own, 2), "top", scope="local")
        self.total = ib.allocate("float32", (*own, 2), "total", scope="local")
        self.p = ib.allocate(self.dtype, (plan.queries, plan.keys), "P", scope="shared")

    @contextmanager
    def threads(self) -> Iterator[Thread]:
        """The rest of the scope runs on all threads."""
        with self.ib.new_scope():
            z, y, x = (run_on(self.ib, f"threadIdx.{a}", size) for a, size in (("z", self.warps), ("y", 8), ("x", 4)))
            yield Thread(z, y, x)

    @contextmanager
    def share(self, tile: BufferVar, innermost: str = "unroll") -> Iterator[tuple[Var, Var, Var]]:
        """A thread's share of a tile of accumulators."""
        with (
            self.ib.for_range(0, tile.asobject().shape[3], "j", kind="unroll") as j,
            self.ib.for_range(0, 2, "h", kind="unroll") as h,
            self.ib.for_range(0, 2, "e", kind=innermost) as e,
        ):
            yield j, h, e

    # --- steps --------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Nothing is summed up."""
        with self.threads() as thread:
            self._clear(self.o, thread)
            with self.ib.for_range(0, 2, "h", kind="unroll") as h:
                self.top[(*thread, h)] = NEVER
                self.total[(*thread, h)] = 0.0

    def scores(self, q: BufferVar, k: BufferVar) -> None:
        """S = Q · Kᵀ."""
        columns = k.asobject().shape[2]
        with self.threads() as thread:
            self._clear(self.s, thread)
            with (
                self.ib.for_range(0, k.asobject().shape[0], "c") as c,
                self.ib.for_range(0, columns // _STEP, "ks") as ks,
            ):
                self._product(
                    self.s,
                    thread,
                    lambda row, kk: q[c, row, ks * _STEP + kk],
                    lambda column, kk: k[c, column, ks * _STEP + kk],
                )

    def weigh(self, v: BufferVar) -> None:
        """O += P · V."""
        columns = v.asobject().shape[2]
        with self.threads() as thread, self.ib.for_range(0, self.plan.keys // _STEP, "ks") as ks:
            self._product(
                self.o,
                thread,
                lambda row, kk: self.p[row, ks * _STEP + kk],
                lambda column, kk: v[column // columns, ks * _STEP + kk, column % columns],
            )

    def softmax(self, first_key: Expr, sees: Callable[[Expr], Expr]) -> None:
        """The scores become weights; what was summed up before follows the new maximum.

        The tile's keys begin at `first_key`; row r sees keys up to `sees(r)`, and rows that follow see no less.
        """
        with self.threads() as thread:
            self._mask(thread, first_key, sees)
            self._softmax(thread)

    def _softmax(self, thread: Thread) -> None:
        ib, s, o, top, total = self.ib, self.s, self.o, self.top, self.total
        shift = ib.allocate("float32", (2,), "shift", scope="local")
        factor = ib.allocate("float32", (2,), "factor", scope="local")
        with ib.for_range(0, 2, "h", kind="unroll") as h:
            shift[h] = NEVER
        with self.share(s) as (j, h, e):
            shift[h] = Max(shift[h], s[(*thread, j, h, e)])
        with ib.for_range(0, 2, "h", kind="unroll") as h:
            self.over_quad(shift, h, Max)
            shift[h] = Max(shift[h], top[(*thread, h)])
            factor[h] = power(top[(*thread, h)], shift_of(shift[h], self.scale), self.scale)
            top[(*thread, h)] = shift[h]
            shift[h] = shift_of(shift[h], self.scale)
            total[(*thread, h)] = total[(*thread, h)] * factor[h]
        with self.share(s) as (j, h, e):
            place = (*thread, j, h, e)
            s[place] = power(s[place], shift[h], self.scale)
            total[(*thread, h)] = total[(*thread, h)] + s[place]
        if self.plan.overlaps:  # what comes next waits for products that the powers are computed beside
            ib.emit(compute_now(total[(*thread, 0)] + total[(*thread, 1)]))
        with self.share(s, "vectorize") as (j, h, e):
            self.p[thread.row(h), thread.column(j, e)] = s[(*thread, j, h, e)].astype(self.dtype)
        with self.share(o) as (j, h, e):
            place = (*thread, j, h, e)
            o[place] = o[place] * factor[h]

    def _mask(self, thread: Thread, first_key: Expr, sees: Callable[[Expr], Expr]) -> None:
        """Scores of keys that are not seen are -inf; most tiles have none."""
        shape, plan, s = self.shape, self.plan, self.s
        conditions: list[Expr] = []
        if shape.keys % plan.keys:
            conditions.append(first_key + plan.keys > shape.keys)
        if shape.causal:  # the first row of a warpgroup sees least
            conditions.append(first_key + (plan.keys - 1) > sees(thread.warp // 4 * QUERY_ROWS))
        if not conditions:
            return
        some = conditions[0] if len(conditions) == 1 else logical_or(*conditions)
        with self.ib.if_scope(some), self.share(s) as (j, h, e):
            limit: Expr = const(shape.keys - 1)
            if shape.causal:
                limit = Min(limit, sees(thread.row(h)))
            place = (*thread, j, h, e)
            last = limit - (first_key + thread.lane * 2)  # of this thread's columns
            s[place] = Select(j * 8 + e <= last, s[place], const(NEVER, "float32"))

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _clear(self, tile: BufferVar, thread: Thread) -> None:
        with self.share(tile) as (j, h, e):
            tile[(*thread, j, h, e)] = 0.0

    def _product(
        self, tile: BufferVar, thread: Thread, a: Callable[[Expr, Expr], Expr], b: Callable[[Expr, Expr], Expr]
    ) -> None:
        """tile[row, column] += a(row, k) * b(column, k) for 16 of K: a thread's share of what tensor cores do."""
        ib, pairs = self.ib, tile.asobject().shape[3]
        loop = Var("jo", "int32")
        marks = {TENSOR_CORE: StringImm("wgmma")}
        with ib.new_scope():
            ib.emit(lambda body: For(loop, const(0), pairs, ForKind.SERIAL, body, annotations=marks))
            with ib.for_range(0, 2, "h") as h, ib.for_range(0, 2, "e") as e, ib.for_range(0, _STEP, "kk") as k:
                place = (*thread, loop, h, e)
                row, column = thread.row(h), thread.column(loop, e)
                tile[place] = tile[place] + a(row, k).astype("float32") * b(column, k).astype("float32")

    def over_quad(self, values: BufferVar, at: Expr, join: Callable[[Expr, Expr], Expr]) -> None:
        """All lanes of a quad get the total of theirs."""
        for step in (1, 2):
            values[at] = join(values[at], shuffled(tvm_warp_shuffle_xor, values[at], step, _LANES))
