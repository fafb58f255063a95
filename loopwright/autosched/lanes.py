"""Lanes: a reduction along memory becomes vectors of partial results, which are combined in a few steps at the end.

    for k in range(1000):            →    for k_0 in range(8):                            128 sums: 8 vectors of 16
        C = C + A[k]                          for k_1 in vectorized(128): C_rf[k_1] += A[k_0 * 128 + k_1]
                                          for …: C_rf_1[16 lanes] += C_rf[…]              8 vectors into 1
                                          for …: C_rf_2[4 lanes]  += C_rf_1[…]            its quarters into 1
                                          for …: C += C_rf_2[…]

One sum at a time would wait for each addition to end; so many vectors are under way that the units never wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.machine import Machine
from loopwright.ir import BlockRealize, Buffer
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.schedule.rewrite.combiners import read_reduction

QUARTER = 4  # lanes that are left to be combined one by one
SHORT_ROW = 32  # vectors
VECTORS_AT_ONCE = 4  # of a loop that is unrolled: loop overhead is amortised, and what is left over stays short


def lane_widths(extent: int | None, lanes: int, vectors: int) -> list[int]:
    """How many partial results there are after each step, for a reduction of `extent` values; empty for a short one.

    After a short row the steps that combine take as long as the row itself: then each halves the number.

    >>> lane_widths(1000, 16, 8), lane_widths(40, 16, 8), lane_widths(10, 16, 8), lane_widths(3, 16, 8)
    ([128, 16, 4], [32, 16, 8, 4, 2], [8, 4, 2], [])
    """
    if extent is not None and extent <= QUARTER:
        return []
    if extent is None:
        vectors = min(vectors, VECTORS_AT_ONCE)
    while extent is not None and lanes > extent:
        lanes //= 2
    while vectors > 1 and extent is not None and vectors * lanes > extent:
        vectors //= 2
    width = vectors * lanes
    if extent is not None and extent <= SHORT_ROW * lanes:
        return [width >> step for step in range(width.bit_length() - 1)]
    steps = [width, lanes, QUARTER]
    return [width for k, width in enumerate(steps) if width > 1 and (k == 0 or width < steps[k - 1])]


def vector_width(count: int | None, lanes: int, vectors: int) -> int:
    """How many neighbours a vector statement does, of `count` there are.

    >>> vector_width(1000, 16, 4), vector_width(40, 16, 4), vector_width(3, 16, 4), vector_width(None, 16, 4)
    (64, 32, 3, 64)
    """
    if count is not None and count < lanes:
        return count
    while count is not None and vectors > 1 and lanes * vectors > count:
        vectors //= 2
    return lanes * vectors


def vectors_under_way(machine: Machine) -> int:
    """So many additions are started before the first one ends."""
    return machine.fma_per_cycle * machine.fma_latency


def reduce_in_lanes(sch: Schedule, block: BlockRV, widths: Sequence[int]) -> list[BlockRV]:
    """Partial results along the innermost loop of a reduction; the new blocks and then `block`, in program order."""
    result = []
    for width in widths:
        inner = sch.split(sch.get_loops(block)[-1], [None, width])[-1]
        result.append(sch.rfactor(inner, -1))
    return [*result, block]


def keep_in_registers(sch: Schedule, partials: Sequence[BlockRV], block: BlockRV) -> None:
    """The partial results live in registers, as vectors; what is left for `block` is written out."""
    for partial in partials:
        sch.vectorize(sch.get_loops(partial)[-1])
        for k in range(len(sch.get(partial).writes)):
            sch.set_scope(partial, k, "local")
    for partial in partials[1:]:
        sch.unroll(sch.get_loops(partial)[-2])
    if partials:
        sch.unroll(sch.get_loops(block)[-1])


def sink(sch: Schedule, block: BlockRV, buffer: Buffer) -> None:
    """Allocate a buffer that `block` writes as far in as its values allow."""
    node = sch.get(block)
    touched = list(dict.fromkeys([region.buffer for region in (*node.reads, *node.writes)]))
    sch.sink_alloc(block, touched.index(buffer))


def may_regroup(realize: BlockRealize) -> bool:
    """Whether the members of a reduction may be combined in any grouping and order."""
    try:
        return read_reduction("reduction", realize).commutative
    except ScheduleError:
        return False
