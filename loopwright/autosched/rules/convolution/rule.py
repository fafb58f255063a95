"""Convolution: the rule for convolutions with a sum over channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from loopwright.autosched.choices import again, alone, is_chosen
from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import BlockFacts
from loopwright.autosched.layouts import dimensions, layout
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.around import epilogue_length, is_made_for
from loopwright.autosched.rules.contraction import Contraction
from loopwright.autosched.rules.contraction.streamed import streamed_tiles
from loopwright.autosched.rules.contraction.tiles import choose_tiles as product_tiles
from loopwright.autosched.rules.convolution.explain import explain
from loopwright.autosched.rules.convolution.few_pixels import dot_cycles, packing_cycles, schedule_few_pixels
from loopwright.autosched.rules.convolution.groups import groups_of, part_groups
from loopwright.autosched.rules.convolution.pixel_tiles import PixelTiles, choose_pixel_tiles
from loopwright.autosched.rules.convolution.pixel_vectors import runs_along, schedule_by_pixels
from loopwright.autosched.rules.convolution.pointwise import fold_pixels, is_pointwise, product_size
from loopwright.autosched.rules.convolution.steps import schedule_window
from loopwright.autosched.rules.convolution.tiles import choose_tiles
from loopwright.autosched.rules.convolution.window import Window, window_of
from loopwright.autosched.rules.whole_blocks import schedule_separately
from loopwright.autosched.tile_search import cheapest
from loopwright.schedule import Schedule

LESS_BY_PIXELS = 0.9  # of the time, where all channels are summed at once: what is counted is not so sure then
EQUAL = 1.2  # so near each other that the product is preferred: its result is in order when it leaves the registers


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
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        before = _padding(entries, program)
        facts = entries[before].facts
        assert facts is not None
        names = [entry.name for entry in entries]
        groups = groups_of(facts)
        renamed = []
        if groups is not None:
            parted = part_groups(sch, facts, groups, entries[before + 1 :])
            names[before + 1 :] = [step.name for step in parted.after]
            renamed.append(parted.operand.name)
            program = program.after(sch)
            of_group = (
                f"the {groups.size} channels of a group read"
                if groups.size > 1
                else "each has a channel of its own, which reads"
            )
            decision.chose("groups as an outer loop", f"{of_group} the same pixels")
        now = program.entry(facts.name).facts
        window = window_of(now) if now is not None else None
        if window is None and now is not None and groups is not None and not before:
            _groups_as_products(sch, now, [*renamed, *names], program, machine, decision)
            return
        if window is None or not _is_worth_it(window):
            raise NotWorthIt("this is not a convolution with several channels")
        prepacks = program.is_made_early(window.weights.buffer, machine.runs_here)
        if groups is None and _with_few_results(sch, window, entries, before, program, machine, decision, prepacks):
            return
        if groups is not None and _grouped_by_pixels(
            sch, window, renamed, entries[0] if before else None, names[before + 1 :], program, machine, decision
        ):
            return
        if groups is not None and groups.size == 1:
            raise NotWorthIt("a group of one channel has no vectors but those of pixels")
        with alone():
            tiles = choose_tiles(window, machine, pads=before > 0)
        epilogue = [program.entry(name) for name in names[before + 1 :]]
        # Where channels lie together those of one group are a part of a line, which no panel can be packed from.
        has_panels = not (renamed and window.writes_channels_last)
        if not before and is_pointwise(window) and has_panels and min(window.places, window.channels, window.k) > 1:
            size = product_size(window, prepacks)
            with alone():
                product = cheapest([product_tiles(size, machine), *streamed_tiles(size, machine)])
            if is_chosen("as a product", product.cycles, EQUAL * tiles.cycles):
                result = len(decision.choices)

                def as_product() -> None:
                    del decision.choices[result:]  # steps may be done twice
                    for name in renamed:  # another name for the same weights: they are read under the old one
                        sch.compute_inline(name)
                    _as_product(sch, window, epilogue, program, machine, decision, tiles.cycles / product.cycles)

                sch.replay(as_product)
                return
        tiles = again(tiles, lambda: choose_tiles(window, machine, pads=before > 0))
        padding = program.entry(names[0]) if before else None
        packings: list[str] = []

        def steps() -> None:
            packings[:] = [schedule_window(sch, window, padding, epilogue, tiles, renamed, machine)]

        sch.replay(steps)  # some forty steps, proved as a whole: half the time of a proof for each
        packing = packings[0]
        explain(window, tiles, machine, decision, padding is not None, prepacks)
        if not prepacks:
            schedule_separately(sch, packing, program, machine, decision)


def _with_few_results(
    sch: Schedule,
    window: Window,
    entries: Sequence[Entry],
    before: int,
    program: Program,
    machine: Machine,
    decision: Decision,
    prepacks: bool,
) -> bool:
    """Schedule a convolution of few output channels or pixels where its own way takes less time; whether it does."""
    by_pixels = _by_pixels(window, machine, before > 0)
    padding, epilogue = entries[0] if before else None, entries[before + 1 :]
    dots = dot_cycles(window, machine) if not prepacks else None
    if dots is not None:
        if by_pixels is not None:
            otherwise = by_pixels.cycles_on(machine)
        else:
            with alone():
                otherwise = choose_tiles(window, machine, before > 0).cycles + packing_cycles(window, machine)
        if is_chosen("dot products", dots / machine.threads_for(dots), otherwise):
            schedule_few_pixels(sch, window, padding, epilogue, program, machine, decision)
            return True
    if by_pixels is not None:
        schedule_by_pixels(sch, window, padding, epilogue, by_pixels, machine, decision)
    return by_pixels is not None


def _grouped_by_pixels(
    sch: Schedule,
    window: Window,
    renamed: Sequence[str],
    padding: Entry | None,
    epilogue: Sequence[str],
    program: Program,
    machine: Machine,
    decision: Decision,
) -> bool:
    """Schedule groups of few channels by vectors of pixels where that takes less time; whether it does."""
    tiles = _by_pixels(window, machine, padding is not None)
    if tiles is None:
        return False
    for name in renamed:  # another name for the same weights: they are read under the old one
        sch.compute_inline(name)
    after = [program.entry(name) for name in epilogue]
    schedule_by_pixels(sch, window, padding, after, tiles, machine, decision)
    return True


def direct_cycles(facts: BlockFacts, machine: Machine, pads: bool) -> float | None:
    """What a block should take as a direct convolution, all threads at work; None when it is none."""
    window = window_of(facts)
    if window is None or not _is_worth_it(window):
        return None
    with alone():
        by_pixels = _by_pixels(window, machine, pads)
        return choose_tiles(window, machine, pads).cycles if by_pixels is None else by_pixels.cycles_on(machine)


def _groups_as_products(
    sch: Schedule, facts: BlockFacts, names: Sequence[str], program: Program, machine: Machine, decision: Decision
) -> None:
    """Schedule groups of which each is a product of matrices: pixels in a row, under a window of one."""
    renamed, block, *after = names
    sch.compute_inline(renamed)  # another name for the same weights: they are read under the old one
    axes = dimensions(len(facts.axes))
    kept = [name for name, axis in zip(axes, facts.axes, strict=True) if axis.extent != 1]
    sch.transform_block_layout(block, layout(axes, kept))
    program = program.after(sch)
    entries = [program.entry(name) for name in (block, *after)]
    if not Contraction().take(entries, program):
        raise NotWorthIt("groups are neither windows with several channels nor products of matrices")
    Contraction().schedule(sch, entries, program, machine, decision)


def _is_worth_it(window: Window | None) -> bool:
    return window is not None and window.k >= 2 and (window.channels >= 2 or runs_along(window))


def _by_pixels(window: Window, machine: Machine, pads: bool) -> PixelTiles | None:
    """The sizes by vectors of pixels, where these clearly take less time than vectors of channels."""
    if not runs_along(window) or (window.channels > 1 and is_pointwise(window)):
        return None  # a product of matrices has vectors of pixels, too
    with alone():
        tiles = choose_pixel_tiles(window, machine, pads)
        otherwise = choose_tiles(window, machine, pads).cycles if window.channels > 1 else inf
    share = 1.0 if tiles.has_slabs else LESS_BY_PIXELS
    if not is_chosen("vectors of pixels", tiles.cycles_on(machine), share * otherwise):
        return None
    return again(tiles, lambda: choose_pixel_tiles(window, machine, pads))


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
        f"a GEMM, {'pixels by channels' if window.writes_channels_last else 'channels by pixels'}",
        f"the window is 1 × 1; the cost model predicts {1 / gain:.0%} of the time of the direct form",
    )
    names = fold_pixels(sch, window, epilogue)
    if window.writes_channels_last:
        sch.compute_inline(names.pop(0))  # rows of a product are read where they are
    program = program.after(sch)
    entries = [program.entry(name) for name in names]
    Contraction(reads_in_place=True).schedule(sch, entries, program, machine, decision)


def _padding(pending: Sequence[Entry], program: Program) -> int:
    """1 when the first block does nothing but make the image of the convolution after it, else 0."""
    if len(pending) < 2 or not is_made_for(pending[0], pending[1], program):
        return 0
    facts, after = pending[0].facts, pending[1].facts
    if facts is None or after is None or not facts.writes_in_order:
        return 0
    result = groups_of(after) or window_of(after)
    return int(result is not None and result.weights.buffer is not facts.write.buffer)
