"""The steps that schedule a matrix product for tensor cores.

    for i, j, k: C[i, j] += A[i, k] * B[j, k]    →    for tiles:                                      blockIdx.x
                                                          for slabs of k:                             stages
                                                              A_shared, B_shared = A[…], B[…]         role load: TMA
                                                              for steps of the slab:                  role mma: wgmma
                                                                  C += A_shared * B_shared            in registers
                                                          D = epilogue of C                           role mma

Loops of threads are bound before those of blocks: proofs are about one tile then, and take half the time. Sizes that
are no multiples of the tile are padded; the copies of padded operands are boxes that reach over the end of a tensor.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from loopwright.autosched.gpu.rules.tensor_gemm.epilogue import (
    StagedResults,
    chunk_of,
    is_tensor,
    result_block,
    store_results,
)
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import Side
from loopwright.autosched.gpu.rules.tensor_gemm.operands import shared_copies
from loopwright.autosched.gpu.rules.tensor_gemm.planning import Plan
from loopwright.autosched.gpu.rules.tensor_gemm.tiles import SLAB_BYTES
from loopwright.autosched.small_steps import extent_of, fused, loops_below
from loopwright.schedule import BlockRV, LoopRV, Schedule

_STEP_BYTES: Final = 32  # of K, in one wgmma
_ROW_ELEMENTS: Final = 64  # elements of a row of a tile that runs along M or N
_SWIZZLED_ROWS: Final = 8  # after which a swizzle repeats
_LOAD: Final = "load"
_MMA: Final = "mma"


class _Tiled(NamedTuple):
    """The loops of a product in tiles."""

    over: list[LoopRV]  # tiles
    slabs: LoopRV
    steps: LoopRV  # of a slab
    threads: list[LoopRV]  # along z, y and x
    pairs: LoopRV  # of columns of a thread


class Steps:
    """Schedules one product."""

    def __init__(self, sch: Schedule, plan: Plan) -> None:
        self.sch, self.plan, self.matmul, self.tile = sch, plan, plan.matmul, plan.tile

    def run(self, epilogue: BlockRV | None) -> list[BlockRV]:
        """All steps but those of the blocks that copy operands first; `epilogue` reads the result, cell by cell."""
        sch, matmul = self.sch, self.matmul
        block = sch.get_block(matmul.facts.name)
        copies, first_copies = shared_copies(sch, block, self.plan)
        is_padded = sch.get(block).writes[0].buffer is not matmul.facts.write.buffer
        last = result_block(sch, block, epilogue, is_padded)
        staged = self._staged(last)
        for copy, side in zip(copies, matmul.sides, strict=True):
            if side.has_rows_across:
                self._lay_out_rows(copy, side)
        over, slabs, steps, threads, pairs = self._tiled(block)
        for copy in copies:
            sch.compute_at(copy, slabs)
        sch.reverse_compute_at(last, over[-1])
        first = sch.decompose_reduction(block, slabs)
        self._lay_out_accumulators(block)
        if staged is not None:
            stored = staged.store(over[-1], self.tile.rows)
        else:
            dimensions = self._dimensions()
            stored = store_results(sch, last, over[-1], self.tile.rows, dimensions, matmul.is_transposed)
        cleared = loops_below(sch, first, over[-1])[-6:-3]
        for loops in (threads, stored, cleared):
            for loop, axis in zip(loops, "zyx", strict=True):
                sch.bind(loop, f"threadIdx.{axis}")
        tiles = fused(sch, over)
        sch.bind(tiles, "blockIdx.x")
        if self.plan.group > 1:
            sch.annotate(tiles, "rasterize", [*self.plan.size.grid(self.tile), self.plan.group])
        if self.plan.blocks:
            sch.annotate(tiles, "resident_blocks", self.plan.blocks)
        sch.annotate(slabs, "warp_role_stages", self.tile.stages)
        if self.tile.resident > 1:
            sch.annotate(slabs, "min_blocks_per_multiprocessor", self.tile.resident)
        for copy, side in zip(copies, matmul.sides, strict=True):
            self._copied(copy, side, slabs)
        if staged is not None:
            staged.annotate()
        for part in (stored[0], cleared[0], steps):
            sch.annotate(part, "warp_role", _MMA)
        sch.annotate(pairs, "tensor_core", "wgmma")
        return first_copies

    def _staged(self, last: BlockRV) -> StagedResults | None:
        """Results on their way through shared memory; None where threads store them."""
        result = self.sch.get(last).writes[0].buffer
        chunk, slots = chunk_of(self.tile.columns, result.dtype.nbytes), self.tile.slots
        if self.matmul.is_transposed or not slots or not chunk or not is_tensor(result):
            return None
        m, n = self.matmul.m, self.matmul.n
        if (m < self.tile.rows and m % _SWIZZLED_ROWS) or (n < self.tile.columns and n % chunk):
            return None  # a box would begin within a swizzle, or have columns that nobody computes
        return StagedResults(self.sch, last, chunk, slots)

    # --- tiles ----------------------------------------------------------------------------------------------------

    def _tiled(self, block: BlockRV) -> _Tiled:
        """The product in tiles, its share of a thread as wgmma leaves it to one."""
        sch, matmul, tile = self.sch, self.matmul, self.tile
        loops = dict(zip([axis.var for axis in matmul.facts.axes], sch.get_loops(block), strict=True))
        outer = [loops[axis.var] for axis in matmul.product.outer]
        step = _STEP_BYTES // matmul.itemsize
        rows, w, h, hi = sch.split(loops[matmul.m_side.axis.var], [None, tile.rows // 16, 2, 8])
        columns, jo, lo, e = sch.split(loops[matmul.n_side.axis.var], [None, tile.columns // 8, 4, 2])
        slabs, steps, k = sch.split(loops[matmul.k_axis.var], [None, SLAB_BYTES // _STEP_BYTES, step])
        over = [*outer, rows, columns]
        sch.reorder(*over, slabs, steps, w, hi, lo, jo, h, e, k)
        return _Tiled(over, slabs, steps, [w, hi, lo], jo)

    def _dimensions(self) -> tuple[int, int]:
        """Those of rows and columns in the result."""
        axes = [axis.var for axis in self.matmul.facts.spatial]
        row, column = [axes.index(side.axis.var) for side in self.matmul.sides]
        return row, column

    def _lay_out_accumulators(self, block: BlockRV) -> None:
        """Accumulators in the order in which wgmma leaves them to a thread, which has all of its own in a row."""
        row, column = self._dimensions()

        def layout(*index: Any) -> list[Any]:
            i, j = index[row], index[column]
            others = [value for k, value in enumerate(index) if k not in (row, column)]
            return [*others, i // 16, i % 8, j % 8 // 2, j // 8, i % 16 // 8, j % 2]

        self.sch.transform_layout(block, ("write", 0), layout)

    # --- operands -------------------------------------------------------------------------------------------------

    def _lay_out_rows(self, copy: BlockRV, side: Side) -> None:
        """A tile whose rows run along M or N lies in rows of 64 elements, those of neighbours in K side by side."""

        def layout(*index: Any) -> list[Any]:
            along, k = index[side.along], index[side.k]
            others = [value for at, value in enumerate(index) if at not in (side.along, side.k)]
            return [*others, along // _ROW_ELEMENTS, k, along % _ROW_ELEMENTS]

        self.sch.transform_layout(copy, ("write", 0), layout)

    def _copied(self, copy: BlockRV, side: Side, slabs: LoopRV) -> None:
        """Boxes that one thread copies: whole slabs, or 64 elements of each of their rows."""
        sch = self.sch
        if side.has_rows_across:
            k, along = [loop for loop in loops_below(sch, copy, slabs) if extent_of(sch, loop) != 1]
            pieces, row = sch.split(along, [None, _ROW_ELEMENTS])
            sch.reorder(pieces, k, row)
        sch.annotate(loops_below(sch, copy, slabs)[0], "warp_role", _LOAD)
