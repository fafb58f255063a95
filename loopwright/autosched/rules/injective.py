"""injective: every iteration writes a cell of its own: element-wise work, broadcasts, copies, pads, gathers, stencils.

    for i, j in T.grid(1000, 3):        →    for f_0 in T.parallel(…):         one run of 3000 elements
        C[i, j] = A[i, j] + B[i, j]              for f_1 in range(…):
                                                     for f_2 in T.unroll(4):
                                                         for f_3 in T.vectorized(16): C[f // 3, f % 3] = …

Axes along which all loads and stores simply go on are one loop. The innermost loop over neighbouring cells becomes
vectors, some of them in each round; the loops outside, or pieces of the same one, are shared out among threads where
there is more to do than waking them costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Final

from loopwright.arith.affine_reader import Affine
from loopwright.autosched.axis_uses import OwnUses, own_uses
from loopwright.autosched.choices import option
from loopwright.autosched.contiguous import UNKNOWN_EXTENT
from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.facts import Axis, BlockFacts, const, loads_of
from loopwright.autosched.gather_cost import GatherCost, is_small_arithmetic
from loopwright.autosched.lanes import VECTORS_AT_ONCE
from loopwright.autosched.machine import Machine
from loopwright.autosched.nest_cost import NestCost, common_lanes, nest_cost
from loopwright.autosched.parallelize import parallelize_outer
from loopwright.autosched.prefetch import prefetch_along
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.small_steps import fused
from loopwright.autosched.streams import Streams
from loopwright.ir import Buffer, Call, FloorDiv, collect
from loopwright.ir.annotations import VECTOR_LANES
from loopwright.schedule import LoopRV, Schedule
from loopwright.transform.passes.partition_loops import is_small_enough

_FEW: Final = 8  # instructions: what takes no more waits for memory
_MANY: Final = 45  # instructions: the values between them take so many registers that two vectors at once are enough
_LONG_ROW: Final = 4  # vectors: a row of so many needs no other to fill them
_REGISTERS_OF_ONE: Final = 8  # that one value takes, where others of a narrower type fill one
_PERIODS: Final = 8  # vectors after which a short row that is read again and again stands in the same lanes again


class Injective:
    """Takes one block that computes each of its cells from other buffers."""

    name = "element-wise"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        facts = pending[0].facts
        return int(facts is not None and facts.is_injective and bool(facts.axes))

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        facts = entries[0].facts
        assert facts is not None
        if any(axis.extent == 0 for axis in facts.axes):
            decision.chose("no steps", "it has no iterations")
            return
        streams = Streams(facts)
        lanes = common_lanes(facts, machine)
        picking = GatherCost(facts, _along(facts, streams), machine)
        uses = own_uses(facts)
        work = picking.added_to(nest_cost([facts], machine, is_cut=bool(uses.compared)))
        work.note(decision)
        loops = list(sch.get_loops(sch.get_block(facts.name)))
        order = memory_order(facts, streams)
        if order != sorted(order):
            sch.reorder(*[loops[position] for position in order])
            decision.chose("loops reordered", f"{facts.axes[order[-1]].name} is contiguous in the result")
        longest = None if machine.threads_for(work.cycles) == 1 else _LONG_ROW * lanes
        runs = _runs(facts, streams, uses, order, lanes, longest, decision)
        outer = [fused(sch, [loops[position] for position in run.axes]) for run in runs]
        row = outer.pop()
        if work.instructions <= _FEW and not _is_aligned(runs, streams, machine):
            half = max(1, machine.line // 2 // streams.stores[0].itemsize)
            if half < lanes:
                lanes = half
                decision.chose("half a cache line at a time", "rows are not aligned: whole lines would straddle two")
        rounds, each = _vectorized(sch, row, runs[-1], facts, streams, work, picking, machine, lanes, decision)
        if rounds and each > 1:
            prefetch_along(sch, facts.name, rounds[-1], _walked_once(facts, streams), each, work, machine, decision)
        parallelize_outer(sch, [*outer, *rounds], each, work, machine, decision)


def _walked_once(facts: BlockFacts, streams: Streams) -> list[Buffer]:
    """What is walked over cell by cell, each cell once; not what only one of several parts of the result reads."""
    moving = [position for position, axis in enumerate(facts.axes) if axis.extent != 1]
    chosen = {load.buffer for call in _choices(facts) for value in call.args[1:] for load in loads_of(value)}
    apart = chosen if len(chosen) > 1 else set()
    return [
        stream.buffer
        for stream in streams.all
        if stream.buffer not in apart
        and any(stream.step(position) == 1 for position in moving)
        and all(stream.step(position) not in (None, 0) for position in moving)
    ]


def _choices(facts: BlockFacts) -> list[Call]:
    calls = collect(facts.store.value, Call)
    return [call for call in calls if call.op.name.removeprefix("tir.") == "if_then_else"]


@dataclass
class _Run:
    """Axes, by position and outermost first, that are one loop; `extent` is None when it is not known."""

    axes: list[int]
    extent: int | None
    period: int = 0  # cells after which the short rows that are read again start anew; 0 when there are none
    is_cut: bool = False  # conditions change along it


def memory_order(facts: BlockFacts, streams: Streams) -> list[int]:
    """The axes with the longest steps of the store first; as they are where the steps are not known."""
    steps = [streams.stores[0].step(position) for position in range(len(facts.axes))]
    positions = list(range(len(facts.axes)))
    unknown = [position for position in positions if steps[position] is None]
    if unknown and unknown != positions[: len(unknown)]:
        return positions
    # Steps that depend on sizes of the function are longer than literal ones, and in order where people write loops.
    known = positions[len(unknown) :]
    moving = [position for position in known if facts.axes[position].extent != 1]
    if any(not steps[position] for position in moving):
        return positions
    return unknown + sorted(known, key=lambda position: -abs(steps[position] or 0))


def _runs(
    facts: BlockFacts,
    streams: Streams,
    uses: OwnUses,
    order: Sequence[int],
    lanes: int,
    longest: int | None,
    decision: Decision,
) -> list[_Run]:
    """The axes as runs, outermost first: the last one is that of the vectors.

    Rows of `longest` cells and more stay apart under a loop that is cut, so that it can be parallelised.
    """
    runs: list[_Run] = []
    for position in reversed(order):
        axis = facts.axes[position]
        if runs and _joins(runs[-1], position, facts, streams, uses, longest):
            run = runs[-1]
            run.axes.insert(0, position)
        else:
            run = _Run([position], 1)
            runs.append(run)
        run.extent = None if run.extent is None or axis.extent is None else run.extent * axis.extent
        run.is_cut = run.is_cut or axis.var in uses.compared
    runs.reverse()
    _note_period(runs[-1], facts, lanes, decision)
    if len(runs) > 1 and not runs[-1].period:
        _join_short_row(runs, facts, streams, uses, lanes, decision)
    for run in runs:
        if len(run.axes) > 1 and not run.period:
            names = ", ".join(facts.axes[position].name for position in run.axes)
            decision.chose(f"{names} fused into one loop", "every load and store is contiguous across them")
    return runs


def _joins(run: _Run, position: int, facts: BlockFacts, streams: Streams, uses: OwnUses, longest: int | None) -> bool:
    """Whether an axis and the run inside it are one walk, whose conditions can still be decided by cutting it."""
    first = run.axes[0]
    own = {facts.axes[inner].var for inner in run.axes}
    is_unit = facts.axes[position].extent == 1 or run.extent == 1
    if not is_unit and (own & (uses.compared | uses.computed) or facts.axes[position].var in uses.computed):
        return False
    if not is_unit and (run.extent is None or not streams.are_affine):
        return False  # quotients by a size of the function: lowering could not put them together
    is_long = run.extent is None or (longest is not None and run.extent >= longest)
    if facts.axes[position].var in uses.compared and is_long:
        return False  # the loop outside is cut, and rows are long enough for themselves
    moving = next((inner for inner in run.axes if facts.axes[inner].extent != 1), first)
    return streams.follow(position, moving)


def _join_short_row(
    runs: list[_Run], facts: BlockFacts, streams: Streams, uses: OwnUses, lanes: int, decision: Decision
) -> None:
    """Rows too short for vectors that follow each other in the result are one run, though some loads start anew.

    A load that starts anew each row finds the same cells in the same lanes after a few vectors: done together, those
    loads stay in registers.
    """
    rows, row = runs[-2:]
    own = {facts.axes[position].var for run in (rows, row) for position in run.axes}
    if row.extent is None or own & (uses.compared | uses.computed) or row.extent % lanes == 0:
        return
    period = lcm(row.extent, lanes)
    moving = [position for position in row.axes if facts.axes[position].extent != 1]
    outer = [position for position in rows.axes if facts.axes[position].extent != 1]
    if not moving or not outer or not streams.stores_follow(outer[-1], moving[0]):
        return
    anew = [load for load in streams.loads if not streams.follows(load, outer[-1], moving[0])]
    starts_anew = all(load.step(position) == 0 for load in anew for position in outer)
    if period // lanes > _PERIODS or not starts_anew or len(moving) > 1:
        return
    rows.axes += row.axes
    rows.extent = None if rows.extent is None else rows.extent * row.extent
    rows.period = period
    runs.pop()
    decision.chose(
        f"rows of {row.extent} elements fused into one loop",
        f"they are contiguous in the result; after {period // lanes} vectors the lanes of each operand repeat",
    )


def _note_period(run: _Run, facts: BlockFacts, lanes: int, decision: Decision) -> None:
    """A row that holds each cell some times, one next to the other: after some vectors it begins with a new cell."""
    if run.is_cut or run.extent is None:
        return
    moving = [facts.axes[position].var for position in run.axes if facts.axes[position].extent != 1]
    if len(moving) != 1:
        return
    affine = Affine()
    for axis in facts.axes:
        affine.own(axis.var)
    times = 1
    for load in loads_of(facts.store.value):
        for quotient in [node for index in load.indices for node in collect(index, FloorDiv)]:
            form, by = affine.form(quotient.a), const(quotient.b)
            if form is None or by is None or by < 1 or (moving[0] in form.variables() and form.terms != {moving[0]: 1}):
                return
            times = lcm(times, by) if moving[0] in form.variables() else times
    period = lcm(times, lanes)
    if times & (times - 1) and period // lanes <= _PERIODS and 2 * period <= run.extent:
        run.period = period
        why = f"after {period // lanes} vectors the cells stand in the same lanes"
        decision.chose(f"{times} lanes of each cell", why)


def _is_aligned(runs: Sequence[_Run], streams: Streams, machine: Machine) -> bool:
    """Whether rows all start at one place of a cache line: others meet two lines with each store of a whole one."""
    steps = [
        (store.step(position), store.itemsize) for store in streams.stores for run in runs[:-1] for position in run.axes
    ]
    return all(step is not None and step * itemsize % machine.line == 0 for step, itemsize in steps)


def _vectorized(
    sch: Schedule,
    row: LoopRV,
    run: _Run,
    facts: BlockFacts,
    streams: Streams,
    work: NestCost,
    picking: GatherCost,
    machine: Machine,
    lanes: int,
    decision: Decision,
) -> tuple[list[LoopRV], int]:
    """Make vectors of the innermost loop; the loop around them that can be shared out, and what one round computes."""
    moving = next((position for position in reversed(run.axes) if facts.axes[position].extent != 1), run.axes[-1])
    name = facts.axes[moving].name
    whole = run.extent or UNKNOWN_EXTENT
    if run.extent == 1:
        why = "there is one element to compute" if work.elements == 1 else "the rows have one element"
        decision.chose("no vectors", why, ChoiceKind.NO_VECTORS)
        return [], whole
    if any(store.step(moving) != 1 for store in streams.stores):
        why = f"no axis is contiguous in the result ({name} is the innermost)"
        decision.chose("no vectors", why, ChoiceKind.NO_VECTORS)
        return [row], 1
    if run.is_cut:
        can_cut = is_small_enough(facts.block.body)
        why = "a condition holds for part of the row: the loop is partitioned there, and no iteration evaluates it"
        if not can_cut:
            why = "conditions hold for parts of the row, too many to partition the loop: each iteration evaluates them"
            decision.roofline = None  # the model counts vectors
        if run.extent is None:
            decision.chose("a row stays one loop", why)
            return [], whole
        sch.vectorize(row)
        sch.annotate(row, VECTOR_LANES, lanes)
        decision.chose(f"a row is a loop of {lanes} lanes" if can_cut else "a row is one loop", why)
        return [], whole
    plain = _why_plain(facts, run, work, picking, machine)
    if plain:
        decision.chose("a row stays one loop", plain)
        decision.roofline = None  # the model counts vectors
        return [row], 1
    picking.note(decision)
    several = _vectors_at_once(work, run, machine, lanes)
    narrow = _narrowest_lanes(streams, work, machine)
    is_mixed = narrow > lanes and not run.period and (run.extent is None or run.extent >= narrow)
    if is_mixed:
        several = max(several, narrow // lanes)
    if run.extent is not None and run.extent <= lanes:
        sch.vectorize(row)
        decision.chose(
            f"vectors of {run.extent}", f"all of {name}, which is no longer than the machine's {lanes} lanes"
        )
        return [], whole
    if run.period or (work.instructions <= _FEW and not is_mixed):
        around, some, lane = sch.split(row, [None, several, lanes])
        sch.unroll(some)
    else:
        # As lanes of one vector, so that every instruction is there for all of them before the next, and the narrower
        # of two types fills a register.
        around, lane = sch.split(row, [None, several * lanes])
    sch.vectorize(lane)
    kind = str(facts.write.buffer.dtype)
    decision.chose(f"vectors of {lanes}", f"{name} is contiguous; a register holds {machine.lanes(kind)} of {kind}")
    if several > 1:
        decision.chose(f"{several} vectors at once", _why_at_once(work, run))
    return [around], several * lanes


def _why_plain(facts: BlockFacts, run: _Run, work: NestCost, picking: GatherCost, machine: Machine) -> str:
    """Why vectors are left to the compiler, which has more to choose from; empty where they are not."""
    waits = work.bytes > machine.l2 and work.memory > work.arithmetic  # for memory, which vectors ask for ahead
    # The compiler makes no vectors of a row that starts anew within one loop.
    if is_small_arithmetic(facts) and not picking.far and not waits and not run.period:
        return "8- and 16-bit integers are left to LLVM's vectorizer, which picks the narrowest type for each value"
    if picking.is_better_by_element():
        names = ", ".join(dict.fromkeys([access.buffer.name for access in picking.far]))
        return f"cells of {names} are strided: gathering them takes longer than the work"
    return ""


def _along(facts: BlockFacts, streams: Streams) -> Axis | None:
    """The axis over neighbouring cells of the result."""
    moving = [position for position, axis in enumerate(facts.axes) if axis.extent != 1]
    result = next((position for position in moving if streams.stores[0].step(position) == 1), None)
    return None if result is None else facts.axes[result]


def _vectors_at_once(work: NestCost, run: _Run, machine: Machine, lanes: int) -> int:
    """How many vectors are computed in a round: enough to hide latency, and as many as registers and the run hold."""
    if run.period:
        return run.period // lanes
    is_light = work.instructions <= _FEW or (work.instructions < _MANY and machine.registers >= 32)
    wanted = VECTORS_AT_ONCE if is_light else 2
    while wanted > 1 and run.extent is not None and run.extent < wanted * lanes:
        wanted //= 2
    return option("vectors at once", wanted, 1, 2, 2 * wanted) if wanted > 1 else wanted


def _narrowest_lanes(streams: Streams, work: NestCost, machine: Machine) -> int:
    """How many lanes a vector of the narrowest type has that is loaded or stored along the run, in a few registers.

    A result that streams to memory gets no more than a line at once: LLVM stores the parts of a vector in any order,
    and a core that takes lines over without reading them (write streaming) does so where they are written in turn.
    """
    most = max([machine.lanes(str(stream.buffer.dtype)) for stream in streams.all])
    widest = max([stream.itemsize for stream in streams.all])
    register = machine.cpu.vector_bits // 8
    fits = min(most, _REGISTERS_OF_ONE * register // widest)
    if work.bytes <= machine.l2:
        return fits
    return min(fits, machine.line // max([stream.itemsize for stream in streams.stores]))


def _why_at_once(work: NestCost, run: _Run) -> str:
    if run.period:
        return "then the lanes of each broadcast operand repeat"
    if work.instructions <= _FEW:
        return "to amortise loop overhead"
    return f"the {work.instructions} instructions of one vector depend on each other; several vectors hide the latency"
