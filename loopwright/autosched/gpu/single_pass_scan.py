"""Single-pass scan: running totals of long rows that read memory once, by decoupled look-back.

    for block in blockIdx.x:
        tile = the next ticket                             a tile's predecessors have all been started
        own = total of the tile                            which stays in registers
        publish totals[tile] = own
        before = groups² ∘ groups ∘ totals before the tile         awaited, 32 at once
        out[…] = before ∘ running totals

Totals are handed on by status words (`ir/machine_intrinsics.py`), one half of which says that the other half is there;
values of 8 bytes are two. The last tile of every 32 publishes the total of these 32 as soon as it knows it, and the
last of every 1,024 that of these: a block waits for 31 totals of each of three levels, each of which has a warp of its
own, and for one more of the last level with every 1,024 tiles. No total waits for what is before its group, so there is
no chain along the row. A small kernel clears the status words first.

Merrill and Garland ("Single-pass parallel prefix scan with decoupled look-back", 2016) take whichever totals are there
first, so sums of floats may differ from run to run. Here the grouping depends on sizes alone.
"""

from __future__ import annotations

from typing import Final

from loopwright.autosched.facts import const as number_of
from loopwright.autosched.gpu.scan_tile import Memory, TileKernels
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import join_warp
from loopwright.ir import BufferLoad, Expr, Max, Min, const, logical_and
from loopwright.ir.intrinsics import address_of, reinterpret
from loopwright.ir.ir_builder import BufferVar
from loopwright.ir.machine_intrinsics import await_published, publish, take_ticket

_LEVELS: Final = 3  # the last of which has as many totals as there are
_PRESENT: Final = 1 << 32  # the bit of a word that says that its lower half is there


