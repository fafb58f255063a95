"""The epilogue: what is computed of the accumulators, and how it gets to memory.

    for chunk in columns // 64:                             stages, unrolled
        for w, hi, lo in threads:                           role mma: row w * 16 + h * 8 + hi, column jo * 8 + lo * 2
            for jo, h, e in T.grid(8, 2, 2):
                D_shared[row, column] = f(C[chunk * 8 + jo, h, e])
        D[…] = D_shared[…]                                  role store: a box

Boxes go to memory while tensor cores compute the next tile. Where results do not lie in rows that are boxes, threads
store pairs of neighbours from registers.
"""

from __future__ import annotations

from typing import Final

from loopwright.autosched.facts import element_strides
from loopwright.autosched.gpu.rules.tensor_gemm.matmul import TMA_BYTES
from loopwright.autosched.small_steps import extent_of, loops_below
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, LoopRV, Schedule

_LINES: Final = (128, 64, 32)  # bytes of a row of a box: the swizzles that there are
_STORE: Final = "store"


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


def chunk_of(columns: int, itemsize: int) -> int:
    """The columns of a tile of results that go through shared memory at once; 0 where there is no such box."""
    for line in _LINES:
        if line % itemsize == 0 and columns * itemsize >= 2 * line and columns * itemsize % line == 0:
            return line // itemsize
    return 0


def is_tensor(buffer: Buffer) -> bool:
    """Whether boxes of the result can be stored: its rows begin at multiples of 16 bytes."""
    *outer, last = element_strides(buffer)
    itemsize = buffer.dtype.nbytes
    return last == 1 and all([stride is not None and stride * itemsize % TMA_BYTES == 0 for stride in outer])


def store_results(
    sch: Schedule, last: BlockRV, tile: LoopRV, tile_rows: int, dimensions: tuple[int, int], is_transposed: bool
) -> list[LoopRV]:
    """Share out the results of a tile as the accumulators are; the loops of threads along z, y and x.

    `dimensions` are those of rows and columns of tensor cores in what `last` stores. There are `tile_rows` in a tile,
    of which a small result has fewer; its threads are as many.
    """
    inner = [loop for loop in loops_below(sch, last, tile) if extent_of(sch, loop) != 1]
    rows, columns = inner if dimensions[0] < dimensions[1] else inner[::-1]
    w, h, hi = sch.split(rows, [tile_rows // 16, 2, 8])
    jo, lo, e = sch.split(columns, [None, 4, 2])
    sch.reorder(w, hi, lo, jo, h, e)
    if is_transposed:
        sch.unroll(e)
    else:
        sch.vectorize(e)
    return [w, hi, lo]


class StagedResults:
    """Results that go through shared memory, `chunk` columns at once."""

    def __init__(self, sch: Schedule, last: BlockRV, chunk: int, slots: int) -> None:
        self.sch, self.last, self.chunk, self.slots = sch, last, chunk, slots
        self.copy = sch.cache_write(last, 0, "shared.dyn")

    def store(self, tile: LoopRV, tile_rows: int) -> list[LoopRV]:
        """As `store_results`; a box of each chunk follows."""
        sch = self.sch
        rows, columns = [loop for loop in loops_below(sch, self.last, tile) if extent_of(sch, loop) != 1]
        self.chunks, columns = sch.split(columns, [None, self.chunk])
        w, h, hi = sch.split(rows, [tile_rows // 16, 2, 8])
        jo, lo, e = sch.split(columns, [None, 4, 2])
        sch.reorder(self.chunks, w, hi, lo, jo, h, e)
        sch.reverse_compute_at(self.copy, self.chunks)
        sch.vectorize(e)
        return [w, hi, lo]

    def annotate(self) -> None:
        """Another warp stores the boxes."""
        sch = self.sch
        sch.unroll(self.chunks)
        sch.annotate(self.chunks, "warp_role_stages", self.slots)
        sch.annotate(loops_below(sch, self.copy, self.chunks)[0], "warp_role", _STORE)


def staged_bytes(rows: int, columns: int, itemsize: int) -> tuple[int, int]:
    """How many chunks of results are in shared memory at once, and their bytes."""
    chunk = chunk_of(columns, itemsize)
    slots = 2 if rows <= 128 else 1
    return (slots, slots * rows * chunk * itemsize) if chunk else (0, 0)


__all__ = ["StagedResults", "chunk_of", "is_tensor", "result_block", "staged_bytes", "store_results"]
