"""reduction: sums, maxima and their like, of everything, of long rows, of columns, of any axes.

    for i: s += A[i]             →     for b in blockIdx.x:                       a chunk of A for each block
                                           for t in threadIdx.x:
                                               for i, 4 loads, 4 lanes: p[4 lanes] += A[…]     registers
                                           for t in threadIdx.x: s_rf[b] += p                  shuffles
                                       for t in threadIdx.x: s += s_rf[t]         a second kernel, of one block

Chunks are for results that are too few for all multiprocessors; how many there are depends on sizes and on the GPU
alone. A number that is computed of each result (a mean is a sum, divided) is computed where the result ends. Columns
are in `gpu/column_reduction.py`, rows of some ten members in `gpu/short_rows.py`; rows that fit into the registers of a
block are for the rule of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.contiguous import vector_axis
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.gpu.column_reduction import reduce_columns
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.reduction_plan import RowPlan, row_plan
from loopwright.autosched.gpu.result_numbers import lanes_along, result_loop
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.gpu.row_threads import row_threads
from loopwright.autosched.gpu.rules.rows import Rows, are_few_and_long
from loopwright.autosched.gpu.short_rows import reduce_short_rows, short_rows
from loopwright.autosched.lanes import may_regroup
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.row_blocks import facts_in, inner_buffers, row_run
from loopwright.autosched.row_nest import results_first
from loopwright.autosched.small_steps import extent_of, fused, loops_below
from loopwright.ir import BufferStore
from loopwright.schedule import BlockRV, Schedule


class Reduction:
    """Takes one reduction, and what is computed of each of its results."""

    name = "reduction"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        if facts is None or not facts.is_reduction or facts.block.init is None or facts.reads_itself:
            return 0
        if any(axis.extent == 0 for axis in facts.axes) or not may_regroup(pending[0].realize):
            return 0
        best = vector_axis(facts)
        if len(facts.stores) > 1 and best is not None and not best.is_reduce:
            return 0  # not yet supported: tuples across memory
        count = 1 + _has_number(pending, program)
        return 0 if _is_for_rows(pending[: row_run(pending)], count, program) else count

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        facts = facts_in(entries[0])
        best = vector_axis(facts)
        if best is not None and not best.is_reduce:
            reduce_columns(sch, facts, entries[1:], best, machine, decision)
        elif (rows := short_rows(facts, machine)) is not None:
            reduce_short_rows(sch, facts, [entry.name for entry in entries[1:]], rows, machine, decision)
        elif _fits(facts, entries, machine):
            decision.rule = Rows.name
            Rows().schedule(sch, entries, program, machine, decision)
            return
        else:
            _reduce_rows(sch, facts, entries[1:], machine, decision)
        note_roofline(decision, [entry.facts for entry in entries if entry.facts is not None], machine)


def _is_for_rows(group: Sequence[Entry], alone: int, program: Program) -> bool:
    """Whether the rule of rows does more than a reduction and its number together: each row by one block of threads."""
    if len(group) <= alone:
        return False
    kept = inner_buffers(group, program)
    if any(facts_in(entry).write.buffer not in kept for entry in group[:-1]):
        return False
    return not are_few_and_long(group)


def _has_number(pending: Sequence[Entry], program: Program) -> bool:
    """Whether the second block computes one number of each result of the first, which nobody else reads."""
    facts, after = facts_in(pending[0]), pending[1].facts if len(pending) > 1 else None
    if program.is_output(facts.write.buffer):
        return False
    if not facts.write.buffer.shape and len(pending) > 1:
        return after is None and _is_number(pending[1]) and program.is_read_by(facts.write.buffer, pending[1])
    if after is None or not after.is_injective:
        return False
    own = [access for access in after.reads if access.buffer is facts.write.buffer]
    if not own or not program.is_read_by(facts.write.buffer, pending[1]) or not facts.writes_in_order:
        return False
    axes = [axis for axis in after.axes if axis.extent != 1]
    spatial = [axis for axis in facts.spatial if axis.extent != 1]
    if not after.writes_in_order or len(after.axes) != len(facts.spatial) or len(axes) != len(spatial):
        return False
    units = {axis.var for axis in after.axes if axis.extent == 1}
    for access in own:
        # Indices that are axes of one element say nothing.
        moving = [form for form in access.forms if form is not None and form.terms.keys() - units]
        if not access.is_affine or [list(form.terms.items()) for form in moving] != [[(axis.var, 1)] for axis in axes]:
            return False
    return [axis.extent for axis in axes] == [axis.extent for axis in spatial]


def _is_number(entry: Entry) -> bool:
    """Whether it stores one number."""
    block = entry.realize.block
    return isinstance(block.body, BufferStore) and block.init is None and not block.body.buffer.shape


def _fits(facts: BlockFacts, entries: Sequence[Entry], machine: GpuMachine) -> bool:
    """Whether there are enough rows, each for the registers of a block."""
    if not row_run(entries):
        return False
    length, count = facts.extent(facts.reduce), facts.extent(facts.spatial)
    if length is None:
        return False
    itemsize = max([bytes_of(str(access.buffer.dtype)) for access in facts.reads], default=4)
    is_kept = row_threads(length, itemsize, 1, count, machine).scope == "local"
    return is_kept and (count is None or row_plan(length, 1, itemsize, count, machine).chunk is None)


def _reduce_rows(
    sch: Schedule, facts: BlockFacts, after: Sequence[Entry], machine: GpuMachine, decision: Decision
) -> None:
    """Members that are neighbours in memory, or nowhere near each other: a warp's threads take neighbours."""
    block = sch.get_block(facts.name)
    facts = results_first(sch, facts, block)
    length, count = facts.extent(facts.reduce), facts.extent(facts.spatial)
    lanes = lanes_along(facts, facts.reduce, facts.spatial, machine)
    itemsize = max([bytes_of(str(access.buffer.dtype)) for access in facts.reads], default=4)
    plan = row_plan(length, lanes, itemsize, count, machine)
    row = fused(sch, sch.get_loops(block)[len(facts.spatial) :])
    decision.chose(f"{plan.threads} threads a block, {plan.lanes} a load", f"{plan.several} loads are under way")
    if plan.chunk is None:
        _in_one_block(sch, _members(sch, block, plan), block, plan, [entry.name for entry in after])
        return
    chunks, _ = sch.split(row, [None, plan.chunk])
    number = extent_of(sch, chunks)
    chunk = sch.rfactor(chunks, -1)
    whole = row_plan(number, 1, 4, count, machine, may_chunk=False)
    # All partial results first: each is a proof by algebra, before which the steps so far are proved.
    parts, wholes = _members(sch, chunk, plan), _members(sch, block, whole)
    _in_one_block(sch, parts, chunk, plan, [])
    _in_one_block(sch, wholes, block, whole, [entry.name for entry in after])
    decision.chose(f"chunks of {plan.chunk}", "there are too few results to keep all multiprocessors busy")


