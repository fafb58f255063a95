"""Pipelined scan: a single-pass scan whose warps load, add up, look back and store at the same time.

    for turn in so many tiles for each block:                        `warp_role_stages` of them under way
        load        one warp: the next ticket is the tile; a bulk copy of it to shared memory
        add         four warps: its total, which is published
        look back   eight warps: thread t of them goes on adding totals t, t + 256, …, up to the tile's own
        scan        sixteen warps: running totals, behind what comes before

A block of `single_pass_scan.py` has one tile: it waits for memory, then for others' totals, then stores, and only other
blocks of the multiprocessor keep memory busy meanwhile: 0.65 of the speed of a copy on an H200. Here tiles are on their
way in all the time, their totals are published before anybody looks for them, and a tile is stored while the next ones
are added up. It is written as a loop whose parts have roles, which `specialize_warps` gives to warps.

What comes before a tile is one step away from the totals of tiles: groups of them with totals of their own would make
it two, each of which takes a way to L2 and back, and another slot of shared memory meanwhile.

Each block takes as many tickets as every other one, so that all tiles are taken whatever blocks run at once; a ticket
waits for earlier ones only, all of which blocks that run have taken. How totals are grouped depends on sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.analysis.warp_roles import ROLE, STAGES
from loopwright.autosched.gpu.scan_plan import ADD_WARPS, TOTALS_WARPS
from loopwright.autosched.gpu.scan_tile import Memory, Store
from loopwright.autosched.gpu.single_pass_scan import SinglePass, element_of
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import join_warp
from loopwright.ir import (
    Expr,
    For,
    ForKind,
    IntImm,
    Max,
    Min,
    Var,
    const,
    logical_and,
    logical_not,
    logical_or,
    substitute,
)
from loopwright.ir.intrinsics import address_of, if_then_else
from loopwright.ir.ir_builder import BufferVar
from loopwright.ir.machine_intrinsics import take_ticket


class PipelinedScan(SinglePass):
    """Writes the two kernels: what clears the status words, and the scan."""

    def write(self) -> None:
        ib, plan = self.ib, self.plan
        self.count_tiles(1)
        count = self.row_count * self.tiles
        with ib.new_scope():
            self.clear_status()
        with ib.new_scope():
            run_on(ib, "blockIdx.x", min(plan.blocks, count))
            # What one role alone uses, with a place for every other turn where its warps meet once in a turn.
            threads = TOTALS_WARPS * self.warp
            index = self.scan.at.dtype
            self.share = ib.allocate(self.dtype, (threads, 1), "share", scope="local")  # of the totals so far
            self.following = ib.allocate(index, (threads, 1), "following", scope="local")  # the first one after it
            self.of_row = ib.allocate(index, (threads, 1), "of_row", scope="local")
            self.sums = ib.allocate(self.dtype, (2, ADD_WARPS), "sums", scope="shared")
            self.shares = ib.allocate(self.dtype, (2, TOTALS_WARPS), "shares", scope="shared")
            self.warp_totals = ib.allocate(self.dtype, (2, self.warps), "warps", scope="shared")
            self.turn = Var("turn", "int32")
            turns = const(-(-count // plan.blocks))
            annotations = {STAGES: IntImm("int32", plan.stages)}
            ib.emit(lambda body: For(self.turn, const(0), turns, ForKind.SERIAL, body, annotations=annotations))
            self.ticket = ib.allocate("int32", (1,), "ticket", scope="shared")
            self.data = ib.allocate(self.dtype, (plan.tile,), "tile", scope="shared.dyn")
            self.before = ib.allocate(self.dtype, (1,), "before", scope="shared")
            self.summed = ib.allocate("int32", (1,), "summed", scope="shared")
            self._load()
            self._add()
            self._add_totals()
            self._scan()

    @contextmanager
    def _role(self, name: str, threads: int) -> Iterator[None]:
        with self.ib.new_scope():
            self.ib.scope_attr(name, ROLE, threads)
            yield

    def _place(self, ticket: Expr) -> tuple[Expr, Expr, Expr]:
        """The row and the tile of a ticket, and whether there is one."""
        count = self.row_count * self.tiles
        given = self.ib.let("given", ticket)
        inside = Max(Min(given, const(count - 1)), const(0))  # whatever it is, memory is safe
        number = self.ib.let("number", inside.astype(self.scan.at.dtype))
        if self.row_count == 1:
            return const(0), number, given < count
        return number // self.tiles, number % self.tiles, given < count

    def _load(self) -> None:
        ib, plan, scan, warp = self.ib, self.plan, self.scan, self.warp
        with self._role("load", warp):
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", warp)
                with ib.if_scope(thread.equal(0)):
                    self.ticket[0] = take_ticket(address_of(element_of(self.counter, const(0))))
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", warp)
                row, tile, is_there = self._place(self.ticket[0])
                with ib.for_range(0, plan.tile // warp, "k") as k:
                    at = tile * plan.tile + (k * warp + thread)
                    with ib.if_scope(logical_and(is_there, at < scan.length)):
                        self.data[k * warp + thread] = substitute(scan.value, {scan.row: row, scan.at: at})

    def _add(self) -> None:
        """The total of the tile."""
        ib, plan, join, lanes, warp = self.ib, self.plan, self.scan.join, self.plan.lanes, self.warp
        threads = ADD_WARPS * warp
        with self._role("add", threads):
            # The slot of the tile is free once it has been read: its ticket is kept for what comes later.
            ticket = ib.allocate("int32", (threads, 1), "number", scope="local")
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", threads)
                ticket[thread, 0] = self.ticket[0]
                _, tile, _ = self._place(ticket[thread, 0])
                sums = ib.allocate(self.dtype, (lanes,), "sums", scope="local")
                held = ib.allocate(self.dtype, (lanes,), "held", scope="local")
                with ib.for_range(0, lanes, "v", kind="unroll") as v:
                    sums[v] = self.identity
                with ib.for_range(0, plan.tile // (threads * lanes), "k", kind="unroll") as k:
                    first = (k * threads + thread) * lanes
                    with ib.for_range(0, lanes, "v", kind="vectorize") as v:
                        is_there = tile * plan.tile + first + v < self.scan.length
                        held[v] = if_then_else(is_there, self.data[first + v], self.identity)
                    with ib.for_range(0, lanes, "v", kind="unroll") as v:
                        sums[v] = join(sums[v], held[v])
                with ib.for_range(0, lanes - 1, "v", kind="unroll") as v:
                    sums[0] = join(sums[0], sums[v + 1])
                join_warp(sums, (const(0),), join, warp)
                with ib.if_scope((thread % warp).equal(0)):
                    self.sums[self.turn % 2, thread // warp] = sums[0]
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", threads)
                row, tile, is_there = self._place(ticket[thread, 0])
                with ib.if_scope(thread.equal(0)):
                    total = ib.allocate(self.dtype, (1,), "own", scope="local")
                    self._join_parts(self.sums, ADD_WARPS, total)
                    self.summed[0] = ticket[thread, 0]
                    with ib.if_scope(is_there):
                        self.publish_total(row, 0, tile, total[0])

    def _add_totals(self) -> None:
        """What comes before the tile: each thread goes on with its share of the totals."""
        ib, join, warp = self.ib, self.scan.join, self.warp
        threads = TOTALS_WARPS * warp
        share, following, of_row = self.share, self.following, self.of_row
        with self._role("look back", threads):
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", threads)
                row, tile, is_there = self._place(self.summed[0])  # after all that this block has published
                with ib.if_scope(logical_or(self.turn.equal(0), logical_not(of_row[thread, 0].equal(row)))):
                    share[thread, 0] = self.identity
                    following[thread, 0] = thread.astype(tile.dtype)
                    of_row[thread, 0] = row.astype(tile.dtype)
                more = (tile - following[thread, 0] + (threads - 1)) // threads
                count = if_then_else(is_there, more, const(0, tile.dtype))
                with ib.for_range(0, count, "k"):
                    share[thread, 0] = join(share[thread, 0], self.await_total(row, 0, following[thread, 0]))
                    following[thread, 0] = following[thread, 0] + threads
                before = ib.allocate(self.dtype, (1,), "joined", scope="local")
                before[0] = share[thread, 0]
                join_warp(before, (const(0),), join, warp)
                with ib.if_scope((thread % warp).equal(0)):
                    self.shares[self.turn % 2, thread // warp] = before[0]
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", threads)
                with ib.if_scope(thread.equal(0)):
                    self._join_parts(self.shares, TOTALS_WARPS, self.before)

    def _join_parts(self, parts: BufferVar, count: int, result: BufferVar) -> None:
        """The total of what warps have put down in this turn."""
        total = self.ib.allocate(self.dtype, (1,), "total", scope="local")
        total[0] = parts[self.turn % 2, 0]
        with self.ib.for_range(0, count - 1, "k", kind="unroll") as k:
            total[0] = self.scan.join(total[0], parts[self.turn % 2, k + 1])
        result[0] = total[0]

    def _scan(self) -> None:
        ib, plan = self.ib, self.plan
        with self._role("scan", plan.threads):
            memory = Memory(self)
            memory.shared = self.warp_totals
            ticket = ib.allocate("int32", (plan.threads, 1), "number", scope="local")
            with ib.new_scope():
                (thread,) = self.threads()
                ticket[thread, 0] = self.ticket[0]
                row, tile, _ = self._place(ticket[thread, 0])
                self.scan_tile(memory, (thread,), row, tile * plan.tile)
            with ib.new_scope():
                (thread,) = self.threads()
                row, tile, is_there = self._place(ticket[thread, 0])
                memory.total[thread, 0] = self.before[0]
                with ib.if_scope(is_there):
                    self.store_tile(memory, (thread,), row, tile * plan.tile)

    def place_of_warp(self, warp: Expr) -> tuple[Expr, ...]:
        return self.turn % 2, warp

    def load(self, row: Expr, begin: Expr, thread: Expr, put: Store) -> None:
        """From shared memory."""
        ib, plan = self.ib, self.plan
        with (
            ib.for_range(0, plan.vectors, "u", kind="unroll") as u,
            ib.for_range(0, plan.lanes, "v", kind="vectorize") as v,
        ):
            at = self._at(const(0), thread, u) + v
            value: Expr = self.data[at]
            put(u * plan.lanes + v, if_then_else(begin + at < self.scan.length, value, self.identity))
