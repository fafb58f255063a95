"""plan_window: choose the sizes of a window, schedule it, and say why."""

from __future__ import annotations

from math import prod

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import NestCost
from loopwright.autosched.parallelize import PIECES, parallelize_outer
from loopwright.autosched.program import Program
from loopwright.autosched.rules.sliding_window.fused_blocks import MatchedBlocks
from loopwright.autosched.rules.sliding_window.steps import copies_padding, schedule_window
from loopwright.autosched.rules.sliding_window.tiles import Tiles, choose_tiles
from loopwright.autosched.rules.sliding_window.window import Window
from loopwright.autosched.small_steps import extent_of
from loopwright.schedule import Schedule

SHUFFLED = 1.9  # times what is counted, where lanes are shuffled out of several vectors: they wait for each other


def plan_window(sch: Schedule, used: MatchedBlocks, program: Program, machine: Machine, decision: Decision) -> None:
    """Schedule the window, its padding and the element-wise work after it."""
    window = used.window
    copies = used.padding is not None and copies_padding(window)
    tiles = choose_tiles(window, machine, copies)
    cost = _cost(window, tiles, machine)
    threads = machine.threads_for(cost.cycles)
    shared = schedule_window(sch, used, program, tiles, threads * PIECES if threads > 1 else 1)
    _explain(window, tiles, machine, decision, used.padding is not None, copies)
    decision.roofline = Roofline(cost.arithmetic, cost.memory, max(tiles.cycles, cost.memory))
    turns = prod(extent_of(sch, loop) or 1 for loop in shared)
    parallelize_outer(sch, shared, max(1, cost.elements // turns), cost, machine, decision)


def sliding_cycles(used: MatchedBlocks, machine: Machine) -> float:
    """What a window should take, all threads at work."""
    copies = used.padding is not None and copies_padding(used.window)
    cycles = choose_tiles(used.window, machine, copies).cycles
    if used.window.is_along and used.window.movements[-1].stride > 1:
        cycles *= SHUFFLED
    return cycles / machine.threads_for(cycles)


def _cost(window: Window, tiles: Tiles, machine: Machine) -> NestCost:
    facts = window.facts
    elements = prod(axis.extent or 1 for axis in facts.axes)
    updates = elements / tiles.lanes / machine.fma_per_cycle
    moved = prod(axis.extent or 1 for axis in facts.spatial) * bytes_of(facts.dtype)
    moved_axes = {movement.axis for movement in window.movements}
    data = prod(movement.reach(movement.axis.extent or 1) for movement in window.movements)
    data *= prod(axis.extent or 1 for axis in facts.spatial if axis not in moved_axes and window.data.uses(axis.var))
    moved += data * bytes_of(str(window.data.buffer.dtype))
    is_known = all(axis.extent is not None for axis in facts.axes)
    return NestCost(elements, 2, updates, moved / machine.bytes_per_cycle(moved), is_known)


def _why_along(window: Window) -> str:
    lane, stride = window.lane.name, window.movements[-1].stride
    if stride == 1:
        return f"neighbours along {lane} are contiguous, and their windows overlap"
    return f"their windows have stride {stride}: the lanes of each tap are shuffled out of {stride} vectors"


def _explain(window: Window, tiles: Tiles, machine: Machine, decision: Decision, is_padded: bool, copies: bool) -> None:
    lane = window.lane.name
    if window.is_along:
        why = _why_along(window)
    else:
        why = f"neighbours along {lane} are contiguous, and their windows do not overlap"
    decision.chose(f"vectors of {tiles.lanes} along {lane}", why)
    used = tiles.rows * tiles.places
    down = window.down
    if down is not None:
        seen, alone = down.cells(tiles.rows), tiles.rows * (down.tap.extent or 1)
        shared = f"; {tiles.rows} adjacent windows read {seen} cells along {down.axis.name}, not {alone}"
        decision.chose(
            f"tiles of {tiles.rows} {down.axis.name} × {tiles.places} vectors",
            f"{used} of {machine.registers} registers are accumulators{shared if seen < alone else ''}",
            ChoiceKind.TILES,
        )
    elif used > 1:
        decision.chose(f"{used} vectors at once", "the updates of one depend on each other; several hide the latency")
    if copies:
        size = f"{tiles.copied >> 10} KiB" if tiles.copied >> 10 else f"{tiles.copied} bytes"
        location = f"L1 ({machine.l1 >> 10} KiB)" if tiles.copied <= machine.l1 else "L2"
        rows = f"for {min(window.rows, tiles.rows * tiles.band)} rows at a time"
        if tiles.copies_once:
            rows = f"once for all {' and '.join(axis.name for axis in window.repeated)}"
        decision.chose(
            f"data copied with its padding {rows}",
            f"{size} stay in {location}, and no load checks for borders",
        )
    elif is_padded:
        decision.chose("padding in place", "only tiles at the border check for it: loops are partitioned there")
