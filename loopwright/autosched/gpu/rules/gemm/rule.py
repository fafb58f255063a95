"""gemm: which blocks are matrix products, how large their tiles are, and what is expected of them.

    C[b, i, j] += A[b, i, k] * B[k, j]          any of the four transpositions, batched, of float32, float64 and int32
    E[b, i, j] = max(C[b, i, j] + bias[j], 0)   the epilogue, computed in registers

Rows and columns of less than half a tile are left to other rules: threads would compute zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from loopwright.autosched.choices import option, pick
from loopwright.autosched.decision import Choice, ChoiceKind, Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.gpu.rules.gemm.steps import Steps, is_aligned, is_transposed
from loopwright.autosched.gpu.rules.gemm.tiles import (
    Side,
    Size,
    Tile,
    seconds,
    share_of_peak,
    tiles_for,
    vector_of,
)
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.schedule import Schedule

FEW: Final = 16  # rows or columns that are no tile
_DTYPES: Final = ("float32", "float64", "int32")
_GROUP: Final = 16  # columns of tiles at most that are walked together
_MOST_BLOCKS: Final = 65535  # along y and z


class Gemm:
    """Takes a product of matrices, and the element-wise block after it."""

    name = "gemm"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        product = None if facts is None else gemm_of(facts)
        if product is None:
            return 0
        return 2 if len(pending) > 1 and _is_epilogue(pending[1], product, program) else 1

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        product = None if facts is None else gemm_of(facts)
        assert product is not None
        size = _size_of(product)
        tiles = tiles_for(size, machine)
        if not tiles:
            raise NotWorthIt("no tile of the product fits the threads and the memory of a block")
        tile = pick("tile", tiles, lambda tile: seconds(tile, size, machine))
        resident = tile.resident(size.itemsize, machine)
        columns = ceil(size.n / tile.columns)
        usual = next((group for group in range(_GROUP, 3, -1) if columns % group == 0), 1)
        group = option("group", usual if columns > _GROUP else 1, 1, 4, 8, 16)
        if columns % group:
            group = 1
        if max(ceil(size.m / tile.rows), columns // group * size.batch) > _MOST_BLOCKS:
            raise NotWorthIt("the product has more tiles than a grid has blocks")
        epilogue = entries[1].facts if len(entries) > 1 else None
        scope = "shared" if tile.shared(size.itemsize) <= machine.static_shared_memory else "shared.dyn"
        Steps(sch, product, tile, group, resident, scope).run(epilogue)
        self._note(decision, product, size, tile, group, machine)
        facts_of_all = [entry.facts for entry in entries if entry.facts is not None]
        share = min(0.95, size.flops * max(1, size.itemsize // 4) / machine.flops / seconds(tile, size, machine))
        note_roofline(decision, facts_of_all, machine, share, size.flops * max(1, size.itemsize // 4))

    def _note(
        self, decision: Decision, product: Product, size: Size, tile: Tile, group: int, machine: GpuMachine
    ) -> None:
        blocks, resident = size.blocks(tile), tile.resident(size.itemsize, machine)
        rows, columns = tile.of_thread
        waves = machine.waves(blocks, tile.threads, tile.shared(size.itemsize), tile.registers(size.itemsize))
        together = min(resident, ceil(blocks / machine.multiprocessors))
        decision.choices.append(
            Choice(
                f"tile {tile.text()}",
                f"{rows * columns} accumulators a thread, {tile.threads} threads a block, {resident} blocks a "
                f"multiprocessor; {share_of_peak(tile, together, machine):.0%} of the peak",
                ChoiceKind.TILES,
            )
        )
        decision.chose(f"{blocks} blocks, {waves:.2f} waves", "as many multiprocessors as possible end together")
        kept = tile.shared(size.itemsize) / 1024
        decision.chose(f"2 stages of {kept / 2:.1f} KiB", "the next slab is loaded while this one is computed")
        if group > 1:
            decision.chose(f"groups of {group} columns of tiles", "blocks that run together share operands in L2")
        padded = ceil(size.m / tile.rows) * tile.rows * ceil(size.n / tile.columns) * tile.columns
        decision.tile_use = size.m * size.n / padded


def gemm_of(facts: BlockFacts) -> Product | None:
    """The block as a product of matrices, batched or not, that can be tiled; None where it is none."""
    product = product_of(facts)
    if product is None or product.row is None or len(product.reduce) != 1 or product.is_of_one_buffer:
        return None
    sides = (product.row_operand, product.column_operand)
    dtypes = {str(access.buffer.dtype) for access in (*sides, facts.write)}
    if len(dtypes) != 1 or dtypes.pop() not in _DTYPES or not facts.writes_in_order:
        return None
    if min(product.m, product.n) <= FEW or any(not axis.extent for axis in facts.axes):
        return None
    reduced = product.reduce[0].var
    for access, axis in zip(sides, (product.row, product.column), strict=True):
        own = [access.own_dimension(var) for var in (axis.var, reduced)]
        if None in own or access.uses((product.column if axis is product.row else product.row).var):
            return None
        if access.stride(reduced) != 1 and access.stride(axis.var) != 1:
            return None
        if any(access.uses(outer.var) and access.own_dimension(outer.var) is None for outer in product.outer):
            return None
    return product


def _size_of(product: Product) -> Size:
    itemsize = bytes_of(product.facts.dtype)
    sides = [
        Side(is_transposed(access, product), is_aligned(access, product, vector_of(itemsize)))
        for access in (product.row_operand, product.column_operand)
    ]
    return Size(product.m, product.n, product.k, product.batch, itemsize, sides[0], sides[1])


def _is_epilogue(entry: Entry, product: Product, program: Program) -> bool:
    """Whether the block computes each of its cells from the same cell of the product, which nobody else reads."""
    facts, result = entry.facts, product.facts.write.buffer
    if facts is None or not facts.is_injective or len(facts.stores) != 1 or program.is_output(result):
        return False
    readers = program.readers(result)
    if len(readers) != 1 or readers[0] is not entry or not facts.writes_in_order:
        return False
    extents = [axis.extent for axis in product.facts.spatial]
    axes = [axis.var for axis in facts.axes]
    reads = [access for access in facts.reads if access.buffer is result]
    same = [[access.own_dimension(var) for var in axes] == list(range(len(axes))) for access in reads]
    return [axis.extent for axis in facts.axes] == extents and bool(same) and all(same)
