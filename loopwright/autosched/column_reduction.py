"""Columns: a reduction across memory. The lanes are neighbouring results; rows are streamed past them.

    for j: for i: C[j] += A[i, j]     →     for j_0 in parallel:                       a strip of columns, sums in cache
                                                for i_0:                               four rows at a time
                                                    for j_1:
                                                        for i_1 in unrolled(4):
                                                            for j_2 in vectorized(64): C[…] += A[…]

Each row is read along memory, for the length of the strip: as long as its sums fit into the nearest cache. Four rows at
a time load and store a sum once for four additions; rows that stream from memory are read one by one. Where there are
too few columns for all cores, chunks of rows are summed in parallel first, and then combined; how many there are does
not depend on how many cores there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopwright.autosched.choices import option
from loopwright.autosched.contiguous import seamless_tail, size_of
from loopwright.autosched.decision import Decision
from loopwright.autosched.facts import Axis, BlockFacts
from loopwright.autosched.lanes import VECTORS_AT_ONCE, vector_width
from loopwright.autosched.machine import Machine, bytes_of, rounded_up
from loopwright.autosched.nest_cost import NestCost
from loopwright.autosched.parallelize import note_one_thread, parallelize_in_tasks
from loopwright.autosched.small_steps import extent_of, fused, loops_by_axis
from loopwright.ir import Var
from loopwright.schedule import BlockRV, LoopRV, Schedule

ROWS_TOGETHER = 4  # are added to a vector of sums before it is stored again
STREAMED = 3  # times L2: of less, a good part is still there since it was written
LINES_OF_A_STRIP = 32  # a strip narrower than that would leave the stream of rows too soon
LINES_AT_LEAST = 8  # of a strip where rows cannot be divided, and cores would have nothing to do
CHUNKS = 32  # of a reduction that is divided among cores: enough for many cores, few to combine in the end
ROWS_OF_A_CHUNK = 32  # at least: combining the chunks reads one more row for each
MANY_ROWS = 128  # chunks that are longer than that may be more than the pieces asked for: they balance better


@dataclass(frozen=True)
class ColumnPlan:
    """How the columns of a reduction are divided."""

    facts: BlockFacts
    outer: tuple[Axis, ...]  # results that are no columns
    columns: tuple[Axis, ...]  # one loop along memory
    threads: int
    why_threads: str
    width: int  # columns of one vector statement
    strip: int | None  # columns whose sums stay in the nearest cache; None for all
    chunk: int | None  # rows that one core sums, where rows are divided; None where they are not

    @classmethod
    def of(cls, facts: BlockFacts, along: Axis, work: NestCost, machine: Machine, may_divide: bool) -> ColumnPlan:
        """Choose; rows are divided only if their sums `may_divide`."""
        order = [axis for axis in facts.spatial if axis is not along and axis.extent != 1] + [along]
        joined = seamless_tail(order, facts)
        columns, outer = tuple(order[-joined:]), tuple(order[:-joined])
        threads = machine.threads_for(work.cycles)
        vectors = option("vectors at once", VECTORS_AT_ONCE, 1, 2, 2 * VECTORS_AT_ONCE)
        width = vector_width(facts.extent(columns), machine.lanes(facts.dtype), vectors)
        size = bytes_of(facts.dtype)
        segment = machine.line * LINES_OF_A_STRIP // size
        segments = size_of(outer) * -(-size_of(columns) // segment)
        rows = facts.extent(facts.reduce[-seamless_tail(facts.reduce, facts) :])
        pieces = work.pieces(machine)
        chunk, chunks = None, 1
        if may_divide and segments < pieces and rows is not None:
            chunk = chunk_of(rows, -(-pieces // size_of(outer)))
            chunks = -(-rows // chunk) if chunk is not None else 1
        if chunk is None and segments < threads:
            segment = machine.line * LINES_AT_LEAST // size
        widest = max(width, machine.l1 // 2 // size // width * width)
        strip = strip_of(facts.extent(columns), size_of(outer) * chunks, threads, segment, widest)
        strip = rounded_up(strip, width) if strip is not None else None
        why = f"the work keeps {threads} cores busy"
        if strip is not None and facts.extent(columns) is None and threads == 1:
            # However many columns there are, a strip is the same work.
            if work.cycles * strip / size_of(columns) >= machine.fork_cycles:
                threads, why = machine.cores, "a strip keeps a core busy, and there may be several"
        return cls(facts, outer, columns, threads, why, width, strip, chunk)


def chunk_of(rows: int, pieces: int) -> int | None:
    """How many of `rows` are a chunk, so that there are about `pieces`; None where chunks would be too short.

    >>> chunk_of(1000, 16), chunk_of(4096, 16), chunk_of(200, 16), chunk_of(60, 16), chunk_of(1000, 3)
    (64, 128, 52, None, 252)
    """
    count = CHUNKS
    while count > 1:
        least = ROWS_OF_A_CHUNK if count < 2 * pieces else MANY_ROWS
        if count <= 4 * pieces and rows >= count * least:
            break
        count //= 2
    return rounded_up(-(-rows // count), ROWS_TOGETHER) if count > 1 else None


def strip_of(columns: int | None, others: int, threads: int, least: int, most: int) -> int | None:
    """How wide strips are, so that all threads get equally many; None where all `columns` are one strip.

    There are `others` times as many pieces as strips: other results, and chunks of rows.

    >>> strip_of(1000, 16, 16, 512, 6144), strip_of(100000, 1, 16, 512, 6144), strip_of(None, 1, 16, 512, 6144)
    (None, 3125, 6144)
    """
    if columns is None:
        return most
    strip = min(most, max(least, -(-columns * others // threads)))
    if strip >= columns:
        return None
    number = rounded_up(-(-columns // strip) * others, threads) // others
    return max(least, -(-columns // number))


def column_nest(sch: Schedule, plan: ColumnPlan, work: NestCost, machine: Machine, decision: Decision) -> None:
    """Schedule a reduction by columns."""
    facts = plan.facts
    block = sch.get_block(facts.name)
    loops = loops_by_axis(sch, block, facts)
    names = {var: loop.name for var, loop in loops.items()}  # before loops are split and fused
    units = [axis for axis in facts.spatial if axis.extent == 1 and axis not in plan.columns]
    order = [*units, *plan.outer, *plan.columns, *facts.reduce]
    if [axis.var for axis in order] != [axis.var for axis in facts.axes]:
        sch.reorder(*[loops[axis.var] for axis in order])
    outer = [loops[axis.var] for axis in (*units, *plan.outer)]
    along = fused(sch, [loops[axis.var] for axis in plan.columns])
    joined = seamless_tail(facts.reduce, facts)
    reduce = [loops[axis.var] for axis in facts.reduce[:-joined]]
    row = fused(sch, [loops[axis.var] for axis in facts.reduce[-joined:]])
    if plan.chunk is not None:
        chunks, row = sch.split(row, [None, plan.chunk])
        partial = sch.rfactor(chunks, 0)
        _combine(sch, block, plan, machine, decision)
        sch.reorder(chunks, along, *reduce, row)
        outer.append(chunks)
        decision.chose(
            f"chunks of {plan.chunk} rows",
            "columns alone cannot keep all cores busy; the result does not depend on the number of threads",
        )
        block = partial
    if plan.strip is not None:
        strips, along = sch.split(along, [None, plan.strip])
        outer.append(strips)
        decision.chose(f"strips of {plan.strip} columns", "their accumulators stay in L1 while rows stream past")
    vectors, lanes = sch.split(along, [None, plan.width])
    # Rows that stream from memory come one after the other: each is one walk that the prefetcher follows, and loading
    # the accumulators again takes less time than waiting for the row.
    together = 1 if work.bytes > STREAMED * machine.l2 else min(ROWS_TOGETHER, size_of(facts.reduce[-joined:]))
    rows, few = sch.split(row, [None, together])
    sch.reorder(*reduce, rows, vectors, few, lanes)
    sch.vectorize(lanes)
    sch.unroll(few)
    steps, cells = _names(facts.reduce[-joined:], names), _names(plan.columns, names)
    once = f"an accumulator is loaded and stored once for {together} additions"
    if together == 1:
        once = "rows stream from memory, and the prefetcher follows one of them at a time"
    decision.chose(
        f"{together} step{'s' * (together > 1)} of {steps} × {plan.width} of {cells} at a time",
        once + _tail(plan.chunk or facts.extent(facts.reduce[-joined:]), together),
    )
    if plan.threads > 1 and outer and (plan.chunk or plan.strip or size_of(plan.outer) > 1):
        parallelize_in_tasks(sch, fused(sch, outer))
        decision.chose("in parallel", plan.why_threads)
    elif plan.threads == 1 and machine.cores > 1:
        note_one_thread(work, decision)


def _names(axes: Sequence[Axis], names: Mapping[Var, str]) -> str:
    """Axes as the program calls their loops; those of one step are not walked."""
    walked = [axis for axis in axes if axis.extent != 1] or axes
    return " and ".join([names[axis.var] for axis in walked])


def _tail(steps: int | None, together: int) -> str:
    """What becomes of steps that are fewer than those done together."""
    rest = 0 if steps is None else steps % together
    return f"; of {steps} steps, the last {f'{rest} are' if rest > 1 else 'is'} done apart" if rest else ""


def _combine(sch: Schedule, block: BlockRV, plan: ColumnPlan, machine: Machine, decision: Decision) -> None:
    """The sums of chunks are added chunk by chunk, in vectors; by several cores where there is much to add."""
    *_, along, chunks = sch.get_loops(block)
    count, columns = extent_of(sch, chunks), plan.facts.extent(plan.columns)
    strips: list[LoopRV] = []
    threads = 1
    if columns is not None and count is not None and size_of(plan.outer) == 1:
        read = columns * count * bytes_of(plan.facts.dtype)
        threads = machine.threads_for(read / machine.l3_bytes_per_cycle)  # other cores wrote them
        strip = rounded_up(-(-columns // threads), plan.width)
        if threads > 1 and strip < columns:
            outer, along = sch.split(along, [None, strip])
            strips = [outer]
    vectors, lanes = sch.split(along, [None, plan.width])
    sch.reorder(*strips, chunks, vectors, lanes)
    sch.vectorize(lanes)
    if strips:
        parallelize_in_tasks(sch, strips[0])
        decision.chose("chunks combined in parallel", f"combining them keeps {threads} cores busy")
