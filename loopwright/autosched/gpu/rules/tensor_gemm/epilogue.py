"""The epilogue: what is computed of the accumulators, and stored from registers.

    for w, hi, lo in threads:                          row w * 16 + h * 8 + hi, column jo * 8 + lo * 2 + e
        for jo, h, e in T.grid(N // 8, 2, 2):
            D[row, column] = f(C[jo, h, e])

A thread stores pairs of neighbours, where the columns of tensor cores are neighbours in memory.
"""

from __future__ import annotations

from loopwright.autosched.small_steps import extent_of, loops_below
from loopwright.schedule import BlockRV, LoopRV, Schedule


def result_block(sch: Schedule, block: BlockRV, epilogue: BlockRV | None, is_padded: bool) -> BlockRV:
    """The block that stores results, cell by cell, which are in registers until then."""
    if not is_padded and epilogue is None:
        return sch.cache_write(block, 0, "local")
    last = epilogue
    if last is None:
        last = sch.get_consumers(block)[0]
    elif is_padded:
        sch.compute_inline(sch.get_consumers(block)[0])
    sch.set_scope(block, 0, "local")
    return last


def store_results(
    sch: Schedule, last: BlockRV, tile: LoopRV, dimensions: tuple[int, int], is_transposed: bool
) -> list[LoopRV]:
    """Share out the results of a tile as the accumulators are; the loops of threads along z, y and x.

    `dimensions` are those of rows and columns of tensor cores in what `last` stores.
    """
    inner = [loop for loop in loops_below(sch, last, tile) if extent_of(sch, loop) != 1]
    rows, columns = inner if dimensions[0] < dimensions[1] else inner[::-1]
    w, h, hi = sch.split(rows, [None, 2, 8])
    jo, lo, e = sch.split(columns, [None, 4, 2])
    sch.reorder(w, hi, lo, jo, h, e)
    if is_transposed:
        sch.unroll(e)
    else:
        sch.vectorize(e)
    return [w, hi, lo]
