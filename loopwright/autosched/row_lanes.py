"""Rows in lanes: rows too short for vectors are done several at a time, each in a lane of its own.

    for i: m[i] = max over k of A[i, k]              for i_0:                                    4 rows
    for i: s[i] = sum over k of exp(A[i, k] - m[i])      for k: m[0:4] = max(m[0:4], A[4 * i_0 + (0:4), k])
    for i, k: B[i, k] = A[i, k] - m[i] - log(s[i])       for k: s[0:4] += exp(A[…] - m[0:4])
                                                         for k: B[…] = A[…] - m[0:4] - log(s[0:4])

Nothing is combined across lanes, no lane is idle at a row's end, and what is computed once for each row (a logarithm, a
division) is computed for several. Loads and stores are strided: that pays where a row has functions to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.lanes import sink
from loopwright.autosched.machine import Machine
from loopwright.autosched.row_nest import along_row
from loopwright.autosched.small_steps import fused
from loopwright.ir import Buffer, Expr
from loopwright.schedule import LoopRV, Schedule

SHORT_ROW_CELLS: Final = 24  # strided loads of a longer row take more time than its idle lanes
SHORT_ROW_VECTORS: Final = 5  # and so they do where idle lanes are few beside those of so many vectors
GROUPS_AT_LEAST: Final = 3  # of rows that fill all lanes
REGISTERS_FOR_MORE: Final = 32  # of which four vectors and the constants of a function take most


def lanes_of_rows(blocks: Sequence[BlockFacts], rows: int, machine: Machine) -> int:
    """How many rows are done together, in lanes of a few vectors; 0 where each is better done by itself."""
    lanes = min([machine.lanes(facts.dtype) for facts in blocks])
    lengths = [facts.extent(along_row(facts, rows)) for facts in blocks if along_row(facts, rows)]
    along = [facts.axes[rows - 1] for facts in blocks]
    if along[0].extent is None or not any(facts.costly_calls for facts in blocks):
        return 0
    if not all(length is not None and _is_short(length, lanes) for length in lengths):
        return 0
    strides = [access.stride(axis.var) for facts, axis in zip(blocks, along, strict=True) for access in facts.reads]
    if None in strides:
        return 0
    vectors = 4 if machine.registers >= REGISTERS_FOR_MORE else 2
    while vectors > 1 and along[0].extent < GROUPS_AT_LEAST * vectors * lanes:
        vectors //= 2
    return vectors * lanes if along[0].extent >= GROUPS_AT_LEAST * vectors * lanes else 0


def _is_short(length: int, lanes: int) -> bool:
    """Whether vectors along a row would have many idle lanes, or combining their lanes take longer than the row."""
    return length <= lanes or (length <= min(SHORT_ROW_CELLS, SHORT_ROW_VECTORS * lanes) and length % lanes != 0)


def lane_nest(sch: Schedule, blocks: Sequence[BlockFacts], rows: int, lanes: int, kept: Sequence[Buffer]) -> LoopRV:
    """One nest of all blocks, `lanes` neighbours along the last axis of the rows at a time; the loop over groups."""

    def rows_last(*at: Expr) -> tuple[Expr, ...]:
        return (*at[: rows - 1], *at[rows:], at[rows - 1])

    handles = [sch.get_block(facts.name) for facts in blocks]
    own = [
        [position for position, write in enumerate(facts.writes) if write.buffer in kept] for facts in blocks
    ]  # before layouts change, and with them buffers
    for facts, block, positions in zip(blocks, handles, own, strict=True):
        for position in positions:
            if len(facts.writes[position].indices) > rows:
                sch.transform_layout(block, ("write", position), rows_last)
    for block in handles:
        loops = sch.get_loops(block)
        lane = sch.split(loops[rows - 1], [None, lanes])[1]
        if loops[rows:]:
            sch.reorder(*loops[rows:], lane)
    sch.merge(*[sch.get_loops(block)[rows - 1] for block in handles])
    for block, positions in zip(handles, own, strict=True):
        sch.vectorize(sch.get_loops(block)[-1])
        for position in positions:
            sink(sch, block, sch.get(block).writes[position].buffer)
    return fused(sch, sch.get_loops(handles[0])[:rows])