class SinglePass(TileKernels):
    """Writes the two kernels: what clears the status words, and the scan."""

    def write(self) -> None:
        """A tile for each block."""
        ib, plan = self.ib, self.plan
        self.count_tiles(_LEVELS)
        with ib.new_scope():
            self.clear_status()
        with ib.new_scope():
            run_on(ib, "blockIdx.x", self.row_count * self.tiles)
            self.ticket = ib.allocate("int32", (1,), "ticket", scope="shared")
            self.parts = ib.allocate(self.dtype, (len(self.counts),), "parts", scope="shared")
            memory = Memory(self)
            with ib.new_scope():
                (thread,) = self.threads()
                with ib.if_scope(thread.equal(0)):
                    self.ticket[0] = take_ticket(address_of(element_of(self.counter, const(0))))
            with ib.new_scope():
                (thread,) = self.threads()
                row, tile = self._tile()
                self.scan_tile(memory, (thread,), row, tile * plan.tile)
            with ib.new_scope():
                (thread,) = self.threads()
                self._look_back(memory, thread, *self._tile())
            with ib.new_scope():
                (thread,) = self.threads()
                row, tile = self._tile()
                memory.total[thread, 0] = self.parts[len(self.counts) - 1]
                for level in reversed(range(len(self.counts) - 1)):
                    memory.total[thread, 0] = self.scan.join(memory.total[thread, 0], self.parts[level])
                self.store_tile(memory, (thread,), row, tile * plan.tile)

    def count_tiles(self, levels: int) -> None:
        """Tiles, and the status words of so many levels at most."""
        ib, rows, length = self.ib, number_of(self.scan.rows), number_of(self.scan.length)
        assert rows is not None and length is not None
        self.row_count, self.tiles = rows, -(-length // self.plan.tile)  # of a row
        self.words = -(-self.dtype.bits // 32)  # of a total
        self.counts = [self.tiles]
        while len(self.counts) < levels and self.counts[-1] > self.warp:
            self.counts.append(-(-self.counts[-1] // self.warp))
        self.sizes = [rows * count * self.words for count in self.counts]
        self.status = [ib.allocate("uint64", (size,), "status") for size in self.sizes]
        self.counter = ib.allocate("int32", (1,), "counter")

    def clear_status(self) -> None:
        """Nothing is published, and the first ticket is 0."""
        ib = self.ib
        block = run_on(ib, "blockIdx.x", -(-self.sizes[0] // self.plan.threads))
        (thread,) = self.threads()
        at = block * self.plan.threads + thread
        for status, size in zip(self.status, self.sizes, strict=True):
            with ib.if_scope(at < size):
                status[at] = const(0, "uint64")
        with ib.if_scope(at.equal(0)):
            self.counter[0] = const(0)

    def _tile(self) -> tuple[Expr, Expr]:
        """The row and the tile of the block, which the thread reads once."""
        rows = self.row_count
        ticket = Max(Min(self.ticket[0], const(rows * self.tiles - 1)), const(0))  # whatever it is, memory is safe
        number = self.ib.let("number", ticket.astype(self.scan.at.dtype))
        return (const(0), number) if rows == 1 else (number // self.tiles, number % self.tiles)

    def _look_back(self, memory: Memory, thread: Expr, row: Expr, tile: Expr) -> None:
        """Publish the tile's total; each level's warp joins the totals of what comes before the tile."""
        ib, join, warp = self.ib, self.scan.join, self.warp
        lane, role = thread % warp, thread // warp
        levels = len(self.counts)
        own = ib.allocate(self.dtype, (1,), "own", scope="local")
        own[0] = memory.shared[0]
        with ib.for_range(0, self.warps - 1, "k", kind="unroll") as k:
            own[0] = join(own[0], memory.shared[k + 1])
        with ib.if_scope(thread.equal(0)):
            self.publish_total(row, 0, tile, own[0])
        before = ib.allocate(self.dtype, (1,), "before", scope="local")
        before[0] = self.identity
        for level in range(levels):
            index = tile // warp**level
            is_last = level == levels - 1
            count = index if is_last else index % warp
            first = const(0) if is_last else index - count
            rounds = -(-(self.counts[level] - 1) // warp) if is_last else 1
            with ib.for_range(0, rounds, "k") as k:
                at = k * warp + lane
                with ib.if_scope(logical_and(role.equal(level), at < count)):
                    before[0] = join(before[0], self.await_total(row, level, first + at))
        join_warp(before, (const(0),), join, warp)
        inner = ib.allocate(self.dtype, (1,), "inner", scope="local")
        if levels == _LEVELS:
            # The last tile of many groups cannot wait for the total of its own group: its own first warp publishes it.
            inner[0] = self.identity
            ends = (tile % warp**2).equal(warp**2 - 1)
            with ib.if_scope(logical_and(role.equal(1), ends, lane < warp - 1)):
                inner[0] = self.await_total(row, 0, tile - (warp - 1) + lane)
            join_warp(inner, (const(0),), join, warp)
        with ib.if_scope(lane.equal(0)):
            with ib.if_scope(role < levels):
                self.parts[role] = before[0]
            for level in range(levels - 1):
                size = warp ** (level + 1)
                with ib.if_scope(logical_and(role.equal(level), (tile % size).equal(size - 1))):
                    inside = own[0] if level == 0 else join(inner[0], own[0])
                    self.publish_total(row, level + 1, tile // size, join(before[0], inside))

    # --- status words -------------------------------------------------------------------------------------------------

    def _status(self, row: Expr, level: int, index: Expr, word: int) -> Expr:
        return address_of(element_of(self.status[level], (row * self.counts[level] + index) * self.words + word))

    def publish_total(self, row: Expr, level: int, index: Expr, value: Expr) -> None:
        total = self.ib.allocate(self.dtype, (1,), "published", scope="local")
        total[0] = value
        bits = reinterpret(f"uint{self.dtype.bits}", total[0]).astype("uint64")
        for word in range(self.words):
            half = (bits >> const(32 * word, "uint64")) & const(_PRESENT - 1, "uint64")
            self.ib.emit(publish(self._status(row, level, index, word), half | const(_PRESENT, "uint64")))

    def await_total(self, row: Expr, level: int, index: Expr) -> Expr:
        words = self.ib.allocate("uint64", (self.words,), "words", scope="local")
        for word in range(self.words):
            words[word] = await_published(self._status(row, level, index, word))
        bits = words[0]
        if self.words == 2:
            bits = (words[0] & const(_PRESENT - 1, "uint64")) | (words[1] << const(32, "uint64"))
        return reinterpret(self.dtype, bits.astype(f"uint{self.dtype.bits}"))


def element_of(memory: BufferVar, index: Expr) -> BufferLoad:
    return BufferLoad(memory.asobject(), (index,))
