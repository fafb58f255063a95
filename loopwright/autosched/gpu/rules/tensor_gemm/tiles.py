"""Tiles: how much of a product a block computes, slab by slab, and which choice should be fastest.

rows    = 64 × warpgroups          each multiplies 64 rows by all columns: columns / 2 accumulators a thread
columns = 16 … 256
slab    = 128 bytes along K        `stages` of them in shared memory
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.rules.tensor_gemm.epilogue import staged_bytes

SLAB_BYTES: Final = 128  # of a row of a tile: the widest swizzle
GROUP_ROWS: Final = 64  # of a warpgroup
GROUP_THREADS: Final = 128
_WARP: Final = 32  # which loads
_BARRIERS: Final = 1024  # bytes of shared memory for barriers, and before tiles that begin at multiples of 1024
_MOST_ACCUMULATORS: Final = 128  # of a thread
_REGISTERS_BESIDE: Final = 40  # of a thread: addresses, counters, results on their way
_MOST_STAGES: Final = 12
_LEAST_STAGES: Final = 2

# Rates of an H200: of cuBLAS and of the kernels that this rule makes.
_OF_TENSOR_PEAK: Final = 0.80  # of the nominal rate, by a kernel that does nothing but multiply: power is the limit
_TENSOR_CLOCK: Final = 1.755e9
_PORT: Final = 128.0  # bytes a cycle that shared memory of a multiprocessor reads or writes
_L2: Final = 9.5e12  # bytes a second, for tiles that several multiprocessors load at about the same time
_LATENCY: Final = 420.0  # cycles of a slab for a block by itself: a wait, four multiplications one after the other
_LOADED: Final = 48.0  # bytes a cycle that a multiprocessor alone gets from L2
_FIRST_SLAB: Final = 1.2e-6  # seconds until the first slab is there
_STORE: Final = 24.0  # cycles in which a warpgroup stores a pair of columns of its 64 rows
_STAGE: Final = 6.0  # where they go to shared memory, from where another warp stores them
_TILE: Final = 600.0  # cycles between two tiles of a block
_SPLIT_PAYS: Final = 1.1  # a second kernel has to pay
_STORE_ALONE: Final = 0.55  # of the store of results that is not hidden where a multiprocessor has two blocks


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` × `columns` results; so many blocks are on a multiprocessor at once."""

    rows: int
    columns: int
    stages: int
    resident: int
    staged: int = 0  # bytes of results on their way to memory
    slots: int = 0  # chunks of results that are there at once; 0: threads store them

    @property
    def groups(self) -> int:
        """Warpgroups."""
        return self.rows // GROUP_ROWS

    @property
    def threads(self) -> int:
        return self.groups * GROUP_THREADS + (2 * _WARP if self.slots else _WARP)

    @property
    def accumulators(self) -> int:
        """Of a thread."""
        return self.columns // 2

    @property
    def slab(self) -> int:
        """Bytes of both operands."""
        return (self.rows + self.columns) * SLAB_BYTES

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.stages * self.slab + self.staged + _BARRIERS

    def text(self) -> str:
        return f"{self.rows} × {self.columns}"


@dataclass(frozen=True)
class Size:
    """A product of `m` × `k` by `k` × `n`, `batch` times."""

    m: int
    n: int
    k: int
    batch: int
    itemsize: int
    result_itemsize: int

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k * self.batch

    @property
    def bytes(self) -> int:
        """Of operands and result."""
        operands = (self.m * self.k + self.k * self.n) * self.itemsize
        return (operands + self.m * self.n * self.result_itemsize) * self.batch

    def split(self, splits: int) -> Size:
        """One product of accumulators for each part of the reduction."""
        return replace(self, k=ceil(self.k / splits), batch=self.batch * splits, result_itemsize=4)

    @property
    def slab(self) -> int:
        """Elements along K."""
        return SLAB_BYTES // self.itemsize

    def grid(self, tile: Tile) -> tuple[int, int]:
        """Tiles along rows and columns."""
        return ceil(self.m / tile.rows), ceil(self.n / tile.columns)

    def tiles(self, tile: Tile) -> int:
        rows, columns = self.grid(tile)
        return rows * columns * self.batch


def tiles_for(
    size: Size, machine: GpuMachine, rows_multiple: int = 1, columns_multiple: int = 1, stores_boxes: bool = False
) -> list[Tile]:
    """The tiles that the machine can run, each with as many stages as fit.

    Rows and columns are multiples of the given numbers: those of operands that lie along them in memory.
    """
    result = []
    for groups in (1, 2, 4):
        for columns in (16, 32, 48, 64, 96, 128, 160, 192, 224, 256):
            for resident in (1, 2):
                rows = groups * GROUP_ROWS
                if columns // 2 > _MOST_ACCUMULATORS or rows % rows_multiple or columns % columns_multiple:
                    continue
                slots, staged = staged_bytes(rows, columns, size.result_itemsize) if stores_boxes else (0, 0)
                tile = Tile(rows, columns, 0, resident, staged, slots)
                room = machine.gpu.shared_memory_per_multiprocessor // resident - 1024  # 1 KiB is the system's
                room = min(room, machine.shared_memory) - _BARRIERS - staged
                slabs = ceil(size.k / size.slab)
                stages = min(room // tile.slab, _MOST_STAGES, max(_LEAST_STAGES, slabs * 2))
                registers = machine.gpu.registers_per_multiprocessor // resident // tile.threads
                fits = tile.threads <= machine.max_threads and registers >= tile.accumulators + _REGISTERS_BESIDE
                if stages >= _LEAST_STAGES + resident - 1 and fits:
                    result.append(replace(tile, stages=stages))
    return result


def seconds(tile: Tile, size: Size, machine: GpuMachine, splits: int = 1) -> float:
    """How long the product takes with that tile: the multiprocessor that has most tiles is the last one ready."""
    if splits > 1:
        parts = 4 * splits * size.m * size.n * size.batch
        summed = machine.launch + 2 * parts / machine.bandwidth_of(parts)
        return _SPLIT_PAYS * (seconds(tile, size.split(splits), machine) + summed)
    slabs = ceil(size.k / size.slab)
    tiles = size.tiles(tile)
    most = ceil(tiles / machine.multiprocessors)  # tiles of a multiprocessor
    busy = min(tiles, machine.multiprocessors)
    at_once = min(tile.resident, most)
    computed = slabs * max(slab_cycles(tile, size, machine), _LATENCY / at_once) / _TENSOR_CLOCK
    read = tile.slab * slabs
    loaded = max(read * busy / _L2, read / (_LOADED * _TENSOR_CLOCK))
    pairs = tile.groups * tile.columns / 2
    stored = ((_STAGE if tile.slots else _STORE) * pairs + _TILE) / _TENSOR_CLOCK
    each = max(computed, loaded) + stored * (_STORE_ALONE if at_once > 1 else 1.0)
    memory = size.bytes / machine.bandwidth_of(size.bytes)
    return machine.launch + _FIRST_SLAB + max(most * each, memory)


def slab_cycles(tile: Tile, size: Size, machine: GpuMachine) -> float:
    """Cycles in which the warpgroups of a multiprocessor multiply a slab: of tensor cores, or of shared memory."""
    rate = _OF_TENSOR_PEAK * machine.matrix_flops * (2 / size.itemsize) / machine.multiprocessors / _TENSOR_CLOCK
    arithmetic = 2.0 * tile.rows * tile.columns * size.slab / rate
    reads = tile.groups * (GROUP_ROWS + tile.columns) * SLAB_BYTES
    return max(arithmetic, reads / _PORT)
