"""Turned result: a product of few columns is computed as its transpose, where A lies the way that likes.

    C[i, j] += A[k, i] * B[j, k]      →      Ct[j, i] += B[j, k] * A[k, i];  C[i, j] = Ct[j, i]

Three columns fill three lanes of a vector, and A would be packed number by number to be multiplied with them. The rows
of A are vectors as they lie; what is transposed in the end is the result, which is small beside the reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loopwright.autosched.layouts import swapped_last
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.contraction.tiles import FOUR_BYTES
from loopwright.schedule import Schedule

WORTH_TURNING: Final = 1.05  # times that what is written as it is asked for may take longer: one kernel less to compile


def turned_product(product: Product) -> Product | None:
    """The same product with rows and columns exchanged; None where A is not contiguous along its rows."""
    row, write = product.row, product.facts.write
    last = len(write.indices) - 1
    if row is None or product.is_of_one_buffer or product.row_operand.stride(row.var) != 1:
        return None
    if write.own_dimension(row.var) != last - 1 or write.own_dimension(product.column.var) != last:
        return None
    if product.row_dimension is None or any(axis.extent is None for axis in product.facts.axes):
        return None
    if product.prepacks_columns or product.prepacks_rows:
        return None
    along = product.column_operand
    reduce = sorted(product.facts.reduce, key=lambda axis: (axis.extent != 1, along.stride(axis.var) == 1))
    return replace(
        product,
        row_operand=along,
        column_operand=product.row_operand,
        row=product.column,
        column=row,
        reduce=tuple(reduce),
    )


def turning_cycles(product: Product, machine: Machine) -> float:
    """What it takes to bring the result into its own order."""
    each = machine.moves.transposed_short + machine.moves.stored
    return product.m * product.n * product.batch * each * bytes_of(product.facts.dtype) / FOUR_BYTES


def turn_result(
    sch: Schedule, product: Product, epilogue: Sequence[Entry], program: Program
) -> tuple[Program, Entry, list[str]]:
    """Make the product write its transpose; the program then, the product's block, and the names of those after it."""
    block = sch.get_block(product.facts.name)
    result = product.facts.write
    copy = sch.cache_write(block, 0, "global")
    sch.transform_layout(block, ("write", 0), swapped_last(len(result.indices)))
    after = [entry.name for entry in epilogue]
    if after and not program.is_output(result.buffer):
        sch.compute_inline(copy)
    else:
        after.insert(0, sch.get(copy).name_hint)
    now = program.after(sch)
    return now, now.entry(sch.get(block).name_hint), after
