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
_STAGE_BYTES: Final = 64 << 10  # of a tile in shared memory: on an H200 0.86 of a copy, with 32 KiB and 6 stages 0.84
_STAGES: Final = 3  # tiles under way
_BESIDE_TILES: Final = 4 << 10  # bytes of shared memory for all else
_ROLES_THREADS: Final = 32 + 128 + 256 + _LOOK_BACK_THREADS


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
        stages = min(_STAGES, (machine.shared_memory - _BESIDE_TILES) // _STAGE_BYTES)
        if is_copy and machine.has_bulk_copies and stages == _STAGES and machine.max_threads >= _ROLES_THREADS:
            vectors = _STAGE_BYTES // (_LOOK_BACK_THREADS * VECTOR_BYTES)
            blocks = machine.multiprocessors
            return ScanPlan(_LOOK_BACK_THREADS, vectors, lanes, 1, 1, looks_back=True, stages=stages, blocks=blocks)
        vectors = max(1, min(_LOOK_BACK_VECTORS, _LOOK_BACK_EACH // lanes))
        return ScanPlan(looking_back, vectors, lanes, tiles=1, looks_back=True)
    vectors = _MOST_VECTORS
    while vectors > 1 and rows * length < _BLOCKS * machine.multiprocessors * usual * lanes * vectors:
        vectors //= 2
    wave = machine.blocks_at_once(usual)
    tiles = rows * length // (usual * lanes * vectors * wave * _CHUNK_WAVES)
    return ScanPlan(usual, vectors, lanes, tiles=1 << max(0, tiles.bit_length() - 1))


def _power_above(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def _power_dividing(value: int | None, most: int) -> int:
    """The largest power of two up to `most` that divides the value."""
    result = 1
    while value is not None and 2 * result <= most and value % (2 * result) == 0:
        result *= 2
    return result
