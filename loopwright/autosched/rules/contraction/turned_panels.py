"""Turned panels: B lies across its panels, and square tiles of it are transposed in registers on the way into them.

    for j_0:                                      `size` columns of a panel, which are rows of B
        for k_0:                                  along them
            B_stage[0:size, 0:size] = B[…].T      `size` rows in, shuffles
            for k_1: panel[…] = B_stage[k_1, :]   `size` rows of the panel out

Element by element it would take a load and a store for each: more than all multiply-adds where A has few rows.
"""

from __future__ import annotations

from math import log2
from typing import Final

from loopwright.autosched.layouts import swapped_last
from loopwright.autosched.machine import rounded_up
from loopwright.autosched.register_transpose import transpose_intrinsic
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.small_steps import extent_of
from loopwright.schedule import BlockRV, LoopRV, Schedule

_TILE_SIZES: Final = (2, 4, 8, 16)
_AT_LEAST: Final = 4  # elements of a row: registers of fewer lanes take turns
_APART: Final = 1.5  # instructions for each element that fills no tile: smaller tiles, or a load and a store


def turned_tile(k: int, dtype: str, lanes: int) -> int:
    """The tiles of `k` steps of B that take the fewest shuffles; 0 where registers transpose none."""
    sizes = [size for size in _TILE_SIZES if size <= min(k, max(_AT_LEAST, lanes))]
    sizes = [size for size in sizes if transpose_intrinsic(size, 0, dtype) is not None]
    # Loads, stores and log2(size) rounds of shuffles, for each row of each tile along k; the rest is done apart.
    return min(sizes, key=lambda size: (k // size * (log2(size) + 2) + k % size * _APART, -size), default=0)


def can_turn(product: Product) -> bool:
    """Whether sizes are known, and the last dimensions of B are its column and the reduction, along which it runs."""
    operand, axis = product.column_operand, product.reduce[-1]
    last = len(operand.indices) - 1
    return (
        all(each.extent is not None for each in product.facts.axes)
        and len(product.reduce) == 1
        and str(operand.buffer.dtype) == product.facts.dtype
        and operand.stride(axis.var) == 1
        and operand.own_dimension(axis.var) == last
        and product.column_dimension == last - 1
    )


def turn_panels(sch: Schedule, packing: BlockRV, columns: LoopRV, k: LoopRV, size: int, beyond: int) -> None:
    """Transpose tiles of what `packing` copies into panels; `beyond` columns of the last one may lie beyond B."""
    total = extent_of(sch, columns)
    assert total is not None
    sch.reorder(columns, k)
    if beyond:
        whole = total - rounded_up(beyond, size)
        if 2 * whole <= total:
            return  # there is little more than zeros
        _peel(sch, columns, whole)  # zeros are a loop of their own, element by element
    _turn(sch, packing, size)


def _peel(sch: Schedule, loop: LoopRV, whole: int) -> tuple[LoopRV, BlockRV]:
    """Cut a loop into parts of `whole` iterations, the loop inside them, and what is left over: its block."""
    root = sch.get_block("root")
    before = {block.name for block in sch.get_child_blocks(root)}
    inside = sch.split(loop, [None, whole], tail="peel")[1]
    (rest,) = [block for block in sch.get_child_blocks(root) if block.name not in before]
    return inside, rest


def _turn(sch: Schedule, block: BlockRV, size: int) -> None:
    """Transpose tiles of `size` × `size`, and smaller ones where the last steps of the reduction fill none of these."""
    column, k = sch.get_loops(block)[-2:]
    (source,) = [region.buffer for region in sch.get(block).reads]
    dtype, steps = str(source.dtype), extent_of(sch, k)
    assert steps is not None
    columns, column = sch.split(column, [None, size])
    rest = steps % size
    if rest:
        row, other = _peel(sch, k, size)
        sch.fission(columns)
        smaller = turned_tile(rest, dtype, size // 2)
        if smaller:
            _turn(sch, other, smaller)
    else:
        row = sch.split(k, [None, size])[1]
    tiles = sch.get_loops(block)[-2]
    sch.reorder(columns, tiles, row, column)
    stage = sch.stage(block, tiles, source.name, "local", layout=swapped_last(source.ndim))
    intrinsic = transpose_intrinsic(size, 0, dtype)
    assert intrinsic is not None  # `turned_tile` has seen to it
    sch.tensorize(sch.get_loops(stage)[-2], intrinsic)
    sch.vectorize(column)
    sch.unroll(row)
