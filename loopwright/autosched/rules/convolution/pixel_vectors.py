"""Pixel vectors: convolutions of few output channels, which fill no vector: vectors run along the pixels of a line.

`pixel_tiles.py` has the loops and their sizes, by a cost model, and `pixel_steps.py` the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.facts import const
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.nest_cost import NestCost
from loopwright.autosched.parallelize import parallelize_outer
from loopwright.autosched.program import Entry
from loopwright.autosched.rules.convolution.pixel_steps import schedule_pixels
from loopwright.autosched.rules.convolution.pixel_tiles import PixelTiles, stride_of
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.autosched.small_steps import extent_of
from loopwright.schedule import LoopRV, Schedule


def schedule_by_pixels(
    sch: Schedule,
    window: Window,
    padding: Entry | None,
    epilogue: Sequence[Entry],
    tiles: PixelTiles,
    machine: Machine,
    decision: Decision,
) -> None:
    """Schedule a convolution by vectors of pixels, and say why."""
    loops: list[LoopRV] = []

    def steps() -> None:
        loops[:] = schedule_pixels(sch, window, padding, epilogue, tiles)

    sch.replay(steps)  # proved as a whole: less than a proof for each
    _explain(window, tiles, machine, decision, padding is not None)
    cost = _cost(window, tiles, machine)
    decision.roofline = Roofline(cost.arithmetic, cost.memory, max(tiles.cycles, cost.memory))
    turns = prod(extent_of(sch, loop) or 1 for loop in loops)
    parallelize_outer(sch, loops, max(1, cost.elements // turns), cost, machine, decision)


def runs_along(window: Window) -> bool:
    """Whether pixels of a line are neighbours, and the first axis of the sum is the channel of the image alone."""
    image, row = window.image, window.row
    return (
        window.k >= 2
        and extent(row) > 1
        and window.facts.write.stride(row.var) == 1
        and window.image_dimension(row) == len(image.indices) - 1
        and len(window.reduce) > 1
        and window.image_dimension(window.reduce[0]) is not None
        and extent(window.reduce[0]) > 1
        and all(window.image_dimension(axis) is not None for axis in (*window.reduce, *window.pixels))
        and window.image_channels == extent(window.reduce[0])
        and _writes_in_order(window)
        and window.pixels == window.pixels_in_order
    )


def _writes_in_order(window: Window) -> bool:
    """Whether each axis is a dimension of the result, in order; that of a single image may be written as 0."""
    indices, axes = window.facts.write.indices, window.facts.spatial
    return len(indices) == len(axes) and all(
        index is axis.var or (extent(axis) == 1 and const(index) == 0)
        for index, axis in zip(indices, axes, strict=True)
    )


def _cost(window: Window, tiles: PixelTiles, machine: Machine) -> NestCost:
    facts = window.facts
    elements = prod(axis.extent or 1 for axis in facts.axes)
    updates = elements / tiles.lanes / machine.fma_per_cycle
    moved = sum(
        prod(int(getattr(size, "value", 1)) for size in access.buffer.shape) * bytes_of(str(access.buffer.dtype))
        for access in (*facts.reads, facts.write)
    )
    return NestCost(elements, 2, updates, moved / machine.bytes_per_cycle(moved), True)


def _explain(window: Window, tiles: PixelTiles, machine: Machine, decision: Decision, pads: bool) -> None:
    channels, stride = window.channels, stride_of(window)
    how = "one output channel fills" if channels == 1 else f"{channels} output channels fill"
    apart = f", each out of {stride} that are loaded" if stride > 1 else ""
    decision.chose(f"vectors of {tiles.lanes} pixels along {window.row.name}{apart}", f"{how} no vector well")
    decision.chose(
        f"tiles of {tiles.channels} channels × {tiles.rows} lines × {tiles.places} vectors",
        f"{tiles.register_tile} of {machine.registers} registers are accumulators",
        ChoiceKind.TILES,
    )
    if tiles.has_slabs:
        decision.chose(
            f"{tiles.slab} channels of the image at a time", "their lines are read along memory; the sums stay in cache"
        )
    if tiles.copies_image and not pads:
        decision.chose(f"{tiles.rows * tiles.band} lines of the image copied at a time", "they lie on many pages")
    if pads:
        decision.chose(f"padding done for {tiles.rows * tiles.band} lines at a time", "the padded lines stay in cache")
