"""gemm: which blocks are matrix products, how large their tiles are, and what is expected of them.

    C[b, i, j] += A[b, i, k] * B[k, j]          any of the four transpositions, batched, of float32, float64 and int32
    E[b, i, j] = max(C[b, i, j] + bias[j], 0)   the epilogue, computed in registers

A few rows or columns have small tiles; a GEMV is left to reductions. Where the tiles are too few for all
multiprocessors, parts of the sum are a batch, which a second kernel adds up (split-K).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Access, BlockFacts
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.gemm.contraction import DTYPES, contraction_of
from loopwright.autosched.gpu.rules.gemm.implicit import schedule_contraction, splits_of
from loopwright.autosched.gpu.rules.gemm.planning import is_epilogue, note_plan, plan_of
from loopwright.autosched.gpu.rules.gemm.steps import Steps
from loopwright.autosched.gpu.rules.gemm.tiles import Side, Size, tiles_for, vector_of
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.product import Product, product_of
from loopwright.schedule import Schedule

_GAIN: Final = 1.1  # of a split sum: scheduling two kernels takes more than twice as long as one


class Gemm:
    """Takes a product of matrices, and the element-wise block after it."""

    name = "gemm"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        product = None if facts is None else gemm_of(facts)
        if product is None:
            return 0
        return 2 if len(pending) > 1 and is_epilogue(pending[1], product.facts, program) else 1

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        product = None if facts is None else gemm_of(facts)
        assert product is not None
        size = _size_of(product)
        stores_vectors = product.n % vector_of(size.itemsize) == 0
        contraction = contraction_of(product.facts)
        splits = (lambda tile: [1]) if contraction is None else splits_of(contraction, entries[0], None)
        plan = plan_of(tiles_for(size, machine), size, machine, stores_vectors, splits, _GAIN)
        if contraction is not None and plan.splits > 1:
            schedule_contraction(sch, contraction, plan, None, entries[1:], program, machine)
        else:
            epilogue = sch.get_block(entries[1].name) if len(entries) > 1 else None
            Steps(sch, product, plan).run(epilogue, {})
        note_plan(decision, plan, size, entries, machine)


def gemm_of(facts: BlockFacts) -> Product | None:
    """The block as a product of matrices, batched or not, that can be tiled; None where it is none."""
    product = product_of(facts)
    if product is None or product.row is None or len(product.reduce) != 1 or product.is_of_one_buffer:
        return None
    sides = (product.row_operand, product.column_operand)
    dtypes = {str(access.buffer.dtype) for access in (*sides, facts.write)}
    if len(dtypes) != 1 or dtypes.pop() not in DTYPES or not facts.writes_in_order:
        return None
    if min(product.m, product.n) < 2 or any(not axis.extent for axis in facts.axes):
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
        Side(_is_transposed(access, product), _is_aligned(access, product, vector_of(itemsize)))
        for access in (product.row_operand, product.column_operand)
    ]
    return Size(product.m, product.n, product.k, product.batch, itemsize, sides[0], sides[1])


def _is_transposed(access: Access, product: Product) -> bool:
    """Whether the operand runs along the reduction in memory."""
    return access.stride(product.reduce[0].var) == 1


def _is_aligned(access: Access, product: Product, vector: int) -> bool:
    """Whether vectors along the operand's rows in memory begin at multiples of a vector, if the operand does."""
    strides = [access.stride(axis.var) for axis in product.facts.axes if access.uses(axis.var) and axis.extent != 1]
    return all([stride is not None and (stride == 1 or stride % vector == 0) for stride in strides])
