"""row_blocks: blocks that stand next to each other and work on the same rows: softmax, normalisations, sums of rows.

for i, k: m[i] = max(m[i], A[i, k])          rows i; the blocks reduce along k, or have one value a row,
for i, k: e[i, k] = exp(A[i, k] - m[i])      or one for each element of it
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.contiguous import vector_axis
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.lanes import may_regroup
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.row_nest import along_row
from loopwright.ir import Buffer, structural_equal


def row_run(pending: Sequence[Entry]) -> int:
    """How many of the first blocks share their rows, each joined to those before it by what it reads or writes."""
    rows = row_axes(pending)
    count = 0
    seen: set[Buffer] = set()  # what the group reads or writes
    result: set[Buffer] = set()
    for entry in pending if rows else ():
        facts = entry.facts
        if facts is None or not has_rows(facts, facts_in(pending[0]), rows, result) or not runs_along(entry, rows):
            break
        touched = {access.buffer for access in (*facts.reads, *facts.writes)}
        if count and not touched & seen:
            break
        seen |= touched
        result |= {access.buffer for access in facts.writes}
        count += 1
    return count


def facts_in(entry: Entry) -> BlockFacts:
    assert entry.facts is not None
    return entry.facts


def row_axes(entries: Sequence[Entry]) -> int:
    """How many first axes are rows: those of the first reduction; 0 when there is none that reduces along memory."""
    for entry in entries:
        facts = entry.facts
        if facts is None:
            return 0
        if facts.is_reduction:
            rows = len(facts.spatial)
            while rows > 1 and facts.axes[rows - 1].extent == 1:
                rows -= 1
            best = vector_axis(facts)
            is_along = best is not None and best.is_reduce
            return rows if is_along and not any(axis.is_reduce for axis in facts.axes[:rows]) else 0
    return 0


def has_rows(facts: BlockFacts, first: BlockFacts, rows: int, result: set[Buffer]) -> bool:
    """Whether the block works on the rows of the group, and on each row with nothing but that row of what was made."""
    axes = facts.axes[:rows]
    if min(len(facts.axes), len(first.axes)) < rows or any(axis.is_reduce for axis in axes):
        return False
    if not all(structural_equal(facts.loops[k].extent, first.loops[k].extent) for k in range(rows)):
        return False
    own = [access for access in facts.reads if access.buffer in result]
    return all(
        len(access.indices) >= rows and all(access.indices[k] is axes[k].var for k in range(rows))
        for access in (*own, *facts.writes)
    )


def runs_along(entry: Entry, rows: int) -> bool:
    """Whether the block works along its row, or does one thing a row."""
    facts = facts_in(entry)
    if facts.reads_itself or any(axis.extent == 0 for axis in facts.axes):
        return False
    rest = along_row(facts, rows)
    is_along = bool(rest) and vector_axis(facts) is rest[-1]
    if not facts.is_reduction:
        return facts.is_injective and (is_along or not rest)
    return is_along and all(axis.is_reduce for axis in rest) and may_regroup(entry.realize)


def inner_buffers(entries: Sequence[Entry], program: Program) -> list[Buffer]:
    """What only blocks of the group use."""
    names = {entry.name for entry in entries}
    result = [access.buffer for entry in entries for access in facts_in(entry).writes]
    return [
        buffer
        for buffer in dict.fromkeys(result)
        if not program.is_output(buffer)
        and all(entry.name in names for entry in (*program.readers(buffer), *program.writers(buffer)))
    ]
