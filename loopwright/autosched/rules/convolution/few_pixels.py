"""Few pixels: a convolution of an image of a few pixels by weights that are not constant, as dot products.

    Y[n, o, y, x] += X[n, c, y + dy, x + dx] * W[o, c, dy, dx]    →    Y2[n, o, p] += X2[n, p, k] * W2[o, k]

X2 holds each window of the image as a row: a small copy. W2 is another name for W, which is read once, as it lies; to
pack it would take longer than all multiply-adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import Axis
from loopwright.autosched.layouts import dimensions, folded, layout
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.contraction.dot_steps import explain_dots, schedule_dots
from loopwright.autosched.rules.contraction.dots import TYPES, choose_dots
from loopwright.autosched.rules.contraction.product import product_of
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.autosched.rules.whole_blocks import schedule_separately
from loopwright.autosched.small_steps import operand_of
from loopwright.ir import Expr
from loopwright.schedule import Schedule

PIXELS_OF_DOTS: Final = 200  # of all images: with more of them, packing pays
SHORTEST_SUM: Final = 64  # products
LOADS_OF_DOTS: Final = 4  # pixels of a tile
ROWS_UNDER_A_TILE: Final = 5  # of each operand under a tile: so many accumulators there are room for, either way
DOT_TILES: Final = 1.4  # times what is counted: small tiles, whose lanes are added up in the end


def dot_cycles(window: Window, machine: Machine) -> float | None:
    """What dot products should take, the copy of the windows included; None where they are not for it."""
    if not _is_for_dots(window):
        return None
    lanes, pixels, weights = machine.lanes(window.facts.dtype), window.places, window.k * window.channels
    arithmetic = pixels * weights / (machine.fma_per_cycle * lanes)
    # Tiles are small: the vectors of weights and windows are loaded for few multiply-adds.
    loads = weights / lanes * (1 + pixels / LOADS_OF_DOTS) / machine.loads_per_cycle
    # Rows are as long as the reduction: those of one operand pass by in L2; of both, if L1 holds none of a tile.
    row = window.k * bytes_of(window.facts.dtype)
    passing = 2 if ROWS_UNDER_A_TILE * row > machine.l1 else 1
    passed = passing * pixels * window.channels * row / ROWS_UNDER_A_TILE / machine.l2_bytes_per_cycle
    copying = pixels * window.k * machine.moves.transposed_short
    return window.batch * (max(arithmetic * DOT_TILES, loads * DOT_TILES, passed) + copying)


def packing_cycles(window: Window, machine: Machine) -> float:
    """What it takes to pack weights that are not constant, before the tiles of a direct convolution."""
    return window.k * window.channels * (machine.moves.packed_far + machine.moves.packed_across)


def _is_for_dots(window: Window) -> bool:
    """Whether the weights lie along the reduction, and one axis of the result is the channel."""
    step, types = 1, {window.facts.dtype, str(window.image.buffer.dtype), str(window.weights.buffer.dtype)}
    for axis in reversed(window.reduce):
        if extent(axis) > 1 and window.weights.stride(axis.var) != step:
            return False
        step *= extent(axis)
    return (
        window.batch * window.places <= PIXELS_OF_DOTS
        and window.k >= SHORTEST_SUM
        and window.weights.stride(window.channel.var) == step
        and len(types) == 1
        and types <= set(TYPES)
        and list(window.facts.write.indices) == [axis.var for axis in window.facts.spatial]
        and all(extent(axis) == 1 or not window.weights.uses(axis.var) for axis in window.around)
    )


def schedule_few_pixels(
    sch: Schedule,
    window: Window,
    padding: Entry | None,
    epilogue: Sequence[Entry],
    program: Program,
    machine: Machine,
    decision: Decision,
) -> None:
    """Copy the windows, have the block be a product, and schedule it as dot products."""
    facts = window.facts
    block = sch.get_block(facts.name)
    head = dimensions(len(facts.axes))
    names: dict[Expr, str] = dict(zip([axis.var for axis in facts.axes], head, strict=True))

    def one(axes: Sequence[Axis]) -> str:
        return folded([names[axis.var] for axis in axes], [extent(axis) for axis in axes])

    k, pixel = one(window.reduce), one(window.pixels_in_order)
    around = [names[axis.var] for axis in window.around]
    channel = names[window.channel.var]
    image = sch.reindex_cache_read(
        block, operand_of(sch, block, window.image.buffer), "global", layout(head, [*around, pixel, k])
    )
    weights = sch.reindex_cache_read(
        block, operand_of(sch, block, window.weights.buffer), "global", layout(head, [channel, k])
    )
    is_first = facts.spatial.index(window.channel) < facts.spatial.index(window.pixels_in_order[0])
    of_result = [*around, channel, pixel] if is_first else [*around, pixel, channel]
    out = sch.reindex_cache_write(block, 0, "global", layout(head, of_result))
    after = [out, *[sch.get_block(entry.name) for entry in epilogue]]
    for step in after[:-1]:
        sch.compute_inline(step)
    if padding is not None:
        sch.compute_inline(sch.get_block(padding.name))
    sch.transform_block_layout(block, layout(head, [*of_result, k]))
    program = program.after(sch)
    now = program.entry(facts.name).facts
    product = product_of(now) if now is not None else None
    dots = choose_dots(product, machine) if product is not None else None
    if dots is None:
        raise NotWorthIt("it is no product whose operands lie along the reduction")
    schedule_dots(sch, dots, machine, decision)
    sch.compute_inline(weights)
    decision.chose("a GEMM of windows by weights", "an image of few pixels: each weight is read once, as it lies")
    explain_dots(dots, machine, decision)
    for step in (image, after[-1]):
        schedule_separately(sch, sch.get(step).name_hint, program, machine, decision)