def _members(sch: Schedule, block: BlockRV, plan: RowPlan) -> BlockRV:
    """Partial results, one for each lane of each thread."""
    *_, member = sch.split(sch.get_loops(block)[-1], [None, plan.several, plan.width])
    return sch.rfactor(member, -1)


def _in_one_block(sch: Schedule, partial: BlockRV, block: BlockRV, plan: RowPlan, after: Sequence[str]) -> None:
    """Each result by one block of threads: partial results in registers, which shuffles combine."""
    blocks = result_loop(sch, [(partial, 3), (block, 1), *[(sch.get_block(name), 0) for name in after]])
    thread, lane = sch.split(loops_below(sch, block, blocks)[-1], [plan.threads, plan.lanes])
    steps, some, member = loops_below(sch, partial, blocks)
    own_thread, own_lane = sch.split(member, [plan.threads, plan.lanes])
    sch.reorder(own_thread, steps, some, own_lane)
    sch.bind(own_thread, "threadIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.unroll(some)
    if plan.lanes > 1:
        sch.vectorize(own_lane)
        sch.unroll(lane)
    for k in range(len(sch.get(partial).writes)):
        sch.set_scope(partial, k, "local")  # last: from then on, steps are asked whose memory it is
    for k in range(len(sch.get(block).writes)) if after else ():
        sch.set_scope(block, k, "shared")
