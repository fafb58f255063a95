"""The schedule of a convolution by winograd: ordinary steps on the blocks that the step `winograd` makes.

parallel for strip:                       some rows of tiles (in phases: three nests, each shared out by itself)
    turned = data, channels last          tiles of 16 × 16 in registers, where channels lie apart
    wide = padded
    for tile, 16 channels:                data transformed in registers, by columns, then by rows
    for position, panel, 6 tiles:         a product of matrices, sums in registers
    for tile, 16 channels:                results transformed in registers
    out = turned back                     with bias, activation and whatever else comes element by element
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loopwright.autosched.machine import Machine
from loopwright.autosched.parallelize import deal_out
from loopwright.autosched.prefetch import prefetch_weights
from loopwright.autosched.program import Program
from loopwright.autosched.rules.winograd.channel_transpose import copy_elements, turn_data, write_out
from loopwright.autosched.rules.winograd.layer import MatchedBlocks
from loopwright.autosched.rules.winograd.sizes import Sizes
from loopwright.autosched.small_steps import fused, loops_below, sink_result, vectors
from loopwright.schedule import BlockRV, LoopRV, Schedule

UNROLLED = 4  # steps of the reduction written out


@dataclass
class _Blocks:
    """The blocks of a convolution by winograd, in the order of the program."""

    weight: list[BlockRV]  # by columns, by rows
    wide: BlockRV
    data: list[BlockRV]
    product: BlockRV
    result: list[BlockRV]
    last: BlockRV  # writes the result, and does what comes element by element


def schedule_winograd(
    sch: Schedule, used: MatchedBlocks, program: Program, sizes: Sizes, machine: Machine
) -> list[str]:
    """Do it; the buffers that are transposed, channels to the end or back."""
    first = sch.get_block(used.block.name)
    result = sch.winograd(first, sizes.tile)
    blocks = _Blocks(result[0:2], result[2], result[3:5], result[5], result[6:8], first)
    if used.before is not None:
        sch.compute_inline(sch.get_block(used.before.name))
    for entry in used.after:
        sch.compute_inline(blocks.last)
        blocks.last = sch.get_block(entry.name)
    _weights(sch, blocks, used, sizes)
    transposed = turn_data(sch, blocks.wide, program, sizes.lanes)
    out = sch.cache_write(blocks.product, 0, "global")
    divide = _phases if sizes.rows is None else _strips
    outer = divide(sch, blocks, [item.block for item in transposed], out, sizes)
    for item in transposed:
        if not item.size:
            copy_elements(sch, item.block, outer.data, item.dimension)
    vectors(sch, sch.get_loops(blocks.wide)[-1], sizes.lanes)
    names = [item.name for item in transposed]
    if write_out(sch, blocks.last, sch.get(blocks.result[1]).writes[0].buffer, outer.result, sizes.lanes):
        names.append(sch.get(blocks.last).writes[0].buffer.name)
    weights = sch.get(blocks.weight[1]).writes[0].buffer
    prefetch_weights(sch, blocks.product, outer.step, weights, UNROLLED * sizes.nr, sizes.uses, machine)
    if sizes.threads > 1:
        for loop in outer.shared:
            deal_out(sch, loop)
    return names


def _weights(sch: Schedule, blocks: _Blocks, used: MatchedBlocks, sizes: Sizes) -> None:
    """Weights are transformed into panels: the channels of one tile of sums next to each other, for each input."""
    columns, rows = blocks.weight
    layout = f"lambda a, b, c, f: (a, b, f // {sizes.nr}, c, f % {sizes.nr})"
    sch.transform_layout(rows, ("write", 0), layout)
    first, second, inputs, outputs = sch.get_loops(rows)
    several, lane = sch.split(outputs, [None, sizes.lanes])
    sch.reorder(inputs, several, first, second, lane)
    _below(sch, columns, rows, several)
    if sizes.threads > 1 and not used.layer.is_constant:
        sch.parallel(inputs)


class _Outer(NamedTuple):
    """The loops in which data and results are transformed, and those that threads share out."""

    data: LoopRV
    result: LoopRV
    shared: list[LoopRV]
    step: LoopRV  # of the products' sums


def _strips(sch: Schedule, blocks: _Blocks, transposed: Sequence[BlockRV], out: BlockRV, sizes: Sizes) -> _Outer:
    first, second, *batch, down, across, outputs, inputs = sch.get_loops(blocks.product)
    strip, row = sch.split(down, [None, sizes.rows])
    nest = _product(sch, [*batch, strip], [first, second], [row, across], outputs, inputs, sizes)
    sch.compute_at(blocks.data[1], strip)
    _in_registers(sch, blocks.data, strip, 2, sizes.lanes)  # first: what it reads is one whole buffer still
    for block in (blocks.wide, *transposed):
        sch.compute_at(block, strip)
    _sums(sch, blocks.product, out, nest, sizes)
    for block in blocks.result:
        sch.reverse_compute_at(block, strip)
    _in_registers(sch, blocks.result, strip, 0, sizes.lanes)
    sch.reverse_compute_at(blocks.last, strip)
    for block in (*transposed, blocks.wide, blocks.data[1], out, blocks.result[1]):
        sink_result(sch, block)
    if sizes.threads > 1:
        strip = fused(sch, [*batch, strip])
    return _Outer(strip, strip, [strip], nest.step)


def _phases(sch: Schedule, blocks: _Blocks, transposed: Sequence[BlockRV], out: BlockRV, sizes: Sizes) -> _Outer:
    first, second, *tiles, outputs, inputs = sch.get_loops(blocks.product)
    nest = _product(sch, [], [first, second], tiles, outputs, inputs, sizes)
    _sums(sch, blocks.product, out, nest, sizes)

    a, b, *batch, down, across, channels = sch.get_loops(blocks.data[1])
    sch.reorder(*batch, down, a, b, across, channels)
    row = fused(sch, [*batch, down])
    _in_registers(sch, blocks.data, row, 2, sizes.lanes)
    for block in (blocks.wide, *transposed):
        sch.compute_at(block, row)
    for block in (*transposed, blocks.wide):
        sink_result(sch, block)

    *batch, down = sch.get_loops(blocks.result[1])[:-4]
    line = fused(sch, [*batch, down])
    _in_registers(sch, blocks.result, line, 0, sizes.lanes)
    sch.reverse_compute_at(blocks.last, line)
    sink_result(sch, blocks.result[1])
    panels = sch.fuse(*nest.around)
    return _Outer(row, line, [row, panels, line], nest.step)


class _Nest(NamedTuple):
    """The loops of the tiled product, by what they do."""

    around: list[LoopRV]  # positions and panels
    tile: LoopRV  # of sums
    step: LoopRV


def _product(
    sch: Schedule,
    outer: Sequence[LoopRV],
    positions: Sequence[LoopRV],
    tiles: Sequence[LoopRV],
    outputs: LoopRV,
    inputs: LoopRV,
    sizes: Sizes,
) -> _Nest:
    panel, column = sch.split(outputs, [None, sizes.nr])
    *images, down, across = tiles
    if sizes.mr <= sizes.counts[1]:
        tile, row = sch.split(across, [None, sizes.mr])
        around, inside = [*images, down, tile], [row]
    else:  # some whole rows
        tile, row = sch.split(down, [None, sizes.mr // sizes.counts[1]])
        around, inside = [*images, tile], [row, across]
    step, few = sch.split(inputs, [None, UNROLLED])
    sch.reorder(*outer, *positions, panel, *around, step, few, *inside, column)
    for loop in (few, *inside):
        sch.unroll(loop)
    vectors(sch, column, sizes.lanes, unrolled=True)
    return _Nest([*positions, panel], tile, step)


def _sums(sch: Schedule, product: BlockRV, out: BlockRV, nest: _Nest, sizes: Sizes) -> None:
    """Sums are in registers until a tile of them is done."""
    sch.reverse_compute_at(out, nest.tile)
    sch.set_scope(product, 0, "local")
    sink_result(sch, product)
    *rows, columns = loops_below(sch, out, nest.tile)
    for row in rows:
        sch.unroll(row)
    vectors(sch, columns, sizes.lanes, unrolled=True)


def _in_registers(sch: Schedule, blocks: Sequence[BlockRV], location: LoopRV, positions: int, lanes: int) -> None:
    """Both passes of a transform for one tile and a vector of channels; positions come first, or before channels."""
    columns, rows = blocks
    *loops, channels = loops_below(sch, rows, location)
    inside, tiles = (loops[:positions], loops[positions:]) if positions else (loops[-2:], loops[:-2])
    several, lane = sch.split(channels, [None, lanes])
    sch.reorder(*tiles, several, *inside, lane)
    _below(sch, columns, rows, several)


def _below(sch: Schedule, columns: BlockRV, rows: BlockRV, location: LoopRV) -> None:
    """The first pass at a loop of the second, what lies between them in registers, everything written out."""
    sch.compute_at(columns, location)
    sink_result(sch, columns)
    sch.set_scope(columns, 0, "local")
    for block in (columns, rows):
        *inside, lane = loops_below(sch, block, location)
        for loop in inside:
            sch.unroll(loop)
        sch.vectorize(lane)
