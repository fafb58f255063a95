"""Scan plan: how rows are shared out among blocks and threads that compute their running totals."""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.autosched.gpu.machine import USUAL_THREADS, VECTOR_BYTES, GpuMachine

_MOST_VECTORS: Final = 4  # of a thread: loads under way
_ROWS_A_BLOCK: Final = 8  # of a warp each
_BLOCKS: Final = 4  # for each multiprocessor, before a thread has more than one vector
_CHUNK_WAVES: Final = 1  # of blocks, where there is so much to do: each adds up the totals of those before it
_OPEN_TILES: Final = 8  # of a chunk, where it is not known how many there are
_LOOK_BACK_VECTORS: Final = 8  # of a thread in a single pass, at most: large tiles have few totals to wait for
_LOOK_BACK_EACH: Final = 32  # elements of a thread in a single pass, at most: each is in a register
_LOOK_BACK_WARPS: Final = 3  # of a block: one for each level of totals
_LOOK_BACK_THREADS: Final = 512  # of a block
_STAGES: Final = 3  # tiles under way: on an H200 0.86 of a copy; with 6 of half the size 0.84
_HELD: Final = 40  # registers of a thread for elements and totals of its vectors: of 64 that 928 threads may have
_BESIDE_TILES: Final = 4 << 10  # bytes of shared memory for all else
_WORD: Final = 4  # bytes: copies of smaller elements that begin anywhere go byte by byte
ADD_WARPS: Final = 4  # of a pipelined scan: they add up a tile
TOTALS_WARPS: Final = 8  # they add up the totals of tiles


class ScanPlan(NamedTuple):
    """How rows are shared out."""

    threads: int  # of a row, or of a chunk of it: whole warps
    vectors: int  # of a thread, of `lanes` elements each
    lanes: int
    rows: int = 1  # of a block, each of a warp
    tiles: int | None = None  # of a chunk; None where a block has the whole row
    looks_back: bool = False  # a block has one tile, and gets the totals of those before it from their blocks
    stages: int = 0  # tiles of a block that are under way, whose parts are the work of different warps
    blocks: int = 0  # that share out the tiles then

    @property
    def each(self) -> int:
        """Elements of a thread."""
        return self.vectors * self.lanes

    @property
    def tile(self) -> int:
        """Elements that are scanned in one step."""
        return self.threads * self.each


def scan_plan(
    length: int | None, rows: int | None, itemsize: int, machine: GpuMachine, is_copy: bool = False
) -> ScanPlan:
    """How so many rows of that length are scanned; `is_copy`: they lie in memory as they are."""
    lanes, usual, most = max(1, VECTOR_BYTES // itemsize), machine.threads(USUAL_THREADS), machine.threads(1024)
    is_busy = rows is None or rows >= machine.multiprocessors
    if length is not None and (is_busy or length <= most * lanes * _MOST_VECTORS):
        if is_busy and length <= machine.warp * lanes * _MOST_VECTORS:
            vectors = _power_above(-(-length // (machine.warp * lanes)))
            several = min(_ROWS_A_BLOCK, machine.max_threads // machine.warp)
            return ScanPlan(machine.warp, vectors, lanes, _power_dividing(rows, several))
        # Rows that are few get all threads that they can use; many rows get fewer barriers and threads that wait.
        threads = usual if is_busy and (rows is None or rows >= _BLOCKS * machine.multiprocessors) else most
        vectors = _MOST_VECTORS if is_busy else 1
        while not is_busy and threads * vectors * lanes < length and vectors < _MOST_VECTORS:
            vectors *= 2
        while threads > machine.warp and threads // 2 * vectors * lanes >= length:
            threads = machine.threads(threads // 2)
        return ScanPlan(threads, vectors, lanes)
    if is_busy:
        return ScanPlan(usual, _MOST_VECTORS, lanes)
    if length is None or rows is None:
        return ScanPlan(usual, _MOST_VECTORS, lanes, tiles=_OPEN_TILES)
    looking_back = machine.threads(_LOOK_BACK_THREADS)
    # What is read twice comes from L2 the second time, if that has room for it.
    if rows * length * itemsize > machine.l2 and looking_back >= _LOOK_BACK_WARPS * machine.warp:
        vectors = max(1, min(_LOOK_BACK_VECTORS, _LOOK_BACK_EACH // lanes))
        if is_copy and (rows == 1 or length * itemsize % VECTOR_BYTES == 0):
            held = min(vectors, _HELD // max(1, (lanes + 1) * itemsize // _WORD))
            plan = ScanPlan(looking_back, held, lanes, 1, 1, True, _STAGES, machine.multiprocessors)
            if _can_pipeline(plan, itemsize, machine):
                return plan
        return ScanPlan(looking_back, vectors, lanes, tiles=1, looks_back=True)
    vectors = _MOST_VECTORS
    while vectors > 1 and rows * length < _BLOCKS * machine.multiprocessors * usual * lanes * vectors:
        vectors //= 2
    wave = machine.blocks_at_once(usual)
    tiles = rows * length // (usual * lanes * vectors * wave * _CHUNK_WAVES)
    return ScanPlan(usual, vectors, lanes, tiles=1 << max(0, tiles.bit_length() - 1))


def _can_pipeline(plan: ScanPlan, itemsize: int, machine: GpuMachine) -> bool:
    """Whether a block has the threads and the shared memory of a pipelined scan, and copies that need nobody."""
    threads = plan.threads + (1 + ADD_WARPS + TOTALS_WARPS) * machine.warp
    bytes_under_way = plan.stages * plan.tile * itemsize
    has_room = bytes_under_way + _BESIDE_TILES <= machine.shared_memory and threads <= machine.max_threads
    return machine.has_bulk_copies and itemsize >= _WORD and plan.vectors > 0 and has_room


def _power_above(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def _power_dividing(value: int | None, most: int) -> int:
    """The largest power of two up to `most` that divides the value."""
    result = 1
    while value is not None and 2 * result <= most and value % (2 * result) == 0:
        result *= 2
    return result
