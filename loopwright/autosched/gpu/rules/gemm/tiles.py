"""Tiles: how much of a product a block of threads computes, how much a thread, and which choice should be fastest.

    rows    = pieces × threadIdx.y × V                one piece of a thread is V × V results, V a 16-byte vector
    columns = pieces × threadIdx.z × threadIdx.x × V

A warp is 4 threads along the columns by 8 along the rows, so that its loads of both operands from shared memory are
128 bytes and less, each bank once. The pieces of a thread lie a whole piece of the block apart for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Final, NamedTuple

from loopwright.autosched.gpu.machine import VECTOR_BYTES, GpuMachine

STAGES: Final = 2  # slabs in shared memory: one is read while the next one is filled
_SCHEDULERS: Final = 4  # of a multiprocessor
_OTHER_REGISTERS: Final = 24  # of a thread, for addresses and counters
# Measured on an H200, with all tiles below at sizes from 64 × 4096 to 8192 × 8192, and convolutions.
_OF_PEAK: Final = 0.79  # of the nominal peak, by multiply-adds that never wait
_FRAGMENT: Final = 3.0  # cycles in which shared memory hands out a vector a lane
_UNALIGNED: Final = 6.0  # instructions for a number that is loaded alone: address, condition, load and store
_UNALIGNED_LOADS: Final = 2.6  # cycles of the unit for memory for it
_START: Final = 1.5  # slabs: the first one arrives before anything is computed
_EXPOSED: Final = 0.03  # of the time that all loads would take from memory: L2 has most, and arithmetic hides them
_BESIDE: Final = 0.1  # of the shorter one of arithmetic and memory, which the longer one does not hide
_ALONE_IN_BARRIERS: Final = 0.82
_SPLIT: Final = 1.05  # a second kernel has to pay


class Side(NamedTuple):
    """How an operand lies in memory."""

    is_transposed: bool  # it runs along the reduction
    is_aligned: bool  # its rows begin at multiples of a vector


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` × `columns` results, computed in slabs of `depth` along the reduction."""

    x: int  # threads
    y: int
    z: int
    row_pieces: int  # of a thread, each one vector long
    column_pieces: int
    vector: int
    depth: int

    @property
    def rows(self) -> int:
        return self.row_pieces * self.y * self.vector

    @property
    def columns(self) -> int:
        return self.column_pieces * self.z * self.x * self.vector

    @property
    def threads(self) -> int:
        return self.x * self.y * self.z

    @property
    def of_thread(self) -> tuple[int, int]:
        """Rows and columns of a thread."""
        return self.row_pieces * self.vector, self.column_pieces * self.vector

    def shared(self, itemsize: int) -> int:
        """Bytes of shared memory."""
        padding = 2 * self.vector
        return STAGES * self.depth * (self.rows + self.columns + padding) * itemsize

    def registers(self, itemsize: int) -> int:
        """Registers of a thread: accumulators, two fragments of each operand, the slab that is loaded, and others."""
        rows, columns = self.of_thread
        loaded = ceil(self.depth * (self.rows + self.columns) / self.threads)
        values = rows * columns + rows + columns + loaded
        return values * max(1, itemsize // 4) + _OTHER_REGISTERS

    def resident(self, itemsize: int, machine: GpuMachine) -> int:
        """Blocks of a multiprocessor at once."""
        registers = -(-self.registers(itemsize) // 8) * 8
        blocks = machine.gpu.blocks_per_multiprocessor(self.threads, self.shared(itemsize), registers)
        while blocks > 1 and self._registers_of(blocks, machine) < registers:
            blocks -= 1
        return blocks

    def _registers_of(self, blocks: int, machine: GpuMachine) -> int:
        """How many a thread gets: each of the schedulers has a part of the warps, and of the registers."""
        warps = ceil(blocks * self.threads / machine.warp / _SCHEDULERS) * _SCHEDULERS
        return machine.gpu.registers_per_multiprocessor // (warps * machine.warp)

    def loads(self, extent: int, side: Side) -> bool:
        """Whether the threads share out a slab of `extent` rows or columns of an operand evenly."""
        if not side.is_aligned:
            along, reduced = (self.z, self.y) if side.is_transposed else (self.y, self.z)
            return extent % (along * self.x) == 0 and self.depth % reduced == 0
        if side.is_transposed:
            return extent % (self.z * self.y) == 0 and self.depth % (self.x * self.vector) == 0
        return extent % (self.z * self.x * self.vector) == 0 and self.depth % self.y == 0

    def text(self) -> str:
        return f"{self.rows} × {self.columns} × {self.depth}"


@dataclass(frozen=True)
class Size:
    """A product of `m` × `k` by `k` × `n`, `batch` times."""

    m: int
    n: int
    k: int
    batch: int
    itemsize: int
    rows: Side
    columns: Side

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * self.batch

    @property
    def bytes(self) -> int:
        """Of operands and result."""
        return (self.m * self.k + self.k * self.n + self.m * self.n) * self.batch * self.itemsize

    def split(self, splits: int) -> Size:
        """One product for each part of the reduction."""
        return replace(self, k=ceil(self.k / splits), batch=self.batch * splits)

    def blocks(self, tile: Tile) -> int:
        return ceil(self.m / tile.rows) * ceil(self.n / tile.columns) * self.batch


class Plan(NamedTuple):
    """How a product is computed."""

    tile: Tile
    group: int  # columns of tiles that are walked row by row before the next ones
    resident: int  # blocks of a multiprocessor
    scope: str  # of shared memory
    rows: Side
    columns: Side
    stores_vectors: bool
    splits: int  # parts of the reduction, which other blocks compute


def vector_of(itemsize: int) -> int:
    """Numbers of the widest load."""
    return max(1, VECTOR_BYTES // itemsize)


def tiles_for(size: Size, machine: GpuMachine) -> list[Tile]:
    """The tiles that the machine can run and the operands can be loaded for."""
    vector = vector_of(size.itemsize)
    most = min(255, machine.gpu.max_registers_per_thread)
    result = []
    for y, z, rows, columns in _SHAPES:
        for depth in (4 * vector, 8 * vector):
            tile = Tile(4, y, z, rows, columns, vector, max(depth, y))
            fits = tile.threads <= machine.max_threads and tile.resident(size.itemsize, machine) > 0
            if fits and tile.registers(size.itemsize) <= most and tile not in result:
                if tile.loads(tile.rows, size.rows) and tile.loads(tile.columns, size.columns):
                    result.append(tile)
    return result


# Threads along y and z, and pieces of a thread along rows and columns; sizes are those of 4-byte numbers.
_SHAPES: Final = (
    (16, 4, 2, 2),  # 128 × 128, 8 × 8 a thread
    (16, 4, 2, 4),  # 128 × 256
    (16, 4, 4, 2),  # 256 × 128
    (8, 4, 4, 2),  # 128 × 128, 16 × 8 a thread, 128 threads
    (8, 2, 4, 2),  # 128 × 64, 16 × 8 a thread, 64 threads
    (8, 2, 2, 4),  # 64 × 128, 8 × 16 a thread, 64 threads
    (16, 4, 1, 2),  # 64 × 128, 4 × 8 a thread
    (16, 4, 1, 1),  # 64 × 64, 4 × 4 a thread
    (8, 4, 2, 2),  # 64 × 128, 8 × 8 a thread, 128 threads
    (16, 2, 2, 2),  # 128 × 64
    (8, 2, 2, 2),  # 64 × 64, 64 threads
    (8, 4, 1, 1),  # 32 × 64, 4 × 4 a thread
    (4, 4, 1, 2),  # 16 × 128, 4 × 8 a thread, 64 threads
    (2, 8, 1, 2),  # 8 × 256
    (16, 2, 2, 1),  # 128 × 32, 8 × 4 a thread, 128 threads
    (16, 1, 2, 1),  # 128 × 16, 8 × 4 a thread, 64 threads
)


def seconds(tile: Tile, size: Size, machine: GpuMachine, splits: int = 1) -> float:
    """How long the product takes with that tile: the multiprocessor that has most blocks is the last one ready."""
    if splits > 1:
        parts = splits * size.m * size.n * size.batch * size.itemsize
        summed = machine.launch + 2 * parts / machine.bandwidth_of(parts)
        return _SPLIT * (seconds(tile, size.split(splits), machine) + summed)
    blocks = size.blocks(tile)
    most = max(1, tile.resident(size.itemsize, machine))
    waves, rest = divmod(ceil(blocks / machine.multiprocessors), most)
    together = waves * most / occupied(tile, most)
    if rest:
        together += rest / occupied(tile, rest)
    steps = tile.depth * (ceil(size.k / tile.depth) + _START)
    words = max(1, size.itemsize // 4)
    rate = _OF_PEAK * machine.flops / machine.multiprocessors * efficiency(tile, size)
    arithmetic = together * 2.0 * tile.rows * tile.columns * steps * words / rate
    read = (tile.rows + tile.columns) * size.k * size.itemsize * blocks
    computed = arithmetic + _EXPOSED * read / machine.bandwidth
    memory = size.bytes / machine.bandwidth_of(size.bytes)
    return machine.launch + max(computed, memory) + _BESIDE * min(computed, memory)


def efficiency(tile: Tile, size: Size) -> float:
    """How many of the slots in which a scheduler may issue are multiply-adds.

    Fragments, loads of a slab and stores to shared memory take slots of their own, and time of the one unit for memory
    that four schedulers share. Neither hides all of the other: hence a mean of the two that is near the longer one.
    """
    words = max(1, size.itemsize // 4)
    rows, columns = tile.of_thread
    computed = rows * columns * words
    fragments = (rows + columns) / tile.vector
    issue, memory = computed + fragments, fragments * _FRAGMENT
    for extent, side in ((tile.rows, size.rows), (tile.columns, size.columns)):
        each = tile.depth * extent / tile.threads  # numbers that a thread loads of a slab
        if side.is_aligned:
            issue += each / tile.depth * (1 / tile.vector + (1.0 if side.is_transposed else 1 / tile.vector))
            memory += each / tile.depth * 2 * words
        else:
            issue += each / tile.depth * _UNALIGNED
            memory += each / tile.depth * _UNALIGNED_LOADS * words
    busy: float = (issue**4 + (_SCHEDULERS * memory) ** 4) ** 0.25
    return computed / busy


def occupied(tile: Tile, blocks: int) -> float:
    """The share of its slots that a multiprocessor uses which has so many blocks: other warps hide what one waits for.

    Two warps of a scheduler are nearly enough, because each has several multiply-adds that wait for nothing. One block
    with fewer waits at each barrier.
    """
    warps = blocks * tile.threads / 32 / _SCHEDULERS
    if warps >= 2:
        return min(1.0, 0.86 + 0.05 * warps)
    share = 0.76 + 0.1 * warps if warps >= 1 else 0.86 * warps**1.25
    return share * (_ALONE_IN_BARRIERS if blocks == 1 else 1.0)
