"""Scan tile: what the threads of a block do with one tile of a row: load it, scan it in registers, store it.

A warp has neighbours: each of its loads is of 32 vectors side by side. A thread adds up each of its vectors, shuffles
scan their totals over a warp, and shared memory over warps: one barrier a tile.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.arith import Analyzer
from loopwright.autosched.gpu.scan_idiom import ScanIdiom, identity_of
from loopwright.autosched.gpu.scan_plan import ScanPlan
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import shuffled
from loopwright.ir import Expr, substitute
from loopwright.ir.intrinsics import if_then_else
from loopwright.ir.ir_builder import BufferVar, IRBuilder
from loopwright.ir.machine_intrinsics import tvm_warp_shuffle, tvm_warp_shuffle_up
from loopwright.runtime.dtype import DataType

Store = Callable[[Expr, Expr], None]


class TileKernels:
    """Writes the parts of kernels of a scan along rows."""

    def __init__(self, ib: IRBuilder, scan: ScanIdiom, plan: ScanPlan, warp: int) -> None:
        self.ib, self.scan, self.plan, self.warp = ib, scan, plan, warp
        self.warps = plan.threads // warp
        self.dtype: DataType = scan.out.dtype
        self.identity = identity_of(scan.join, self.dtype)

    def scan_tile(self, memory: Memory, thread: tuple[Expr, ...], first_row: Expr, begin: Expr) -> None:
        """Running totals of a tile, each warp's by itself."""
        ib, plan, join, lanes = self.ib, self.plan, self.scan.join, self.plan.lanes
        held, reach = memory.held, memory.reach
        lane = thread[-1] % self.warp
        row = first_row if plan.rows == 1 else first_row + thread[0]

        def put(k: Expr, value: Expr) -> None:
            held[(*thread, k)] = value

        self.load(row, begin, thread[-1], put)
        with (
            ib.for_range(0, lanes - 1, "v", kind="unroll") as v,
            ib.for_range(0, plan.vectors, "u", kind="unroll") as u,
        ):
            held[(*thread, u * lanes + v + 1)] = join(
                held[(*thread, u * lanes + v)], held[(*thread, u * lanes + v + 1)]
            )
        # The totals of vectors, scanned over the lanes of a warp.
        scanned = ib.allocate(self.dtype, (plan.vectors,), "scanned", scope="local")
        other = ib.allocate(self.dtype, (plan.vectors,), "other", scope="local")
        with ib.for_range(0, plan.vectors, "u", kind="unroll") as u:
            scanned[u] = held[(*thread, u * lanes + lanes - 1)]
        for step in range((self.warp - 1).bit_length()):
            with ib.for_range(0, plan.vectors, "u", kind="unroll") as u:
                other[u] = shuffled(tvm_warp_shuffle_up, scanned[u], 1 << step, self.warp)
            with ib.for_range(0, plan.vectors, "u", kind="unroll") as u:
                scanned[u] = join(if_then_else(lane >= 1 << step, other[u], self.identity), scanned[u])
        # What comes before each vector in its warp, and the total of the warp.
        whole = ib.allocate(self.dtype, (plan.vectors,), "whole", scope="local")
        with ib.for_range(0, plan.vectors, "u", kind="unroll") as u:
            other[u] = shuffled(tvm_warp_shuffle_up, scanned[u], 1, self.warp)
            whole[u] = shuffled(tvm_warp_shuffle, scanned[u], self.warp - 1, self.warp)
        reach[(*thread, plan.vectors)] = self.identity
        with ib.for_range(0, plan.vectors, "u", kind="unroll") as u:
            until = if_then_else(lane > 0, other[u], self.identity)
            reach[(*thread, u)] = join(reach[(*thread, plan.vectors)], until)
            reach[(*thread, plan.vectors)] = join(reach[(*thread, plan.vectors)], whole[u])
        if self.warps > 1:
            with ib.if_scope(lane.equal(0)):
                memory.shared[self.place_of_warp(thread[-1] // self.warp)] = reach[(*thread, plan.vectors)]

    def store_tile(self, memory: Memory, thread: tuple[Expr, ...], first_row: Expr, begin: Expr) -> None:
        """Store what the threads have, behind what was before the tile."""
        ib, plan, join = self.ib, self.plan, self.scan.join
        row = first_row if plan.rows == 1 else first_row + thread[0]
        offset = ib.allocate(self.dtype, (1,), "offset", scope="local")
        offset[0] = memory.total[(*thread, 0)]
        if self.warps > 1:
            with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
                here = if_then_else(k < thread[-1] // self.warp, memory.shared[self.place_of_warp(k)], self.identity)
                offset[0] = join(offset[0], here)
        self._put(memory, thread, offset, row, begin)

    def _put(self, memory: Memory, thread: tuple[Expr, ...], offset: BufferVar, row: Expr, begin: Expr) -> None:
        """Store what a thread has, moved by one where an element is no part of its own total."""
        ib, plan, scan, join, lanes = self.ib, self.plan, self.scan, self.scan.join, self.plan.lanes
        held, reach, out = memory.held, memory.reach, ib.buffer_ptr(scan.out)
        moved = ib.allocate(self.dtype, (lanes,), "moved", scope="local")
        before = ib.allocate(self.dtype, (1,), "before", scope="local")
        with ib.for_range(0, plan.vectors, "u", kind="unroll") as u:
            first = self._at(begin, thread[-1], u)
            before[0] = join(offset[0], reach[(*thread, u)])
            if scan.first is None:
                with ib.for_range(0, lanes, "k", kind="unroll") as k:
                    moved[k] = join(before[0], held[(*thread, u * lanes + k)])
            else:
                moved[0] = if_then_else(first > 0, before[0], scan.first)
                with ib.for_range(0, lanes - 1, "k", kind="unroll") as k:
                    moved[k + 1] = join(before[0], held[(*thread, u * lanes + k)])
            with (
                ib.for_range(0, lanes, "v", kind="vectorize") as v,
                ib.if_scope(first + v < scan.length),
            ):
                here = {scan.row: row, scan.at: first + v}
                out[tuple([substitute(index, here) for index in scan.indices])] = moved[v]

    def place_of_warp(self, warp: Expr) -> tuple[Expr, ...]:
        """Where the total of a warp lies in shared memory."""
        return (warp,)

    # --- parts ----------------------------------------------------------------------------------------------------

    def threads(self) -> tuple[Expr, ...]:
        along = [("threadIdx.y", self.plan.rows)] if self.plan.rows > 1 else []
        return tuple([run_on(self.ib, tag, extent) for tag, extent in (*along, ("threadIdx.x", self.plan.threads))])

    def _at(self, begin: Expr, thread: Expr, vector: Expr) -> Expr:
        """Where a vector begins: those of a warp are neighbours."""
        plan, warp = self.plan, self.warp
        if self.warps == 1:
            return begin + vector * (warp * plan.lanes) + thread * plan.lanes
        return begin + thread // warp * (warp * plan.each) + vector * (warp * plan.lanes) + thread % warp * plan.lanes

    def load(self, row: Expr, begin: Expr, thread: Expr, put: Store) -> None:
        ib, plan, scan = self.ib, self.plan, self.scan
        with (
            ib.for_range(0, plan.vectors, "u", kind="unroll") as u,
            ib.for_range(0, plan.lanes, "v", kind="vectorize") as v,
        ):
            at = self._at(begin, thread, u) + v
            value = substitute(scan.value, {scan.row: row, scan.at: at})
            put(u * plan.lanes + v, if_then_else(at < scan.length, value, self.identity))

    @staticmethod
    def simple(value: Expr) -> Expr:
        return Analyzer().simplify(value)


class Memory:
    """What the threads of a kernel have."""

    def __init__(self, kernels: TileKernels) -> None:
        ib, plan, dtype = kernels.ib, kernels.plan, kernels.dtype
        threads = (plan.rows, plan.threads) if plan.rows > 1 else (plan.threads,)
        self.held = ib.allocate(dtype, (*threads, plan.each), "held", scope="local")
        self.reach = ib.allocate(dtype, (*threads, plan.vectors + 1), "reach", scope="local")  # and that of the warp
        self.total = ib.allocate(dtype, (*threads, 1), "total", scope="local")
        if kernels.warps > 1:
            self.shared = ib.allocate(dtype, (kernels.warps,), "warps", scope="shared")
