"""Packed panels whose width is a sampled number, as steps of the trace.

    P[k, j] = B[k, j]        →        P[j // 16, k, j % 16] = B[k, j]         panels of 16, if the sample says 16

A layout in a trace is text, and a text holds no sample: these two steps work it out when they run. So a replay with
another width lays out other panels.
"""

from __future__ import annotations

from loopwright.autosched.layouts import in_panels
from loopwright.schedule import BlockRV, LoopRV, Schedule, composite


@composite
def lay_out_panels(sch: Schedule, block: BlockRV, width: int, *, rank: int, dimension: int) -> None:
    """What a copy writes lies in panels of `width` along one dimension; the copy is done panel by panel."""
    sch.transform_layout(block, ("write", 0), in_panels(rank, dimension, int(width)))
    loops = sch.get_loops(block)
    panel, inner = sch.split(loops[dimension], [None, int(width)])
    sch.reorder(panel, *[loop for loop in loops if loop is not loops[dimension]], inner)


@composite
def stage_panels(
    sch: Schedule, block: BlockRV, loop: LoopRV, width: int, *, buffer: str, rank: int, dimension: int, lanes: int
) -> BlockRV:
    """Copy what `block` reads of a buffer in one iteration of `loop` into panels of `width`; the copy's block.

    Where panels lie along the last dimension, a row of one is copied as vectors; else `width` rows side by side.
    """
    size = int(width)
    copy = sch.stage(block, loop, buffer, layout=in_panels(rank, dimension, size))
    loops = sch.get_loops(copy)[-rank:]
    own, others = loops[dimension], [item for item in loops if item is not loops[dimension]]
    panel, row = sch.split(own, [None, size])
    sch.reorder(panel, *others, row)
    if dimension == rank - 1 and size % lanes == 0:
        vector, lane = sch.split(row, [None, lanes])
        sch.unroll(vector)
        sch.vectorize(lane)
    elif size <= MOST_UNROLLED:
        sch.unroll(row)
    return copy


MOST_UNROLLED = 32
