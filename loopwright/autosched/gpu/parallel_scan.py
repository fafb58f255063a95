"""Parallel scan: running totals by blocks of threads, after everything else is scheduled.

    a row of 2^22 floats, 1,024 chunks of one tile of 4,096:

        for chunk in blockIdx.x: sums[chunk] = total of the chunk                          a kernel
        for chunk in blockIdx.x: out[…] = sums[0] ∘ … ∘ sums[chunk - 1] ∘ running totals   a kernel, last chunk first

Each chunk adds up the totals of those before it, which costs less than a third kernel. What the first kernel read last
is still in L2, and read first by the second one. Of a row that is larger than that, memory is read once
(`single_pass_scan.py`). Enough rows to keep the GPU busy, and short rows, are one kernel: a block goes along its row,
or a warp has a short row. Columns are in `column_scan.py`.

Steps are proved before: no proof of theirs follows values from lane to lane. The block that is replaced is read by
`scan_idiom.py`, which compares all that it stores. Totals are joined in another grouping than in the program: sums of
integers are the same, those of floats round differently (docs/semantics.md). How they are grouped depends on sizes and
on the GPU alone.
"""

from __future__ import annotations

from loopwright.autosched.facts import const as number_of
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.pipelined_scan import PipelinedScan
from loopwright.autosched.gpu.scan_idiom import ScanIdiom
from loopwright.autosched.gpu.scan_plan import ScanPlan, scan_plan
from loopwright.autosched.gpu.scan_tile import Memory, TileKernels
from loopwright.autosched.gpu.single_pass_scan import SinglePass
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import join_warp
from loopwright.autosched.machine import bytes_of
from loopwright.ir import BufferLoad, Expr, Stmt, const, uses_var
from loopwright.ir.intrinsics import ceildiv, if_then_else
from loopwright.ir.ir_builder import BufferVar, create


def plan_of(scan: ScanIdiom, machine: GpuMachine) -> ScanPlan:
    """How the rows of a scan are shared out."""
    itemsize = bytes_of(str(scan.out.dtype))
    return scan_plan(number_of(scan.length), number_of(scan.rows), itemsize, machine, _is_copy(scan))


def _is_copy(scan: ScanIdiom) -> bool:
    """Whether the elements of a row lie side by side in memory."""
    value = scan.value
    if not isinstance(value, BufferLoad) or value.buffer.strides or value.dtype is not scan.out.dtype:
        return False
    last = value.indices[-1]
    others = value.indices[:-1]
    return last is scan.at and not any([uses_var(index, lambda var: var is scan.at) for index in others])


def scan_rows(scan: ScanIdiom, machine: GpuMachine) -> Stmt:
    """The scan by blocks of threads."""
    plan = plan_of(scan, machine)
    ib = create()
    if plan.stages:
        PipelinedScan(ib, scan, plan, machine.warp).write()
    elif plan.looks_back:
        SinglePass(ib, scan, plan, machine.warp).write()
    elif plan.tiles is None:
        _Kernels(ib, scan, plan, machine.warp).rows()
    else:
        _Kernels(ib, scan, plan, machine.warp).chunks()
    return ib.get()


