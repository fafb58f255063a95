"""Reduction plans: how many blocks of threads share a reduction, and what each thread of them does.

everything, 2^26 floats     2,048 blocks of 256 threads, 8 × 4 loads of 16 bytes each; one block combines the parts
everything, 2^14 floats     one block
columns, 8192 × 8192        64 × 32 blocks of 32 × 8 threads, 8 × 4 loads of 16 bytes each, then 64 blocks
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.gpu.machine import IN_FLIGHT, USUAL_THREADS, GpuMachine

_WAVES: Final = 2  # of blocks, where there is so much to do: the last one is short then
_ALONE: Final = 256 << 10  # bytes that one block reads in less time than a second kernel takes to start
_OPEN_STEPS: Final = 8  # of a block, where it is not known how many there are
_ROWS_EACH: Final = 8  # rows for a thread, at least, where threads share a column


class RowPlan(NamedTuple):
    """How members that are neighbours in memory are reduced to one result."""

    threads: int
    lanes: int  # neighbours that a thread loads at once
    several: int  # loads under way
    chunk: int | None  # members that one block reduces, of a row that several share; None where it is one block's

    @property
    def width(self) -> int:
        """Members that a block takes in one step."""
        return self.threads * self.lanes


def row_plan(
    length: int | None, lanes: int, itemsize: int, results: int | None, machine: GpuMachine, may_chunk: bool = True
) -> RowPlan:
    """How `results` times `length` members are shared out."""
    threads = machine.threads(USUAL_THREADS)
    several = IN_FLIGHT if lanes > 1 else 2 * IN_FLIGHT
    step = threads * lanes * several
    wanted = _WAVES * machine.blocks_at_once(threads)
    if length is None:
        chunked = may_chunk and results is not None and results < machine.multiprocessors
        return RowPlan(threads, lanes, several, step * _OPEN_STEPS if chunked else None)
    is_small = length * itemsize <= _ALONE and (results or 1) * length * itemsize <= machine.multiprocessors * _ALONE
    if may_chunk and not is_small and results is not None and results < wanted // _WAVES:
        steps = _power_below(results * length // (step * wanted))
        if steps * step < length:
            return RowPlan(threads, lanes, several, step * steps)
    enough = wanted * USUAL_THREADS
    while step < length and 2 * threads <= machine.max_threads and (results or wanted) * threads < enough:
        threads, step = 2 * threads, 2 * step
    while threads > machine.warp and threads * lanes >= 2 * length:
        threads //= 2
    while several > 1 and threads * lanes * (several // 2) >= length:
        several //= 2
    return RowPlan(threads, lanes, several, None)


class ColumnPlan(NamedTuple):
    """How the members of many results are reduced that are neighbours in memory, row by row."""

    x: int  # threads along columns
    y: int  # threads along rows
    lanes: int  # columns of a thread
    several: int  # rows that a thread has under way
    chunk: int | None  # rows that one block reduces, where several share them


def column_plan(
    rows: int | None,
    columns: int | None,
    others: int | None,
    lanes: int,
    itemsize: int,
    machine: GpuMachine,
    may_chunk: bool = True,
) -> ColumnPlan:
    """How `others` times `columns` results of `rows` members each are shared out."""
    threads = machine.threads(USUAL_THREADS)
    x = machine.warp
    if columns is not None:
        x = min(x, ceil(columns / lanes))
    y = _power_below(threads // x)
    while rows is not None and y > 1 and y * _ROWS_EACH > rows:
        y //= 2
    if columns is not None and y * x < threads:
        while 2 * x * y <= threads and x * lanes < columns:
            x *= 2
    several = IN_FLIGHT if lanes > 1 else 2 * IN_FLIGHT
    while several > 1 and rows is not None and several * y > rows:
        several //= 2
    if not may_chunk:
        return ColumnPlan(x, y, lanes, several, None)
    step = y * several
    if rows is None:
        blocks = None if columns is None or others is None else others * ceil(columns / (x * lanes))
        is_chunked = blocks is not None and blocks < machine.multiprocessors
        return ColumnPlan(x, y, lanes, several, step * _OPEN_STEPS if is_chunked else None)
    if columns is None or others is None:
        return ColumnPlan(x, y, lanes, several, None)
    blocks = others * ceil(columns / (x * lanes))
    wave = machine.blocks_at_once(threads)
    size = rows * columns * others * itemsize
    is_enough = blocks >= (machine.multiprocessors if size <= machine.l2 // 4 else wave)
    if is_enough or rows * x * lanes * itemsize * min(blocks, 4) <= _ALONE:
        return ColumnPlan(x, y, lanes, several, None)
    steps = _power_below(rows * blocks // (step * _WAVES * wave))
    return ColumnPlan(x, y, lanes, several, step * steps if step * steps < rows else None)


def _power_below(value: int) -> int:
    """The largest power of two up to `value`; 1 at least."""
    return 1 << max(0, value.bit_length() - 1)
