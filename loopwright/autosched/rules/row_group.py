"""row_group: softmax, layer normalisation and their like run row by row, each row staying near the core.

Taken are blocks that stand next to each other, whose first axes are the same rows, which are joined by what they read,
and of which at least one reduces along the row: all that is passed between them is a row long. Rows are independent
and run in parallel; a group of few long rows is left to other rules, which divide the rows. Short rows are done several
at a time, in lanes (`row_lanes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.choices import option
from loopwright.autosched.contiguous import size_of
from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.lanes import vectors_under_way
from loopwright.autosched.machine import Machine
from loopwright.autosched.nest_cost import nest_cost
from loopwright.autosched.parallelize import note_one_thread, parallelize_in_tasks
from loopwright.autosched.prefetch import add_prefetches
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.row_blocks import facts_in, inner_buffers, row_axes, row_run
from loopwright.autosched.row_lanes import lane_nest, lanes_of_rows
from loopwright.autosched.row_nest import row_nest, row_part
from loopwright.ir import Buffer
from loopwright.schedule import LoopRV, Schedule


class RowGroup:
    """Takes runs of blocks that share their rows."""

    name = "row group"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        count = row_run(pending)
        return count if count > 1 and any(facts_in(entry).is_reduction for entry in pending[:count]) else 0

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        blocks = [facts_in(entry) for entry in entries]
        rows = row_axes(entries)
        axes = blocks[0].axes[:rows]
        kept = inner_buffers(entries, program)
        work = nest_cost(blocks, machine, kept)
        threads = machine.threads_for(work.cycles)
        count = size_of(axes)
        pieces = work.pieces(machine)
        if count * 2 < pieces:
            message = "1 row is" if count == 1 else f"{count} rows are"
            raise NotWorthIt(f"{message} too few: the work is worth {pieces} pieces")
        names = ", ".join([axis.name for axis in axes])
        together = lanes_of_rows(blocks, rows, machine)
        if together:
            row = lane_nest(sch, blocks, rows, together, kept)
            decision.chose(f"fused into one nest over {names}", f"{together} rows at a time, each in a lane of its own")
        else:
            row = _row_by_row(sch, blocks, rows, names, kept, machine, decision)
        if threads > 1 and count > 1:
            parallelize_in_tasks(sch, row)
            planned = "rows" if all([axis.extent is not None for axis in axes]) else "rows (planned)"
            decision.chose(f"{names} in parallel", f"{count} {planned} keep {threads} cores busy")
        elif threads == 1 and machine.cores > 1:
            note_one_thread(work, decision)
        work.note(decision, 0.8)


def _row_by_row(
    sch: Schedule,
    blocks: Sequence[BlockFacts],
    rows: int,
    names: str,
    kept: Sequence[Buffer],
    machine: Machine,
    decision: Decision,
) -> LoopRV:
    vectors = _vectors(blocks, machine)
    parts = [row_part(sch, facts, rows, machine, vectors) for facts in blocks]
    row = row_nest(sch, parts, rows, kept)
    assert row is not None
    decision.chose(f"fused into one nest over {names}", f"the {len(blocks)} blocks work on one row at a time")
    if kept:
        decision.chose(f"{', '.join([buffer.name for buffer in kept])} shrunk to a row", "it stays in L1")
    add_prefetches(sch, parts, rows, kept, machine, decision)
    lanes = machine.lanes(blocks[0].dtype)
    decision.chose(f"up to {vectors} vectors of {lanes} at a time", "independent operations hide latency")
    return row


def _vectors(blocks: Sequence[BlockFacts], machine: Machine) -> int:
    """Vectors done together: enough to hide the latency of an addition, fewer where each takes many registers."""
    costly = any(facts.costly_calls for facts in blocks)
    usual = max(1, vectors_under_way(machine) // 2 if costly else vectors_under_way(machine))
    return option("accumulators", usual, 1, 2, usual // 2, 2 * usual, 4 * usual)
