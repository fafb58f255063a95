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
_TILES_EACH: Final = 2  # blocks for each multiprocessor, before tiles of columns are as wide as a warp
_MOST_THREADS: Final = 1024  # of a block, where there are few: those that combine what chunks left
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
        # A wave of blocks, or nearly two: more parts would take the one block longer that joins them.
        steps = _power_below(results * length // (step * (wanted // _WAVES)))
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
    held: int = 16,
) -> ColumnPlan:
    """How `others` times `columns` results of `rows` members each are shared out; a thread has `held` bytes of them."""
    most = machine.threads(min(_MOST_THREADS, machine.static_shared_memory // held))  # which go through shared memory
    threads, x = min(most, machine.threads(USUAL_THREADS)), machine.warp
    several = IN_FLIGHT if lanes > 1 else 2 * IN_FLIGHT
    if columns is None or others is None:
        x = min(x, ceil((columns or x * lanes) / lanes))
        return ColumnPlan(x, _rows_of_threads(threads // x, rows), lanes, several, None)
    x = min(x, ceil(columns / lanes))
    is_small = rows is not None and rows * columns * others * itemsize <= machine.l2 // 2
    # Narrower tiles are more blocks; a line of L2 is still read at once. Memory likes longer parts of a row.
    while (is_small or not may_chunk) and x % 2 == 0 and x * lanes * itemsize >= 2 * machine.line:
        if others * ceil(columns / (x * lanes)) >= _TILES_EACH * machine.multiprocessors:
            break
        x //= 2
    x = _dividing(ceil(columns / lanes), x)
    blocks = others * ceil(columns / (x * lanes))
    is_short = rows is not None and rows * x * lanes * itemsize <= _ALONE
    if blocks < machine.multiprocessors and (is_short or not may_chunk):
        threads, several = most, 2 * IN_FLIGHT
    y = _rows_of_threads(threads // x, rows)
    while 2 * x * y <= threads and x * lanes < columns:
        if x * y >= machine.warp and others * ceil(columns / (2 * x * lanes)) < machine.multiprocessors:
            break
        x *= 2
    while several > 1 and rows is not None and several * y > rows:
        several //= 2
    step, blocks = y * several, others * ceil(columns / (x * lanes))
    if not may_chunk:
        return ColumnPlan(x, y, lanes, several, None)
    if rows is None:
        return ColumnPlan(x, y, lanes, several, step * _OPEN_STEPS if blocks < machine.multiprocessors else None)
    wave = machine.blocks_at_once(threads)
    if is_short or blocks >= (machine.multiprocessors if is_small else wave):
        return ColumnPlan(x, y, lanes, several, None)
    steps = _power_below(rows * blocks // (step * wave))
    return ColumnPlan(x, y, lanes, several, step * steps if step * steps < rows else None)


def _rows_of_threads(most: int, rows: int | None) -> int:
    """A power of two of them, each with some rows."""
    y = _power_below(most)
    while rows is not None and y > 1 and y * _ROWS_EACH > rows:
        y //= 2
    return y


def _dividing(count: int, most: int) -> int:
    """The largest divisor of the count up to `most`, unless it is much smaller: tiles are whole then."""
    return next((x for x in range(most, most // 2, -1) if count % x == 0), most)


def _power_below(value: int) -> int:
    """The largest power of two up to `value`; 1 at least."""
    return 1 << max(0, value.bit_length() - 1)
