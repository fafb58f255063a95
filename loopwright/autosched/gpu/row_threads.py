"""Row threads: how many threads share a row, how many rows a block of threads has, and where a row is kept.

row of    16 floats    4 threads × 4, 32 rows a block          one 16-byte load each, of four rows together
row of   500 floats    32 threads × 16, 4 rows a block         a warp needs no barrier
row of  1000 floats    128 threads × 8                         more blocks: some load while others compute and store
row of  8192 floats    512 threads × 16                        registers
row of 50257 floats    1024 threads × 50                       all registers of a multiprocessor
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.gpu.machine import IN_FLIGHT, GpuMachine

REGISTERS: Final = 32  # 4-byte values of a row that a thread keeps: half of the registers of 1024 threads
_OF_A_WARP: Final = 16  # values of a thread, where a warp has a row
_USUAL: Final = 16  # values of a thread in a long row: several loads in flight, and registers left for as many threads
_OF_SHORT: Final = 8  # of a shorter row
_LONG: Final = 4096  # elements of a long row
_BLOCK: Final = 128  # threads of a block that has several rows
_WAVES_OF_ROWS: Final = 2  # of blocks, before a thread has a part of several rows
# Threads of a block that is alone on its multiprocessor, and the values that each of them can keep.
_ALONE_THREADS: Final = 1024
_ALONE_VALUES: Final = 52
LONGEST_KEPT: Final = _ALONE_THREADS * _ALONE_VALUES  # 4-byte values of a row in registers


class RowThreads(NamedTuple):
    """How a row is shared out."""

    threads: int  # along the row
    rows: int  # in a block
    lanes: int  # neighbours of a row that a thread loads at once
    scope: str  # where a row is kept: "local" (registers), or "" for nowhere
    steps: int | None  # of lanes × threads that the row takes; None where its length is not known
    several: int = 1  # rows that a thread has a part of, under way together

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows


def row_threads(length: int | None, itemsize: int, kept: int, count: int | None, machine: GpuMachine) -> RowThreads:
    """How `count` rows of `length` values are shared out, of which `kept` arrays live at once."""
    if length is None:
        return RowThreads(machine.threads(256), 1, 1, "", None)
    lanes = machine.lanes(itemsize)
    while length % lanes:
        lanes //= 2
    words = max(1, itemsize // 4) * max(1, kept)
    in_warp = machine.warp * _OF_A_WARP // words
    if length <= in_warp:
        threads = 1
        while threads < machine.warp and threads * lanes < length:
            threads *= 2
        rows = max(1, min(_BLOCK, machine.max_threads) // threads)
        if count is not None:
            while rows > 1 and ceil(count / rows) < machine.multiprocessors:
                rows //= 2
        steps, several = ceil(length / (threads * lanes)), 1
        enough = _WAVES_OF_ROWS * machine.blocks_at_once(rows * threads)
        while count is not None and 2 * several * steps <= IN_FLIGHT:
            if count % (2 * several * rows) or count < 2 * several * rows * enough:
                break
            several *= 2
        return RowThreads(threads, rows, lanes, "local", steps, several)
    usual = max(1, (_USUAL if length >= _LONG else _OF_SHORT) // words)
    threads = machine.threads(max(2 * machine.warp, _round_up(ceil(length / usual), machine.warp)))
    for count, values in ((threads, REGISTERS), (min(_ALONE_THREADS, machine.max_threads), _ALONE_VALUES)):
        if ceil(length / (count * lanes)) * lanes * words <= values:
            return RowThreads(count, 1, lanes, "local", ceil(length / (count * lanes)))
    return RowThreads(threads, 1, lanes, "", ceil(length / (threads * lanes)))


def _round_up(value: int, to: int) -> int:
    return -(-value // to) * to
