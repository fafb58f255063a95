"""The second kernel of a product whose sum was cut into parts (split-K): it adds up the parts, cell by cell.

for i, j: C[i, j] = sum over p of parts[p, i, j]         a vector of neighbours a thread, then what follows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.autosched.gpu.machine import USUAL_THREADS, GpuMachine
from loopwright.autosched.gpu.rules.gemm.tiles import vector_of
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.small_steps import extent_of, fused, loop_of_axis, loops_below
from loopwright.schedule import BlockRV, LoopRV, Schedule

_MOST_UNROLLED_PARTS: Final = 16


def add_parts(
    sch: Schedule, block: BlockRV, after: Sequence[BlockRV], splits: int, dtype: str, machine: GpuMachine
) -> None:
    """Each thread adds up the parts of a vector of results, which are neighbours in memory."""
    if after:
        store = after[0]
        sch.set_scope(block, 0, "local")
    else:
        store = sch.cache_write(block, 0, "local")
    lanes = vector_of(bytes_of(dtype))
    loops = list(sch.get_loops(store))
    lane: list[LoopRV] = []
    if (extent_of(sch, loops[-1]) or 1) % lanes == 0:
        loops[-1], *lane = sch.split(loops[-1], [None, lanes])
    cells, thread = sch.split(fused(sch, loops), [None, machine.threads(USUAL_THREADS // 2)])
    sch.compute_at(block, thread)
    inner = loops_below(sch, block, thread)
    part = loop_of_axis(sch, block, 0, inner)
    assert part is not None
    own = [loop for loop in inner if loop.var is not part.var and extent_of(sch, loop) != 1]
    sch.reorder(part, *own)
    if splits <= _MOST_UNROLLED_PARTS:
        sch.unroll(part)
    for loop in (*own, *lane):
        sch.vectorize(loop)
    sch.bind(cells, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
