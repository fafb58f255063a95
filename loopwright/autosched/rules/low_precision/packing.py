"""Packing B for dot products: a few rows of the reduction side by side, a panel of columns together.

    P[j // 32, k // 4, j % 32, k % 4] = B[k, j]        four rows of 32 columns are interleaved by shuffles

What changes B on the way (padding, another type) is done to a few rows first, in a small buffer of its own.
"""

from __future__ import annotations

from loopwright.autosched.facts import const
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.low_precision.sizes import Sizes
from loopwright.autosched.small_steps import loop_of_axis, loops_below, vectors
from loopwright.schedule import BlockRV, LoopRV, Schedule

GROUPS = 8  # of rows that are packed before the next panel: whole pages are read before they are left
COPIED = 32  # columns that are converted at a time


def pack_panels(
    sch: Schedule, packed: BlockRV, before: BlockRV | None, offset: LoopRV | None, product: Product, sizes: Sizes
) -> list[LoopRV]:
    """Schedule the packing, inside `offset` if there is one; its outermost loops, whose iterations are independent."""
    group = sizes.unit.group
    loops = sch.get_loops(packed) if offset is None else loops_below(sch, packed, offset)
    operand = product.column_operand
    depth_at, column_at = depth_dimension(product), product.column_dimension
    assert column_at is not None
    rows, columns = (loop_of_axis(sch, packed, k, loops) for k in (depth_at, column_at))
    if rows is None or columns is None:
        return []
    others = [loop for loop in loops if loop not in (rows, columns)]
    along = column_at == len(operand.indices) - 1
    panels, column = sch.split(columns, [None, sizes.panel])
    groups, row = sch.split(rows, [None, group]) if group > 1 else (rows, None)
    count = const(sch.get(groups).extent)
    few = GROUPS if count is not None and count % GROUPS == 0 else 1
    turn, groups = sch.split(groups, [None, few])
    if not along:
        inner = [] if row is None else [row]
        sch.reorder(*others, panels, turn, groups, column, *inner)
        if before is not None:
            sch.compute_inline(before)
        if row is not None:
            sch.vectorize(row)
        return [*others, panels]
    inner = [column] if row is None else [row, column]
    sch.reorder(*others, turn, panels, groups, *inner)
    if before is not None and row is not None:
        sch.compute_at(before, groups)
        sch.sink_alloc(before, sch.get(before).writes[0].buffer.name)
        vectors(sch, sch.get_loops(before)[-1], COPIED)
    elif before is not None:
        sch.compute_inline(before)
    if row is None:
        sch.vectorize(column)
    else:
        dtype = sch.get(packed).writes[0].buffer.dtype
        sch.tensorize(row, f"interleave_{group}x{sizes.panel}_{dtype}")
    return [*others, turn]


def depth_dimension(product: Product) -> int:
    """The dimension of the column operand that is reduced."""
    forms = product.column_operand.forms
    return next(k for k, form in enumerate(forms) if form is not None and product.reduce[0].var in form.terms)
