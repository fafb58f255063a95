"""Short rows: what is reduced along memory in too few steps for a vector is reduced for many results at a time.

    C[i] = sum of A[i, k] over 3 k       for i_0:                                               32 results
                                             for k: S[0:32] += A[32 * i_0 + (0:32), k]          strided loads, shuffled
                                             C[32 * i_0 + (0:32)] = S[0:32]

Nothing is combined across lanes, and each result is reduced in the order of the program.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.autosched.facts import Axis, BlockFacts
from loopwright.autosched.lanes import QUARTER
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.small_steps import loops_by_axis
from loopwright.runtime.dtype import DataType
from loopwright.schedule import LoopRV, Schedule

LANES_OF_ROWS: Final = 8  # of a vector: of fewer, strided loads take about as many instructions as elements one by one
LONGEST: Final = 8  # steps of a reduction: strided loads further apart are not shuffled out of whole vectors
LOADS: Final = 8  # of a group of results
VECTORS_AT_LEAST: Final = 2
SHUFFLED_BYTES: Final = 4  # of an element, whose strided loads are shuffled


class ShortRows(NamedTuple):
    """A reduction of short rows."""

    facts: BlockFacts
    axis: Axis  # whose results are neighbours
    width: int  # results that are reduced at a time


def short_rows(facts: BlockFacts, machine: Machine) -> ShortRows | None:
    """The block as a reduction of short rows; None where rows fill vectors, or there are too few of them."""
    axis = next((axis for axis in reversed(facts.spatial) if axis.extent != 1), None)
    count = facts.extent(facts.reduce)
    lanes = machine.lanes(facts.dtype)
    if axis is None or axis.extent is None or count is None or not 1 < count <= min(LONGEST, lanes // 2):
        return None
    if lanes < LANES_OF_ROWS or not machine.has_instructions or len(facts.stores) > 1:
        return None
    types = {facts.dtype, *[str(access.buffer.dtype) for access in facts.reads]}
    strides = {access.stride(axis.var) if access.is_affine else None for access in facts.reads}
    if len(types) > 1 or bytes_of(facts.dtype) < SHUFFLED_BYTES or facts.write.stride(axis.var) != 1:
        return None
    if not {count} <= strides <= {0, count} or _is_vectorized_as_written(facts, count):
        return None
    vectors = max(1, LOADS // count)
    while vectors > 1 and axis.extent < VECTORS_AT_LEAST * vectors * lanes:
        vectors //= 2
    width = vectors * lanes
    return ShortRows(facts, axis, width) if axis.extent >= VECTORS_AT_LEAST * width else None


def _is_vectorized_as_written(facts: BlockFacts, count: int) -> bool:
    """Whether LLVM makes vectors of the loop itself: sums of one operand, but not maxima that keep a NaN."""
    if facts.combined is None or (facts.combined.op != "sum" and DataType(facts.dtype).is_float):
        return False
    has_one_operand, is_shortest = len(facts.reads) == 1, count < QUARTER
    is_wide = bytes_of(facts.dtype) > SHUFFLED_BYTES
    return has_one_operand + is_shortest + is_wide >= 2


def short_rows_nest(sch: Schedule, rows: ShortRows) -> list[LoopRV]:
    """The nest; its loops over groups of results."""
    facts = rows.facts
    block = sch.get_block(facts.name)
    loops = loops_by_axis(sch, block, facts)
    outer = [loops[axis.var] for axis in facts.spatial if axis is not rows.axis]
    groups, lane = sch.split(loops[rows.axis.var], [None, rows.width])
    steps = [loops[axis.var] for axis in facts.reduce]
    sch.reorder(*outer, groups, *steps, lane)
    out = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(out, groups)
    init = sch.decompose_reduction(block, steps[0])
    for each in (out, init):
        sch.vectorize(sch.get_loops(each)[-1])
    sch.vectorize(lane)
    for step in steps:
        sch.unroll(step)
    return sch.get_loops(block)[: len(outer) + 1]
