"""row gather: rows of the result are rows of an operand, but the next one comes from far away.

    for i, j, k in T.grid(384, 256, 64):    →    for i_0, j_0 in T.grid(24, 16):            a page of both, each way
        Y[i, j, k] = X[j, i, k]                      for i_1, j_1 in T.grid(16, 16):
                                                         T.prefetch(Y[i, j + 4, :])         to be written
                                                         for k_1 in T.unroll(4):
                                                             for k_2 in T.vectorized(16): Y[i, j, k] = X[j, i, k]

Hardware brings lines of a stream ahead, within a page, and a row ends before it has begun. Rows are done in blocks, of
which a side is a page of the result and the other a page of the operand, so that both are walked over where they lie
together. A line must be owned before any of it is written: the rows that the result comes to next are prefetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.autosched.axis_uses import own_uses
from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.lanes import VECTORS_AT_ONCE
from loopwright.autosched.machine import Machine
from loopwright.autosched.nest_cost import common_lanes, nest_cost
from loopwright.autosched.parallelize import parallelize_outer
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.transpose import block_size
from loopwright.autosched.streams import Stream, Streams
from loopwright.schedule import Schedule

_LEAST: Final = 1 << 20  # bytes: less is in a cache that is near enough on every machine
_ROW: Final = range(64, 2048 + 1)  # bytes: a shorter row is no cache line, a longer one streams by itself


class _Move(NamedTuple):
    """Axis `row` walks over neighbours everywhere, `near` over rows of the result, `far` over rows of an operand."""

    row: int
    near: int
    far: int
    load: Stream
    row_bytes: int


class MovedRows:
    """Takes one large block that reads rows in another order than it writes them in."""

    name = "row gather"
    kind = RuleKind.ACROSS_MEMORY

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        return int(facts is not None and facts.is_injective and _move(facts, Streams(facts)) is not None)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        streams = Streams(facts)
        move = _move(facts, streams)
        assert move is not None
        cost = nest_cost([facts], machine)
        cost.note(decision)
        loops = list(sch.get_loops(sch.get_block(facts.name)))
        row, rows, others = loops[move.row], loops[move.near], loops[move.far]
        outer = [loop for position, loop in enumerate(loops) if position not in (move.row, move.near, move.far)]
        cells = facts.axes[move.row].extent
        assert cells is not None
        lanes = common_lanes(facts, machine)
        while cells % lanes:
            lanes //= 2
        several = next(count for count in (VECTORS_AT_ONCE, 2, 1) if cells // lanes % count == 0)
        some_vectors, vectors, lane = sch.split(row, [None, several, lanes])
        sch.vectorize(lane)
        sch.unroll(vectors)
        decision.chose(f"vectors of {lanes}, {several} at once", f"{facts.axes[move.row].name} is contiguous")
        high, wide = (_side(facts, position, move, machine) for position in (move.far, move.near))
        some_others, other = sch.split(others, [None, high])
        some_rows, each = sch.split(rows, [None, wide])
        # Axes of one element may stand behind the row in the result: it goes inside them as well.
        sch.reorder(*outer, some_others, some_rows, other, each, some_vectors, vectors, lane)
        decision.chose(
            f"blocks of {high} × {wide} rows",
            f"rows are contiguous along {facts.axes[move.near].name} in the result, "
            f"along {facts.axes[move.far].name} in {move.load.buffer.name}",
            ChoiceKind.TILES,
        )
        if cost.bytes > 2 * machine.l2:
            ahead = -(-machine.cpu.microarchitecture.latency_bytes // move.row_bytes)
            result = streams.stores[0].buffer.name
            sch.prefetch(facts.name, each, result, distance=ahead, lines=-(-move.row_bytes // machine.line))
            decision.chose(f"rows of the result prefetched {ahead} ahead", "a store needs ownership of its cache line")
        parallelize_outer(sch, [*outer, some_others, some_rows], high * wide * cells, cost, machine, decision)


def _move(facts: BlockFacts, streams: Streams) -> _Move | None:
    """How the rows are moved; None where they are not, or are too short or too long to be worth it."""
    touched = streams.bytes_touched()
    if len(facts.stores) != 1 or touched is None or touched < _LEAST or own_uses(facts).compared:
        return None
    store = streams.stores[0]
    moving = [position for position, axis in enumerate(facts.axes) if axis.extent != 1]
    row = next((position for position in moving if store.step(position) == 1), None)
    if row is None or any(load.step(row) not in (0, 1) for load in streams.loads):
        return None
    extent = facts.axes[row].extent
    if extent is None or extent % 2 or extent * store.itemsize not in _ROW:
        return None
    near = next((position for position in moving if position != row and streams.follows(store, position, row)), None)
    if near is None:
        return None
    for load in streams.loads:
        far = next((position for position in moving if position != row and streams.follows(load, position, row)), None)
        if load.step(row) == 1 and far not in (None, near) and load.step(near):
            assert far is not None
            return _Move(row, near, far, load, extent * store.itemsize)
    return None


def _side(facts: BlockFacts, position: int, move: _Move, machine: Machine) -> int:
    """How many rows along an axis are a page."""
    extent = facts.axes[position].extent
    assert extent is not None
    return block_size(extent, machine.page // move.row_bytes)