class _Kernels(TileKernels):
    """Writes the kernels of a scan along rows, in one or two."""

    def rows(self) -> None:
        """A block for each row, or a warp, which goes along it tile by tile."""
        ib, plan = self.ib, self.plan
        with ib.new_scope():
            block = run_on(ib, "blockIdx.x", self.simple(self.scan.rows // plan.rows))
            memory = Memory(self)
            with ib.new_scope():
                thread = self.threads()
                memory.total[(*thread, 0)] = self.identity
            tiles = self.simple(ceildiv(self.scan.length, plan.tile))
            with ib.for_range(0, tiles, "tile") as tile:
                self._tile(memory, block * plan.rows, tile * plan.tile, tiles)

    def chunks(self) -> None:
        """Totals of all chunks; then each chunk, with what was before it."""
        ib, plan, rows = self.ib, self.plan, self.scan.rows
        assert plan.tiles is not None
        chunks = self.simple(ceildiv(self.scan.length, plan.tile * plan.tiles))
        sums = ib.allocate(self.dtype, (rows, chunks), "sums")
        with ib.new_scope():
            row, number = run_on(ib, "blockIdx.y", rows), run_on(ib, "blockIdx.x", chunks)
            self._sum(sums, row, number)
        with ib.new_scope():
            row, number = run_on(ib, "blockIdx.y", rows), run_on(ib, "blockIdx.x", chunks)
            chunk = chunks - 1 - number  # what was read last is in L2
            memory = Memory(self)
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
            (thread,) = self.threads()
            with ib.for_range(0, plan.each, "k", kind="unroll") as k:
                own[thread, k] = self.identity
            held = ib.allocate(self.dtype, (plan.each,), "held", scope="local")
            with ib.for_range(0, plan.tiles, "tile") as tile:
                begin = (chunk * plan.tiles + tile) * plan.tile
                self.load(row, begin, thread, lambda k, value: held.__setitem__(k, value))
                with ib.for_range(0, plan.each, "k", kind="unroll") as k:
                    own[thread, k] = join(own[thread, k], held[k])
            with ib.for_range(0, plan.each - 1, "k", kind="unroll") as k:
                own[thread, 0] = join(own[thread, 0], own[thread, k + 1])
            join_warp(own, (thread, const(0)), join, self.warp)
            with ib.if_scope((thread % self.warp).equal(0)):
                parts[thread // self.warp] = own[thread, 0]
        with ib.new_scope():
            (thread,) = self.threads()
            with ib.if_scope(thread.equal(0)):
                total = ib.allocate(self.dtype, (1,), "total", scope="local")
                total[0] = parts[0]
                with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
                    total[0] = join(total[0], parts[k + 1])
                sums[row, chunk] = total[0]

    def _before(self, memory: Memory, sums: BufferVar, row: Expr, chunk: Expr) -> None:
        """The totals of all chunks before, joined: what the running total of each thread begins with."""
        ib, plan, join = self.ib, self.plan, self.scan.join
        total = memory.total
        parts = ib.allocate(self.dtype, (self.warps,), "parts", scope="shared")
        with ib.new_scope():
            (thread,) = self.threads()
            total[thread, 0] = self.identity
            with ib.for_range(0, ceildiv(chunk, plan.threads), "k") as k:
                at = k * plan.threads + thread
                total[thread, 0] = join(total[thread, 0], if_then_else(at < chunk, sums[row, at], self.identity))
            join_warp(total, (thread, const(0)), join, self.warp)
            with ib.if_scope((thread % self.warp).equal(0)):
                parts[thread // self.warp] = total[thread, 0]
        with ib.new_scope():
            (thread,) = self.threads()
            total[thread, 0] = parts[0]
            with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
                total[thread, 0] = join(total[thread, 0], parts[k + 1])

    def _tile(self, memory: Memory, first_row: Expr, begin: Expr, tiles: Expr) -> None:
        """Running totals of a tile, stored behind what was before it; what is before the next one."""
        ib, plan, join = self.ib, self.plan, self.scan.join
        with ib.new_scope():
            self.scan_tile(memory, self.threads(), first_row, begin)
        with ib.new_scope():
            thread = self.threads()
            self.store_tile(memory, thread, first_row, begin)
            if number_of(tiles) != 1:
                if self.warps > 1:
                    with ib.for_range(0, self.warps, "k", kind="unroll") as k:
                        memory.total[(*thread, 0)] = join(memory.total[(*thread, 0)], memory.shared[k])
                else:
                    memory.total[(*thread, 0)] = join(
                        memory.total[(*thread, 0)], memory.reach[(*thread, plan.vectors)]
                    )
