"""Parallel scan: running totals by blocks of threads, after everything else is scheduled.

    a row of 2^28 floats, 2,048 chunks of 32 tiles of 4,096:

        for chunk in blockIdx.x: sums[chunk] = total of the chunk                          a kernel
        for chunk in blockIdx.x: out[…] = sums[0] ∘ … ∘ sums[chunk - 1] ∘ running totals   a kernel, last chunk first

A warp has neighbours: each of its loads is of 32 vectors side by side. A thread adds up each of its vectors, shuffles
scan their totals over a warp, and shared memory over warps: one barrier a tile. Each chunk adds up the totals of those
before it, which costs less than a third kernel. What the first kernel read last is still in L2, and read first by the
second one. Enough rows to keep the GPU busy, and short rows, are one kernel: a block goes along its row, or a warp has
a short row. Columns are in `column_scan.py`.

Steps are proved before: no proof of theirs follows values from lane to lane. The block that is replaced is read by
`scan_idiom.py`, which compares all that it stores. Totals are joined in another grouping than in the program, but in
its order: sums of integers are the same, those of floats round differently (docs/semantics.md). How they are grouped
depends on sizes and on the GPU alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from loopwright.arith import Analyzer
from loopwright.autosched.facts import const as number_of
from loopwright.autosched.gpu.machine import USUAL_THREADS, VECTOR_BYTES, GpuMachine
from loopwright.autosched.gpu.scan_idiom import ScanIdiom, identity_of
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import join_warp, shuffled
from loopwright.autosched.machine import bytes_of
from loopwright.ir import Expr, Stmt, const, substitute
from loopwright.ir.intrinsics import ceildiv, if_then_else
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.ir.machine_intrinsics import tvm_warp_shuffle, tvm_warp_shuffle_up
from loopwright.runtime.dtype import DataType

_MOST_VECTORS: Final = 4  # of a thread: loads under way
_ROWS_A_BLOCK: Final = 8  # of a warp each
_BLOCKS: Final = 4  # for each multiprocessor, before a thread has more than one vector
_CHUNK_WAVES: Final = 1  # of blocks, where there is so much to do: each adds up the totals of those before it
_OPEN_TILES: Final = 8  # of a chunk, where it is not known how many there are

Load = Callable[[Expr], Expr]
Store = Callable[[Expr, Expr], None]


# --- plan ---------------------------------------------------------------------------------------------------------


class ScanPlan(NamedTuple):
    """How rows are shared out."""

    threads: int  # of a row, or of a chunk of it: whole warps
    vectors: int  # of a thread, of `lanes` elements each
    lanes: int
    rows: int = 1  # of a block, each of a warp
    tiles: int | None = None  # of a chunk; None where a block has the whole row

    @property
    def each(self) -> int:
        """Elements of a thread."""
        return self.vectors * self.lanes

    @property
    def tile(self) -> int:
        """Elements that are scanned in one step."""
        return self.threads * self.each


def scan_plan(length: int | None, rows: int | None, itemsize: int, machine: GpuMachine) -> ScanPlan:
    """How so many rows of that length are scanned."""
    lanes, usual, most = max(1, VECTOR_BYTES // itemsize), machine.threads(USUAL_THREADS), machine.threads(1024)
    is_busy = rows is None or rows >= machine.multiprocessors
    if length is not None and (is_busy or length <= most * lanes * _MOST_VECTORS):
        if is_busy and length <= machine.warp * lanes * _MOST_VECTORS:
            vectors = _power_above(-(-length // (machine.warp * lanes)))
            several = min(_ROWS_A_BLOCK, machine.max_threads // machine.warp)
            return ScanPlan(machine.warp, vectors, lanes, _power_dividing(rows, several))
        # Rows that are few get all threads that they can use; many rows get fewer barriers and threads that wait.
        threads = usual if is_busy and (rows is None or rows >= _BLOCKS * machine.multiprocessors) else most
        vectors = _MOST_VECTORS if is_busy else 1
        while not is_busy and threads * vectors * lanes < length and vectors < _MOST_VECTORS:
            vectors *= 2
        while threads > machine.warp and threads // 2 * vectors * lanes >= length:
            threads = machine.threads(threads // 2)
        return ScanPlan(threads, vectors, lanes)
    if is_busy:
        return ScanPlan(usual, _MOST_VECTORS, lanes)
    if length is None or rows is None:
        return ScanPlan(usual, _MOST_VECTORS, lanes, tiles=_OPEN_TILES)
    vectors = _MOST_VECTORS
    while vectors > 1 and rows * length < _BLOCKS * machine.multiprocessors * usual * lanes * vectors:
        vectors //= 2
    wave = machine.blocks_at_once(usual)
    tiles = rows * length // (usual * lanes * vectors * wave * _CHUNK_WAVES)
    return ScanPlan(usual, vectors, lanes, tiles=1 << max(0, tiles.bit_length() - 1))


def _power_above(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def _power_dividing(value: int | None, most: int) -> int:
    """The largest power of two up to `most` that divides the value."""
    result = 1
    while value is not None and 2 * result <= most and value % (2 * result) == 0:
        result *= 2
    return result


# --- kernels ------------------------------------------------------------------------------------------------------


def scan_rows(scan: ScanIdiom, machine: GpuMachine) -> Stmt:
    """The scan by blocks of threads."""
    plan = scan_plan(number_of(scan.length), number_of(scan.rows), bytes_of(str(scan.out.dtype)), machine)
    ib = create()
    kernels = _Kernels(ib, scan, plan, machine.warp)
    if plan.tiles is None:
        kernels.rows()
    else:
        kernels.chunks()
    return ib.get()


class _Kernels:
    """Writes the kernels of a scan along rows."""

    def __init__(self, ib: IRBuilder, scan: ScanIdiom, plan: ScanPlan, warp: int) -> None:
        self.ib, self.scan, self.plan, self.warp = ib, scan, plan, warp
        self.warps = plan.threads // warp
        self.dtype: DataType = scan.out.dtype
        self.identity = identity_of(scan.join, self.dtype)

    def rows(self) -> None:
        """A block for each row, or a warp, which goes along it tile by tile."""
        ib, plan = self.ib, self.plan
        with ib.new_scope():
            block = run_on(ib, "blockIdx.x", self._simple(self.scan.rows // plan.rows))
            memory = _Memory(self)
            with ib.new_scope():
                thread = self._threads()
                memory.total[(*thread, 0)] = self.identity
            tiles = self._simple(ceildiv(self.scan.length, plan.tile))
            with ib.for_range(0, tiles, "tile") as tile:
                self._tile(memory, block * plan.rows, tile * plan.tile, tiles)

    def chunks(self) -> None:
        """Totals of all chunks; then each chunk, with what was before it."""
        ib, plan, rows = self.ib, self.plan, self.scan.rows
        assert plan.tiles is not None
        chunks = self._simple(ceildiv(self.scan.length, plan.tile * plan.tiles))
        sums = ib.allocate(self.dtype, (rows, chunks), "sums")
        with ib.new_scope():
            row, number = run_on(ib, "blockIdx.y", rows), run_on(ib, "blockIdx.x", chunks)
            self._sum(sums, row, number)
        with ib.new_scope():
            row, number = run_on(ib, "blockIdx.y", rows), run_on(ib, "blockIdx.x", chunks)
            chunk = chunks - 1 - number  # what was read last is in L2
            memory = _Memory(self)
            self._before(memory, sums, row, chunk)
            with ib.for_range(0, plan.tiles, "tile") as tile:
                self._tile(memory, row, (chunk * plan.tiles + tile) * plan.tile, const(plan.tiles))

    def _sum(self, sums: BufferVar, row: Expr, chunk: Expr) -> None:
        """The total of a chunk."""
        ib, plan, join = self.ib, self.plan, self.scan.join
        assert plan.tiles is not None
        own = ib.allocate(self.dtype, (plan.threads, plan.each), "own", scope="local")
        parts = ib.allocate(self.dtype, (self.warps,), "parts", scope="shared")
        with ib.new_scope():
            (thread,) = self._threads()
            with ib.for_range(0, plan.each, "k", kind="unroll") as k:
                own[thread, k] = self.identity
            held = ib.allocate(self.dtype, (plan.each,), "held", scope="local")
            with ib.for_range(0, plan.tiles, "tile") as tile:
                begin = (chunk * plan.tiles + tile) * plan.tile
                self._load(row, begin, thread, lambda k, value: held.__setitem__(k, value))
                with ib.for_range(0, plan.each, "k", kind="unroll") as k:
                    own[thread, k] = join(own[thread, k], held[k])
            with ib.for_range(0, plan.each - 1, "k", kind="unroll") as k:
                own[thread, 0] = join(own[thread, 0], own[thread, k + 1])
            join_warp(own, (thread, const(0)), join, self.warp)
            with ib.if_scope((thread % self.warp).equal(0)):
                parts[thread // self.warp] = own[thread, 0]
        with ib.new_scope():
            (thread,) = self._threads()
            with ib.if_scope(thread.equal(0)):
                total = ib.allocate(self.dtype, (1,), "total", scope="local")
                total[0] = parts[0]
                with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
                    total[0] = join(total[0], parts[k + 1])
                sums[row, chunk] = total[0]

    def _before(self, memory: _Memory, sums: BufferVar, row: Expr, chunk: Expr) -> None:
        """The totals of all chunks before, joined: what the running total of each thread begins with."""
        ib, plan, join = self.ib, self.plan, self.scan.join
        total = memory.total
        parts = ib.allocate(self.dtype, (self.warps,), "parts", scope="shared")
        with ib.new_scope():
            (thread,) = self._threads()
            total[thread, 0] = self.identity
            with ib.for_range(0, ceildiv(chunk, plan.threads), "k") as k:
                at = k * plan.threads + thread
                total[thread, 0] = join(total[thread, 0], if_then_else(at < chunk, sums[row, at], self.identity))
            join_warp(total, (thread, const(0)), join, self.warp)
            with ib.if_scope((thread % self.warp).equal(0)):
                parts[thread // self.warp] = total[thread, 0]
        with ib.new_scope():
            (thread,) = self._threads()
            total[thread, 0] = parts[0]
            with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
                total[thread, 0] = join(total[thread, 0], parts[k + 1])

    def _tile(self, memory: _Memory, first_row: Expr, begin: Expr, tiles: Expr) -> None:
        """Running totals of a tile, stored behind what was before it."""
        ib, plan, join, lanes = self.ib, self.plan, self.scan.join, self.plan.lanes
        held, reach = memory.held, memory.reach
        with ib.new_scope():
            thread = self._threads()
            lane = thread[-1] % self.warp
            row = first_row if plan.rows == 1 else first_row + thread[0]

            def put(k: Expr, value: Expr) -> None:
                held[(*thread, k)] = value

            self._load(row, begin, thread[-1], put)
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
                    memory.shared[thread[-1] // self.warp] = reach[(*thread, plan.vectors)]
        with ib.new_scope():
            thread = self._threads()
            row = first_row if plan.rows == 1 else first_row + thread[0]
            offset = ib.allocate(self.dtype, (1,), "offset", scope="local")
            offset[0] = memory.total[(*thread, 0)]
            if self.warps > 1:
                with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
                    here = if_then_else(k < thread[-1] // self.warp, memory.shared[k], self.identity)
                    offset[0] = join(offset[0], here)
            self._put(memory, thread, offset, row, begin)
            if number_of(tiles) != 1:
                if self.warps > 1:
                    with ib.for_range(0, self.warps, "k", kind="unroll") as k:
                        memory.total[(*thread, 0)] = join(memory.total[(*thread, 0)], memory.shared[k])
                else:
                    memory.total[(*thread, 0)] = join(memory.total[(*thread, 0)], reach[(*thread, plan.vectors)])

    def _put(self, memory: _Memory, thread: tuple[Expr, ...], offset: BufferVar, row: Expr, begin: Expr) -> None:
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

    # --- parts ----------------------------------------------------------------------------------------------------

    def _threads(self) -> tuple[Expr, ...]:
        along = [("threadIdx.y", self.plan.rows)] if self.plan.rows > 1 else []
        return tuple([run_on(self.ib, tag, extent) for tag, extent in (*along, ("threadIdx.x", self.plan.threads))])

    def _at(self, begin: Expr, thread: Expr, vector: Expr) -> Expr:
        """Where a vector begins: those of a warp are neighbours."""
        plan, warp = self.plan, self.warp
        if self.warps == 1:
            return begin + vector * (warp * plan.lanes) + thread * plan.lanes
        return begin + thread // warp * (warp * plan.each) + vector * (warp * plan.lanes) + thread % warp * plan.lanes

    def _load(self, row: Expr, begin: Expr, thread: Expr, put: Store) -> None:
        ib, plan, scan = self.ib, self.plan, self.scan
        with (
            ib.for_range(0, plan.vectors, "u", kind="unroll") as u,
            ib.for_range(0, plan.lanes, "v", kind="vectorize") as v,
        ):
            at = self._at(begin, thread, u) + v
            value = substitute(scan.value, {scan.row: row, scan.at: at})
            put(u * plan.lanes + v, if_then_else(at < scan.length, value, self.identity))

    @staticmethod
    def _simple(value: Expr) -> Expr:
        return Analyzer().simplify(value)


class _Memory:
    """What the threads of a kernel have."""

    def __init__(self, kernels: _Kernels) -> None:
        ib, plan, dtype = kernels.ib, kernels.plan, kernels.dtype
        threads = (plan.rows, plan.threads) if plan.rows > 1 else (plan.threads,)
        self.held = ib.allocate(dtype, (*threads, plan.each), "held", scope="local")
        self.reach = ib.allocate(dtype, (*threads, plan.vectors + 1), "reach", scope="local")  # and that of the warp
        self.total = ib.allocate(dtype, (*threads, 1), "total", scope="local")
        if kernels.warps > 1:
            self.shared = ib.allocate(dtype, (kernels.warps,), "warps", scope="shared")
