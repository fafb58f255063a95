"""reduction: sums, maxima and their like over rows, columns, some axes or all of them.

Along memory (rows, everything) the lanes of vectors are partial results (`lanes.py`). Across memory (columns, a vector
times a matrix) the lanes are cells of the result, and the rows are streamed past them (`column_reduction.py`). Where
there are too few results to keep all cores busy, a fixed number of chunks is reduced in parallel first: how many does
not depend on how many threads run, so the result does not either.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.choices import option
from loopwright.autosched.column_reduction import CHUNKS, ColumnPlan, column_nest
from loopwright.autosched.contiguous import size_of, vector_axis
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.gather_cost import GatherCost
from loopwright.autosched.lanes import may_regroup, vectors_under_way
from loopwright.autosched.machine import Machine, rounded_up
from loopwright.autosched.narrow_columns import narrow_columns, narrow_nest
from loopwright.autosched.nest_cost import NestCost, nest_cost
from loopwright.autosched.parallelize import note_one_thread, parallelize_in_tasks
from loopwright.autosched.prefetch import prefetch_along
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.row_nest import join_row, lane_part, results_first, row_nest
from loopwright.autosched.short_rows import ShortRows, short_rows, short_rows_nest
from loopwright.autosched.small_steps import fused
from loopwright.schedule import Schedule

BYTES_OF_A_CHUNK = 256 << 10  # where there are more chunks than all cores need


class Reduction:
    """Takes one reduction."""

    name = "reduction"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        if facts is None or not facts.is_reduction or facts.block.init is None or facts.reads_itself:
            return 0
        return int(all(axis.extent != 0 for axis in facts.axes))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        best = vector_axis(facts)
        rows = short_rows(facts, machine) if best is not None and best.is_reduce else None
        if rows is not None:
            _several_at_a_time(sch, rows, machine, decision)
            return
        picking = GatherCost(facts, best, machine)
        work = picking.added_to(nest_cost([facts], machine))
        work.note(decision)
        picking.note(decision)
        if best is not None and not best.is_reduce:
            may_divide = may_regroup(entries[0].realize)
            plan = ColumnPlan.of(facts, best, work, machine, may_divide)
            narrow = narrow_columns(facts, best, machine) if may_divide and plan.chunk is None else None
            if narrow is not None:
                narrow_nest(sch, narrow, plan.threads, work, machine, decision)
            else:
                column_nest(sch, plan, work, machine, decision)
        elif best is None:
            _in_order(sch, facts, work, machine, decision, "no axis is contiguous in memory")
        elif not may_regroup(entries[0].realize):
            unknown = "its operation is not known to be associative and commutative"
            _in_order(sch, facts, work, machine, decision, unknown)
        else:
            _along_memory(sch, facts, work, machine, decision)


def _several_at_a_time(sch: Schedule, rows: ShortRows, machine: Machine, decision: Decision) -> None:
    """Results in lanes, each reduced by itself."""
    picking = GatherCost(rows.facts, rows.axis, machine)
    work = picking.added_to(nest_cost([rows.facts], machine))
    work.note(decision)
    groups = short_rows_nest(sch, rows)
    decision.chose(f"{rows.width} results at a time", "a row is too short to vectorize")
    threads = machine.threads_for(work.cycles)
    if threads > 1:
        parallelize_in_tasks(sch, fused(sch, groups))
        decision.chose("groups of results in parallel", f"the work keeps {threads} cores busy")
    elif machine.cores > 1:
        note_one_thread(work, decision)


def _along_memory(sch: Schedule, facts: BlockFacts, work: NestCost, machine: Machine, decision: Decision) -> None:
    threads = machine.threads_for(work.cycles)
    usual = max(1, vectors_under_way(machine) // len(facts.stores))
    vectors = option("accumulators", usual, 1, 2, usual // 2, 2 * usual, 4 * usual)
    lanes = machine.lanes(facts.dtype)
    block = sch.get_block(facts.name)
    facts = results_first(sch, facts, block)
    rows, count = len(facts.spatial), size_of(facts.spatial)
    extents = join_row(sch, facts, block, rows)
    last = extents[-1]
    chunk = rounded_up(-(-last // _chunks(work)), lanes * vectors) if last is not None else 0
    pieces = work.pieces(machine)
    is_worth = count < 2 * pieces and pieces > 1
    runs = prod([extent or 0 for extent in extents[:-1]])  # over memory that lies apart; 0 where not known how many
    has_runs = is_worth and last is not None and len(extents) > 1 and runs >= pieces
    is_divided = has_runs or (is_worth and last is not None and chunk < last)
    if has_runs:
        each = -(-runs // _chunks(work))
        outer = sch.split(fused(sch, sch.get_loops(block)[rows:-1]), [None, each])[0]
        block = sch.rfactor(outer, -1)
        rows, extents = rows + 1, (each, last)
        decision.chose(
            f"chunks of {each} × {last}",
            f"{_too_few(count, threads)}; their size is fixed, so the result does not depend on the number of threads",
        )
    elif is_divided:
        outer = sch.split(sch.get_loops(block)[-1], [None, chunk])[0]
        sch.reorder(outer, *sch.get_loops(block)[rows:-2])
        block = sch.rfactor(outer, -1)
        rows, extents = rows + 1, (*extents[:-1], chunk)
        decision.chose(
            f"chunks of {chunk}",
            f"{_too_few(count, threads)}; their size is fixed, so the result does not depend on the number of threads",
        )
    part = lane_part(sch, facts, block, extents, lanes, vectors)
    row = row_nest(sch, [part], rows, [])
    if part.width:
        decision.chose(
            f"{part.width} partial results, {-(-part.width // lanes)} vectors of up to {lanes}",
            "independent operations hide the latency of one" if part.width > lanes else "the row is short",
        )
    else:
        decision.chose("scalar", "a row is too short to vectorize")
    if part.width:
        loop = sch.get_loops(part.walker)[-2]
        walked = [access.buffer for access in facts.reads if access.stride(facts.axes[-1].var) == 1]
        prefetch_along(sch, part.walker, loop, walked, part.width, work, machine, decision, is_sum=True)
    if row is not None and threads > 1 and (is_divided or count > 1):
        parallelize_in_tasks(sch, row)
        what = "chunks in parallel" if is_divided else "rows in parallel"
        decision.chose(what, f"the work keeps {threads} cores busy")
    elif threads == 1 and machine.cores > 1:
        note_one_thread(work, decision)


def _too_few(count: int, threads: int) -> str:
    results = f"{count} result{'s' * (count != 1)}"
    return f"{results} cannot keep {threads} cores busy" if threads > 1 else f"{results} could not be parallelised"


def _chunks(work: NestCost) -> int:
    """How many chunks are reduced in parallel: more of a large array, so that a core that is late holds up less."""
    return min(4 * CHUNKS, max(CHUNKS, work.bytes // BYTES_OF_A_CHUNK))


def _in_order(
    sch: Schedule, facts: BlockFacts, work: NestCost, machine: Machine, decision: Decision, reason: str
) -> None:
    """Each result by one core, its members one after the other."""
    block = sch.get_block(facts.name)
    facts = results_first(sch, facts, block)
    threads = machine.threads_for(work.cycles)
    decision.chose("in order", reason)
    loops = sch.get_loops(block)[: len(facts.spatial)]
    if threads > 1 and size_of(facts.spatial) >= threads:
        parallelize_in_tasks(sch, fused(sch, loops))
        decision.chose("results in parallel", f"the work keeps {threads} cores busy")
    elif threads == 1 and machine.cores > 1:
        note_one_thread(work, decision)
