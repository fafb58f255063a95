"""Sharing out: the outer loops of a nest run on threads where there is more to do than waking them costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from loopwright.autosched.choices import option
from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.machine import Machine
from loopwright.autosched.nest_cost import NestCost
from loopwright.autosched.small_steps import extent_of, fused
from loopwright.schedule import LoopRV, Schedule

_UNKNOWN: Final = 64  # iterations that a loop is taken to have when there is no knowing
PIECES: Final = 4  # for each core: so that one that is busy with something else does not hold up all
_MOST_PIECES: Final = 16  # where each of them is still worth a core


def parallelize_outer(
    sch: Schedule, loops: Sequence[LoopRV], each: int, work: NestCost, machine: Machine, decision: Decision
) -> None:
    """Run the outermost of `loops` (directly in one another) in pieces on threads, if the model says that this pays.

    An iteration of the innermost of them computes `each` elements.
    """
    if not loops or machine.cores == 1:
        if machine.cores > 1:
            decision.chose("one thread", "there is nothing to parallelise", ChoiceKind.ONE_THREAD)
        return
    extents = [extent_of(sch, loop) for loop in loops]
    if not work.is_known:
        _tasks_of_min_size(sch, loops, extents, each, work, machine, decision)
        return
    threads = machine.threads_for(work.cycles)
    if threads == 1:
        note_one_thread(work, decision)
        return
    each_thread = min(_MOST_PIECES, max(PIECES, int(work.cycles / threads // machine.fork_cycles)))
    wanted = threads * option("pieces of a thread", each_thread, 1, 2, 4 * each_thread)
    count, used = 1, 0
    for extent in extents:
        assert extent is not None
        count *= extent
        used += 1
        if count >= wanted:
            break
    loop = fused(sch, loops[:used])
    if count > 4 * wanted:
        loop, _ = sch.split(loop, [None, ceil(count / wanted)])
    parallelize_in_tasks(sch, loop)
    pieces = extent_of(sch, loop)
    decision.chose(f"{pieces} parallel tasks", f"{work.cycles:.0f} cycles of work keep {threads} cores busy")


def note_one_thread(work: NestCost, decision: Decision) -> None:
    """Say that what could run on several threads does not, and why."""
    planned = "" if work.is_known else ", for the planned size"
    why = f"{work.cycles:.0f} cycles of work cost less than waking other threads{planned}"
    decision.chose("one thread", why, ChoiceKind.ONE_THREAD)


def parallelize_in_tasks(sch: Schedule, loop: LoopRV) -> None:
    """Run a loop on threads: each begins with iterations of its own, and then helps those that are late."""
    sch.parallel(loop)
    sch.annotate(loop, "parallel_dynamic", 0)


def deal_out(sch: Schedule, tasks: LoopRV, turns: int | None = None) -> None:
    """Run a loop over equal tasks on threads, of which each gets `turns`; a core that is late leaves some to others."""
    sch.parallel(tasks)
    if turns != 1:
        sch.annotate(tasks, "parallel_dynamic", 1)


def _tasks_of_min_size(
    sch: Schedule,
    loops: Sequence[LoopRV],
    extents: Sequence[int | None],
    each: int,
    work: NestCost,
    machine: Machine,
    decision: Decision,
) -> None:
    """Sizes are known when the program runs: pieces are so large that two are worth a second thread."""
    first = next((position for position, extent in enumerate(extents) if extent is None), None)
    if first is None:
        why = "neither the amount of work nor the extents of the parallel loops are known"
        decision.chose("one thread", why, ChoiceKind.ONE_THREAD)
        return
    elements = each
    for extent in extents[first + 1 :]:
        elements *= extent or _UNKNOWN
    cycles = max(1.0, elements * work.cycles / work.elements)  # of one iteration of that loop
    rounds = max(1, ceil(2 * machine.fork_cycles / cycles))
    piece, _ = sch.split(loops[first], [None, rounds])
    parallelize_in_tasks(sch, fused(sch, [*loops[:first], piece]))
    decision.chose(
        f"parallel tasks of {rounds} iterations",
        "the shape is dynamic; two such tasks are worth waking a thread for",
    )
