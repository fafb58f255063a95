"""Turned columns: few columns that lie across the reduction are transposed first, for tiles of dot products.

    C[i, j] += A[i, k] * B[k, j]      →      Bt[j, k] = B[k, j];  C[i, j] += A[i, k] * Bt[j, k]

Five columns fill five lanes of a vector of 16, and each element of A is broadcast for them. Along the reduction all
lanes are busy; what is copied is small beside A.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.layouts import swapped_last
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Program
from loopwright.autosched.rules.contraction.dots import DotTiles, choose_dots
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.autosched.rules.contraction.tiles import FOUR_BYTES, Tiles
from loopwright.ir import decl_buffer
from loopwright.schedule import Schedule

LANES_OF_COLUMNS: Final = 8  # of a vector: of fewer, few are idle
WORTH_COPYING: Final = 1.2  # times that tiles of vectors along the columns may take longer


def turned_columns(product: Product, tiles: Tiles, machine: Machine) -> bool:
    """Whether dot products of transposed columns cost less than `tiles`, the copy included."""
    lanes = machine.lanes(product.facts.dtype)
    operand, depth = product.column_operand, product.reduce[-1].var
    last = len(operand.indices) - 1
    if lanes < LANES_OF_COLUMNS or 2 * product.n > lanes or len(product.reduce) > 1 or product.is_of_one_buffer:
        return False
    if product.prepacks_columns or product.prepacks_rows or None in [axis.extent for axis in product.facts.axes]:
        return False
    if operand.own_dimension(depth) != last - 1 or operand.own_dimension(product.column.var) != last:
        return False
    if product.k * product.n * bytes_of(product.facts.dtype) > machine.l1 * 3 // 4:
        return False  # read for each row of A, they would come from L2 while A passes by
    swap = [*range(last - 1), last, last - 1]
    shape = [operand.buffer.shape[axis] for axis in swap]
    copy = operand._replace(
        buffer=decl_buffer(shape, str(operand.buffer.dtype), name=operand.buffer.name),
        indices=tuple([operand.indices[axis] for axis in swap]),
        forms=tuple([operand.forms[axis] for axis in swap]),
    )
    dots: DotTiles | None = choose_dots(replace(product, column_operand=copy), machine)
    each = machine.moves.transposed_short + machine.moves.stored
    copying = product.k * product.n * product.batch * each * bytes_of(product.facts.dtype) / FOUR_BYTES
    return dots is not None and WORTH_COPYING * (dots.cycles + copying) < tiles.cycles


def turn_columns(sch: Schedule, product: Product, program: Program) -> tuple[Program, Product, str]:
    """Transpose the columns; the program then, the product of it, and the name of the block that copies."""
    block = sch.get_block(product.facts.name)
    buffers = [region.buffer for region in sch.get(block).reads]
    copy = sch.cache_read(block, buffers.index(product.column_operand.buffer), "global")
    sch.transform_layout(copy, ("write", 0), swapped_last(len(product.column_operand.indices)))
    now = program.after(sch)
    facts = now.entry(product.facts.name).facts
    result = product_of(facts) if facts is not None else None
    if result is None:
        raise NotWorthIt(f"with transposed columns {product.facts.name} is no GEMM")
    return now, result, sch.get(copy).name_hint
