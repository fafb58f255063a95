"""convolution: sums over windows of an image, by vectors of channels; padding before it, element-wise work after it.

Open `window.py` (what is a convolution), then `tiles.py` (the sizes, by a cost model) and `steps.py` (the schedule);
`groups.py` and `pointwise.py` bring groups and windows of one pixel to a form that is scheduled already.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.decision import Decision, Roofline
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction import Contraction
from loopwright.autosched.rules.contraction.around import epilogue_length
from loopwright.autosched.rules.contraction.tiles import choose_tiles as product_tiles
from loopwright.autosched.rules.convolution.groups import groups_of, part_groups
from loopwright.autosched.rules.convolution.pointwise import fold_pixels, is_pointwise, size_of
from loopwright.autosched.rules.convolution.steps import schedule_window
from loopwright.autosched.rules.convolution.tiles import Tiles, choose_tiles
from loopwright.autosched.rules.convolution.window import Window, extent, window_of
from loopwright.autosched.rules.whole_blocks import schedule_alone
from loopwright.ir import IntImm
from loopwright.schedule import Schedule

EQUAL = 1.08  # so near each other that the product is preferred: its result is in order when it leaves the registers


class Convolution:
    """Takes a convolution with several channels, the padding of its image, and the element-wise blocks after it."""

    name = "direct convolution"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        before = _padding(pending, program)
        facts = pending[before].facts
        if facts is None or (groups_of(facts) is None and not _is_worth_it(window_of(facts))):
            return 0
        if program.is_output(facts.write.buffer):
            return before + 1  # the sums themselves are asked for: what reads them comes after
        return before + 1 + epilogue_length(pending[before:], program)

    def schedule(
        self, sch: Schedule, taken: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        before = _padding(taken, program)
        facts = taken[before].facts
        assert facts is not None
        names = [entry.name for entry in taken]
        groups = groups_of(facts)
        renamed = []
        if groups is not None:
            weights, after = part_groups(sch, facts, groups, taken[before + 1 :])
            names[before + 1 :] = after
            renamed.append(weights)
            program = Program(sch, program.func_name)
            decision.chose("groups as a loop of their own", f"the {groups.size} channels of one see the same pixels")
        entries = {entry.name: entry for entry in program.entries}
        window = _window(entries[facts.name])
        if window is None or not _is_worth_it(window):
            raise NotWorthIt("the sums are no convolution with several channels")
        tiles = choose_tiles(window, machine, pads=before > 0)
        epilogue = [entries[name] for name in names[before + 1 :]]
        if not before and not renamed and is_pointwise(window):
            product = product_tiles(size_of(window), machine)
            if product.cycles < EQUAL * tiles.cycles:
                _as_product(sch, window, epilogue, program, machine, decision, tiles.cycles / product.cycles)
                return
        prepacks = program.is_made_early(window.weights.buffer, machine.runs_here)
        padding = entries[names[0]] if before else None
        packing = schedule_window(sch, window, padding, epilogue, tiles, renamed)
        _explain(window, tiles, machine, decision, padding is not None, prepacks)
        if not prepacks:
            schedule_alone(sch, packing, program, machine, decision)


def _is_worth_it(window: Window | None) -> bool:
    return window is not None and min(window.depth, window.channels) >= 2


def _as_product(
    sch: Schedule,
    window: Window,
    epilogue: Sequence[Entry],
    program: Program,
    machine: Machine,
    decision: Decision,
    gain: float,
) -> None:
    """Schedule a convolution with a window of one pixel as the product that it is."""
    decision.chose(
        "a product of matrices, channels by pixels",
        f"the window is one pixel; by the model it takes {1 / gain:.0%} of the time of vectors of channels",
    )
    names = fold_pixels(sch, window, epilogue)
    program = Program(sch, program.func_name)
    entries = {entry.name: entry for entry in program.entries}
    Contraction(reads_in_place=True).schedule(sch, [entries[name] for name in names], program, machine, decision)


def _window(entry: Entry) -> Window | None:
    return window_of(entry.facts) if entry.facts is not None else None


def _padding(pending: Sequence[Entry], program: Program) -> int:
    """1 when the first block does nothing but make the image of the convolution after it, else 0."""
    facts = pending[0].facts
    if facts is None or len(pending) < 2 or not facts.is_injective or len(facts.stores) != 1:
        return 0
    buffer = facts.write.buffer
    after = pending[1].facts
    if after is None or program.is_output(buffer) or not facts.writes_in_order:
        return 0
    groups, window = groups_of(after), window_of(after)
    weights = groups.weights.buffer if groups is not None else window.weights.buffer if window is not None else buffer
    if weights is buffer or buffer not in pending[1].reads:
        return 0
    return int([reader.name for reader in program.readers(buffer)] == [pending[1].name])


def _explain(window: Window, tiles: Tiles, machine: Machine, decision: Decision, pads: bool, prepacks: bool) -> None:
    used = tiles.mr * tiles.vectors
    line = extent(window.row)
    decision.chose(
        f"tiles of {tiles.mr} pixels × {tiles.nr} channels",
        f"{used} of {machine.registers} registers hold sums; a step loads {tiles.mr + tiles.vectors} times for {used} "
        f"multiply-adds, and {line} pixels of a line are {-(-line // tiles.mr)} tiles",
    )
    weights = window.depth * tiles.nr * bytes_of(window.facts.dtype)
    how = "prepacked" if prepacks else "packed"
    why = "they are constants: calls find them packed" if prepacks else "each is read again and again"
    decision.chose(
        f"weights {how} in panels of {tiles.nr} channels", f"{why}; {weights >> 10} KiB of them are used at a time"
    )
    if pads:
        decision.chose(f"padding done for {tiles.band} lines at a time", "the padded image never leaves the caches")
    elif tiles.copies_image:
        decision.chose(
            f"{tiles.band} lines of the image copied at a time", "steps of the reduction lie near each other"
        )
    if not window.writes_channels_last:
        decision.chose("panels of sums turned in registers", "pixels, not channels, are neighbours in the result")
    pixels = prod(extent(axis) for axis in window.pixels)
    tasks = window.copies * pixels // (line * tiles.band) * -(-window.channels // tiles.nr) // tiles.panels
    if tiles.threads > 1:
        decision.chose(
            f"{tasks} tasks of {tiles.band} lines × {tiles.panels * tiles.nr} channels",
            f"dealt out to {tiles.threads} threads",
        )
    elif machine.cores > 1:
        decision.chose("one thread", "the work is smaller than waking others")
    arithmetic = float(window.copies * pixels * window.channels * window.depth)
    arithmetic /= machine.fma_per_cycle * tiles.lanes * tiles.threads
    moved = sum(
        _bytes(access.buffer.shape, str(access.buffer.dtype)) for access in (*window.facts.reads, window.facts.write)
    )
    memory = moved / machine.bytes_per_cycle(moved) / min(tiles.threads, machine.memory_cores)
    decision.roofline = Roofline(arithmetic, memory, tiles.cycles)


def _bytes(shape: Sequence[object], dtype: str) -> int:
    return prod(int(size.value) for size in shape if isinstance(size, IntImm)) * bytes_of(dtype)
