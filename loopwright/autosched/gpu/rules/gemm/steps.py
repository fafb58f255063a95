"""The steps that schedule a matrix product on a GPU.

    for i, j, k: C[i, j] += A[i, k] * B[k, j]         for blocks of tiles:                            blockIdx
        →                                                 for k in slabs:                             a pipeline
                                                              a = A[…]; b = B[…]                      registers
                                                              A_shared = a transposed; B_shared = b   two versions
                                                              for kk in slab:                         unrolled
                                                                  8 of A, 8 of B from shared memory
                                                                  64 multiply-adds in registers
                                                          C[…] = what follows the product

The next slab is loaded before the arithmetic of this one and put into the other half of shared memory after it: one
barrier a slab. Sizes that are no multiples are padded: what is loaded beyond the end is 0, and is not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.autosched.facts import Access
from loopwright.autosched.gpu.rules.gemm.tiles import Plan, Side
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.small_steps import extent_of, fused, loops_below
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule


@dataclass
class Operand:
    """An operand of the product on its way to the threads."""

    position: int  # among what the product reads
    dimensions: tuple[int, int]  # of its buffer: that of its rows or columns, and that of the reduction
    is_row: bool  # or else the one with the columns
    side: Side  # one that runs along the reduction in memory is transposed on its way


class Steps:
    """Schedules one product."""

    def __init__(self, sch: Schedule, product: Product, plan: Plan) -> None:
        self.sch, self.product, self.plan, self.tile = sch, product, plan, plan.tile
        self.bound: list[tuple[LoopRV, str]] = []

    def run(self, epilogue: BlockRV | None, loaders: Mapping[Buffer, BlockRV]) -> None:
        """All steps; `epilogue` reads the result, cell by cell, and a loader computes what the product reads."""
        sch, facts = self.sch, self.product.facts
        block = sch.get_block(facts.name)
        sides = [self.product.row_operand, self.product.column_operand]
        copies = self._padded(block, [access.buffer for access in sides])
        for k, access in enumerate(sides):
            loader = loaders.get(access.buffer)
            if loader is not None and copies[k] is not None:
                sch.compute_inline(loader)
            elif loader is not None:
                sch.set_scope(loader, 0, "local")
                copies[k] = loader
        last = self._result(block, epilogue)
        where, slabs, steps = self._tiled(block)
        sch.reverse_compute_at(last, where)
        self._stored(last, where)
        for access, copy in zip(sides, copies, strict=True):
            self._operand(block, self._operand_of(block, access, copy), copy, slabs, steps)
        for loop, tag in self.bound:  # last: no step before them has to show whose memory is whose
            sch.bind(loop, tag)
        order = [0, 3, 1, 4, 2]  # loads, arithmetic, stores to shared memory
        sch.annotate(slabs, "software_pipeline_stage", [0, 0, 0, 0, 1])
        sch.annotate(slabs, "software_pipeline_order", order)
        sch.annotate(slabs, "software_pipeline_predicated", 1)
        sch.annotate(slabs, "keeps_loads_before_barriers", 1)
        if self.plan.resident > 1:
            sch.annotate(slabs, "min_blocks_per_multiprocessor", self.plan.resident)

    # --- sizes ----------------------------------------------------------------------------------------------------

    def _padded(self, block: BlockRV, given: Sequence[Buffer]) -> list[BlockRV | None]:
        """The copies of the operands with zeros around them, kept in registers; None for what needs no padding."""
        sch, product, tile = self.sch, self.product, self.tile
        assert product.row is not None
        wanted = {product.row.var: tile.rows, product.column.var: tile.columns, product.reduce[0].var: tile.depth}
        sizes = [wanted.get(axis.var, 1) for axis in product.facts.axes]
        if all([(axis.extent or 0) % size == 0 for axis, size in zip(product.facts.axes, sizes, strict=True)]):
            return [None, None]
        sch.pad_einsum(block, sizes)
        copies: dict[Buffer, BlockRV] = {}
        for producer in sch.get_producers(block):
            made = sch.get(producer)
            source = made.reads[0].buffer
            if source in given and made.writes[0].buffer not in given:
                copies[source] = producer
                sch.set_scope(producer, 0, "local")
        return [copies.get(buffer) for buffer in given]

    def _result(self, block: BlockRV, epilogue: BlockRV | None) -> BlockRV:
        """The block that stores the results, which are in registers until then."""
        sch = self.sch
        is_padded = sch.get(block).writes[0].buffer is not self.product.facts.write.buffer
        if not is_padded and epilogue is None:
            return sch.cache_write(block, 0, "local")
        if epilogue is not None:
            last = epilogue
            if is_padded:
                sch.compute_inline(sch.get_consumers(block)[0])
        else:
            last = sch.get_consumers(block)[0]
        sch.set_scope(block, 0, "local")
        return last

    # --- tiles ----------------------------------------------------------------------------------------------------

    def _tiled(self, block: BlockRV) -> tuple[LoopRV, LoopRV, LoopRV]:
        """The product in tiles: the innermost loop over blocks, the one over slabs and the one inside a slab."""
        sch, product, tile = self.sch, self.product, self.tile
        assert product.row is not None
        loops = dict(zip([axis.var for axis in product.facts.axes], sch.get_loops(block), strict=True))
        outer = [loops[axis.var] for axis in product.outer]
        block_i, rows = sch.split(loops[product.row.var], [None, tile.rows])
        block_j, columns = sch.split(loops[product.column.var], [None, tile.columns])
        slabs, steps = sch.split(loops[product.reduce[0].var], [None, tile.depth])
        row_piece, y, row = sch.split(rows, [None, tile.y, tile.vector])
        column_piece, z, x, column = sch.split(columns, [None, tile.z, tile.x, tile.vector])
        if self.plan.group > 1 and not outer:
            far, block_j = sch.split(block_j, [None, self.plan.group])
            over = [far, block_i, block_j]
        else:
            over = [*outer, block_i, block_j]
        sch.reorder(*over, slabs, z, y, x, steps, row_piece, row, column_piece, column)
        if len(over) > 2:
            over = [fused(sch, over[:-2]), *over[-2:]]
        for loop, axis in zip(reversed(over), "xyz", strict=False):
            self.bound.append((loop, f"blockIdx.{axis}"))
        self._bind(x, y, z)
        for loop in (steps, row_piece, row, column_piece, column):
            sch.unroll(loop)
        return over[-1], slabs, steps

    def _stored(self, last: BlockRV, where: LoopRV) -> None:
        """The block that stores the results, shared out as the accumulators are."""
        sch, tile = self.sch, self.tile
        rows, columns = [loop for loop in loops_below(sch, last, where) if extent_of(sch, loop) != 1]
        row_piece, y, row = sch.split(rows, [None, tile.y, tile.vector])
        column_piece, z, x, column = sch.split(columns, [None, tile.z, tile.x, tile.vector])
        sch.reorder(z, y, x, row_piece, row, column_piece, column)
        self._bind(x, y, z)
        for loop in (row_piece, row, column_piece):
            sch.unroll(loop)
        if self.plan.stores_vectors:
            sch.vectorize(column)
        else:
            sch.unroll(column)

    def _bind(self, x: LoopRV, y: LoopRV, z: LoopRV) -> None:
        for loop, axis in ((x, "x"), (y, "y"), (z, "z")):
            self.bound.append((loop, f"threadIdx.{axis}"))

    # --- operands -------------------------------------------------------------------------------------------------

    def _operand_of(self, block: BlockRV, access: Access, copy: BlockRV | None) -> Operand:
        sch, product = self.sch, self.product
        buffer = access.buffer if copy is None else sch.get(copy).writes[0].buffer
        position = [region.buffer for region in sch.get(block).reads].index(buffer)
        is_row = access is product.row_operand
        assert product.row is not None
        along = access.own_dimension((product.row if is_row else product.column).var)
        reduced = access.own_dimension(product.reduce[0].var)
        assert along is not None and reduced is not None
        return Operand(position, (along, reduced), is_row, self.plan.rows if is_row else self.plan.columns)

    def _operand(self, block: BlockRV, operand: Operand, copy: BlockRV | None, slabs: LoopRV, steps: LoopRV) -> None:
        """From memory to registers, from there to shared memory, and vectors of that to registers again."""
        sch = self.sch
        shared = sch.cache_read(block, operand.position, self.plan.scope)
        loaded = sch.cache_read(shared, 0, "local") if copy is None else copy
        self._lay_out(shared, operand)
        fragment = sch.cache_read(block, operand.position, "local")
        sch.compute_at(fragment, steps)
        inner = [loop for loop in loops_below(sch, fragment, steps) if extent_of(sch, loop) != 1]
        for loop in inner[:-1]:
            sch.unroll(loop)
        sch.vectorize(inner[-1])
        for stage in (shared, loaded):
            sch.compute_at(stage, slabs)
            self._share_out(stage, operand, slabs)
        sch.annotate(shared, "double_buffer_scope", 0)

    def _lay_out(self, shared: BlockRV, operand: Operand) -> None:
        """In shared memory the reduction is the slowest dimension, and a piece of the block follows another one."""
        sch, tile = self.sch, self.tile
        along, reduced = operand.dimensions
        width = (tile.y if operand.is_row else tile.z * tile.x) * tile.vector
        count = len(sch.get(shared).writes[0].buffer.shape)

        def layout(*index: Any) -> list[object]:
            others = [index[k] for k in range(count) if k not in (along, reduced)]
            return [*others, index[reduced], index[along] // width, index[along] % width]

        sch.transform_layout(shared, ("write", 0), layout)
        if operand.side.is_transposed:
            sch.storage_align(shared, 0, count - 2, 8 * tile.vector, tile.vector)

    def _share_out(self, stage: BlockRV, operand: Operand, slabs: LoopRV) -> None:
        """Each thread loads vectors along the operand's rows in memory, or where there are none, a warp single numbers.

        Lanes along x are neighbours, then those along y: single numbers are next to each other in a warp, and lie in
        different banks when they are stored.
        """
        sch, tile = self.sch, self.tile
        loops = [loop for loop in loops_below(sch, stage, slabs) if extent_of(sch, loop) != 1]
        first, second = loops
        along, reduced = (first, second) if operand.dimensions[0] < operand.dimensions[1] else (second, first)
        lane: list[LoopRV] = []
        if not operand.side.is_aligned and operand.side.is_transposed:
            some, y = sch.split(reduced, [None, tile.y])
            more, z, x = sch.split(along, [None, tile.z, tile.x])
        elif not operand.side.is_aligned:
            some, z = sch.split(reduced, [None, tile.z])
            more, y, x = sch.split(along, [None, tile.y, tile.x])
        elif operand.side.is_transposed:
            some, z, y = sch.split(along, [None, tile.z, tile.y])
            more, x, *lane = sch.split(reduced, [None, tile.x, tile.vector])
        else:
            some, y = sch.split(reduced, [None, tile.y])
            more, z, x, *lane = sch.split(along, [None, tile.z, tile.x, tile.vector])
        sch.reorder(z, y, x, some, more, *lane)
        self._bind(x, y, z)
        sch.unroll(some)
        sch.unroll(more)
        if lane:
            sch.vectorize(lane[0])
