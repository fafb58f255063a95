"""Channel transpose: winograd works on channels last; other layouts are transposed before it, and results after it.

Squares of 16 × 16, 8 × 8 or 4 × 4 are transposed in registers; what fills none goes element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.facts import const, loads_of
from loopwright.autosched.layouts import moved_last, swapped_last
from loopwright.autosched.program import Program
from loopwright.autosched.register_transpose import transpose_intrinsic
from loopwright.autosched.small_steps import extent_of, loop_of_axis, loops_below, operand_of, vectors
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule


class Turned(NamedTuple):
    """A copy of the data with channels last."""

    block: BlockRV
    name: str
    dimension: int  # of the channels before
    size: int  # of the tiles that are transposed in registers; 0 where it goes element by element


def turn_data(sch: Schedule, wide: BlockRV, program: Program, lanes: int) -> list[Turned]:
    """Copies of the data with channels last, where they lie apart."""
    facts = program.after(sch).entry(wide.name).facts
    assert facts is not None
    channel = facts.axes[-1].var
    result: list[Turned] = []
    for access in {access.buffer: access for access in facts.reads}.values():
        dimension = access.own_dimension(channel)
        if dimension is None or dimension == len(access.indices) - 1:
            continue
        block = sch.cache_read(wide, operand_of(sch, wide, access.buffer), "global", [wide])
        sch.transform_layout(block, ("write", 0), moved_last(len(access.indices), dimension))
        extents = [const(access.buffer.shape[k]) or 1 for k in (dimension, -1)]
        size = _tile_of(extents, access.buffer.ndim - dimension - 2, str(access.buffer.dtype), lanes)
        if size:
            block = _in_tiles(sch, block, access.buffer, dimension, size)
        result.append(Turned(block, access.buffer.name, dimension, size))
    return result


def _tile_of(extents: Sequence[int], between: int, dtype: str, lanes: int) -> int:
    """The largest tiles that registers can turn and that fill both extents; 0 when there are none."""
    for size in (16, 8, 4):
        is_whole = all(extent % size == 0 for extent in extents)
        if is_whole and size <= max(lanes, 4) and transpose_intrinsic(size, between, dtype) is not None:
            return size
    return 0


def _turn_tile(sch: Schedule, loop: LoopRV, size: int, between: int, dtype: str) -> None:
    intrinsic = transpose_intrinsic(size, between, dtype)
    assert intrinsic is not None  # `_tile_of` has seen to it
    sch.tensorize(loop, intrinsic)


def _in_tiles(sch: Schedule, block: BlockRV, buffer: Buffer, dimension: int, size: int) -> BlockRV:
    """Turn tiles of a copy in registers; the block that is over whole tiles."""
    loops = sch.get_loops(block)
    channels, column = loops[dimension], loops[-1]
    others = [loop for loop in loops if loop is not channels and loop is not column]
    groups, channel = sch.split(channels, [None, size])
    tiles, location = sch.split(column, [None, size])
    sch.reorder(*others, tiles, groups, channel, location)
    _turn_tile(sch, channel, size, buffer.ndim - dimension - 2, str(buffer.dtype))
    return sch.get_block(f"{sch.get(block).name_hint}_o")


def copy_elements(sch: Schedule, block: BlockRV, location: LoopRV, dimension: int) -> None:
    """A copy that is not made in tiles goes along the channels, so that it writes whole lines."""
    loops = loops_below(sch, block, location)
    channels = loop_of_axis(sch, block, dimension, loops)
    if channels is not None and channels is not loops[-1]:
        sch.reorder(*[loop for loop in loops if loop is not channels], channels)


def write_out(sch: Schedule, last: BlockRV, source: Buffer, location: LoopRV, lanes: int) -> bool:
    """The result, in vectors along its own memory; whether it is turned for that."""
    loops = loops_below(sch, last, location)
    block = sch.get(last)
    load = next(load for load in loads_of(block.body) if load.buffer is source)
    own = [axis.var for axis in block.iter_vars]
    channels = loop_of_axis(sch, last, own.index(load.indices[-1]), loops)  # type: ignore[arg-type]
    column = loops[-1]
    if channels is None or channels is column:
        vectors(sch, column, lanes)
        return False
    extents = [extent_of(sch, loop) or 1 for loop in (channels, column)]
    along = loop_of_axis(sch, last, own.index(load.indices[-2]), loops)  # type: ignore[arg-type]
    size = _tile_of(extents, 0, str(source.dtype), lanes)
    if not size or along is not column:
        vectors(sch, column, lanes)
        return True
    others = [loop for loop in loops if loop is not channels and loop is not column]
    groups, row = sch.split(channels, [None, size])
    tiles, lane = sch.split(column, [None, size])
    sch.reorder(*others, tiles, groups, row, lane)
    staged = sch.stage(last, groups, source.name, "local", layout=swapped_last(source.ndim))
    _turn_tile(sch, sch.get_loops(staged)[-2], size, 0, str(source.dtype))
    sch.unroll(row)
    sch.vectorize(lane)
    return True
