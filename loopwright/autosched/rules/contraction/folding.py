"""Folding: rows that several axes number become one axis, where memory does not see the seam.

    C[b, i, j] += A[b, i, k] * B[k, j]      →      C2[p, j] += A2[p, k] * B[k, j]        p = b * rows + i

B is the same for all of them: one product of many rows packs it once, and has few tiles that are not whole. A2 and C2
are other names for the same memory: the copies that make them are written into the blocks that use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, Axis, const
from loopwright.autosched.layouts import dimensions, folded, layout
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.renaming import rename
from loopwright.autosched.rules.contraction.product import Product
from loopwright.schedule import Schedule

ENOUGH = 64  # rows of a product whose other operand is packed already: more bring nothing


def foldable_rows(product: Product) -> tuple[Axis, ...]:
    """The axes that are one in memory, with that of the rows last; none where there is nothing to fold."""
    row = product.row
    if row is None or product.is_of_one_buffer or (product.prepacks_columns and product.m >= ENOUGH):
        return ()
    if any(axis.extent is None for axis in product.facts.axes):
        return ()
    accesses = (product.row_operand, product.facts.write)
    axes = list(product.facts.spatial)
    result = [row]
    for axis in reversed(axes[: axes.index(row)]):
        is_row = product.row_operand.uses(axis.var) and not product.column_operand.uses(axis.var)
        if not is_row or not all(_is_before(access, axis, result[0]) for access in accesses):
            break
        result.insert(0, axis)
    return tuple(result) if len(result) > 1 else ()


def _is_before(access: Access, axis: Axis, inner: Axis) -> bool:
    """Whether an axis is the dimension before that of `inner`, of which the buffer has all there is."""
    first, second = access.own_dimension(axis.var), access.own_dimension(inner.var)
    if first is None or second is None or second != first + 1 or access.buffer.strides:
        return False
    return const(access.buffer.shape[second]) == inner.extent and const(access.buffer.shape[first]) == axis.extent


def fold_rows(
    sch: Schedule, product: Product, rows: Sequence[Axis], epilogue: Sequence[Entry], program: Program
) -> tuple[Program, list[Entry]]:
    """Make these axes one; the program then, the block of the product and those after it."""
    block = sch.get_block(product.facts.name)
    operand, result = (_folding(access, rows) for access in (product.row_operand, product.facts.write))
    renamed = rename(sch, block, product.row_operand.buffer, operand, epilogue, result)
    axes = product.facts.axes
    names = dict(zip([axis.var for axis in axes], dimensions(len(axes)), strict=True))
    one = folded([names[axis.var] for axis in rows], [axis.extent or 1 for axis in rows])
    order = [one if axis is rows[0] else names[axis.var] for axis in axes if axis not in rows[1:]]
    sch.transform_block_layout(block, layout(list(names.values()), order))
    sch.compute_inline(renamed.operand)  # rows are read where they are
    now = program.after(sch)
    return now, [now.entry(sch.get(each).name_hint) for each in (block, *renamed.after)]


def _folding(access: Access, rows: Sequence[Axis]) -> str:
    """lambda b, i, k: (b * 8 + i, k)"""
    names = dimensions(len(access.indices))
    first = access.own_dimension(rows[0].var)
    assert first is not None
    end = first + len(rows)
    one = folded(names[first:end], [axis.extent or 1 for axis in rows])
    return layout(names, [*names[:first], one, *names[end:]])
