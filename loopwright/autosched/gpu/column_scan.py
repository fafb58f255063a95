"""Column scan: running totals across memory. Each column has a thread, or several that share its rows in chunks.

    4096 columns of 4096 rows, 32 chunks of 128 rows:

        for chunk in blockIdx.y, column in blockIdx.x, threadIdx.x: sums[chunk, column] = total of the chunk   a kernel
        for chunk, column:                                      out[…] = sums[0] ∘ … ∘ running totals          a kernel

A warp reads and writes whole lines, several rows under way. Enough columns to keep the GPU busy are one kernel.

`te/scan_loops.py` writes such a block for a CPU, in strips of vectors. It is read by writing it again: what it could be
(the axis, the operation, whether an element is part of its own total) is guessed, and the block must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.arith import Analyzer
from loopwright.autosched.facts import loads_of
from loopwright.autosched.gpu.machine import USUAL_THREADS, GpuMachine
from loopwright.autosched.gpu.scan_idiom import JOINS, Join, identity_of
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    FloatImm,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    PrimFunc,
    Stmt,
    cast,
    collect_statements,
    const,
    structural_equal,
)
from loopwright.ir.intrinsics import ceildiv, if_then_else
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.schedule.rewrite.inline_lets import with_lets_written_out
from loopwright.te.scan_loops import across_rows, columns_from, known, product, unravelled

_UNDER_WAY: Final = 8  # rows that a thread loads before it joins them
_ROWS_OF_A_CHUNK: Final = 32  # at least: each adds up the totals of those before it
_MOST_CHUNKS: Final = 256
_THREADS_EACH: Final = 1024  # for each multiprocessor, with loads under way, are enough


@dataclass(frozen=True)
class ColumnScan:
    """`out[…, i, …]` is `source[…, 0, …] ∘ … ∘ source[…, i, …]`; without the last one where `first` comes first."""

    join: Join
    source: Buffer
    out: Buffer
    axis: int
    first: Expr | None

    @property
    def split(self) -> int:
        """Axes from this one on are columns that one thread after the other has."""
        behind = self.out.shape[self.axis + 1 :]
        return self.axis + 1 + columns_from(behind)

    def element(self, index: Sequence[Expr]) -> Expr:
        return cast(BufferLoad(self.source, tuple(index)), self.out.dtype)


def column_scan(body: Stmt) -> ColumnScan | None:
    """What a block computes that is nothing but a scan across memory; None for any other."""
    if not isinstance(body, For) or body.kind is not ForKind.PARALLEL:
        return None
    stores = collect_statements(body, BufferStore)
    vectors = [loop for loop in collect_statements(body, For) if loop.kind is ForKind.VECTORIZED]
    lanes = known(vectors[0].extent) if vectors else None
    if lanes is None:
        return None
    given = _without_lets(body)
    for scan in _guesses(stores):
        if structural_equal(given, _without_lets(_written(scan, lanes))):
            return scan
    return None


def _guesses(stores: Sequence[BufferStore]) -> Iterator[ColumnScan]:
    joined = [store for store in stores if isinstance(store.value, JOINS) and isinstance(store.value.a, BufferLoad)]
    outs = {store.buffer for store in stores if len(store.buffer.shape) > 1 and store.buffer.scope() == "global"}
    if not joined or len(outs) != 1:
        return
    (out,), value = outs, joined[0].value
    assert isinstance(value, JOINS)
    loads = loads_of(value.b)
    if len(loads) != 1 or len(loads[0].buffer.shape) != len(out.shape):
        return
    begin = stores[0].value
    first = begin if isinstance(begin, (IntImm, FloatImm)) else None
    for axis in range(len(out.shape) - 1):
        yield ColumnScan(type(value), loads[0].buffer, out, axis, first)


def _written(scan: ColumnScan, lanes: int) -> Stmt:
    """The block that computes it on a CPU."""
    ib, shape = create(), list(scan.out.shape)
    parts = shape[: scan.axis], shape[scan.axis], shape[scan.axis + 1 :]
    across_rows(ib, *parts, scan.element, ib.buffer_ptr(scan.out), scan.join, scan.first, lanes)
    return ib.get()


def _without_lets(body: Stmt) -> Stmt:
    """As a schedule has it."""
    return with_lets_written_out(PrimFunc((), body)).body


# --- kernels ------------------------------------------------------------------------------------------------------


def scan_columns(scan: ColumnScan, machine: GpuMachine) -> Stmt:
    """The scan by blocks of threads."""
    ib = create()
    _Kernels(ib, scan, machine).write()
    return ib.get()


def rows_of_a_chunk(rows: int | None, columns: int | None, machine: GpuMachine) -> int | None:
    """How many rows a thread has of so many columns; None for all of them."""
    if rows is None or columns is None:
        return None
    enough = machine.multiprocessors * _THREADS_EACH
    chunks = min(_MOST_CHUNKS, enough // columns, rows // _ROWS_OF_A_CHUNK)
    if chunks <= 1:
        return None
    each = -(-rows // chunks)
    return -(-each // _UNDER_WAY) * _UNDER_WAY


class _Kernels:
    """Writes the kernels of a scan across memory."""

    def __init__(self, ib: IRBuilder, scan: ColumnScan, machine: GpuMachine) -> None:
        self.ib, self.scan = ib, scan
        shape, split = list(scan.out.shape), scan.split
        self.size = shape[scan.axis]
        self.over = [*shape[: scan.axis], *shape[scan.axis + 1 : split]]
        self.behind = shape[split:]
        self.columns, self.outer = product(self.behind), product(self.over)
        self.threads = machine.threads(USUAL_THREADS)
        number = known(self.columns)
        while number is not None and self.threads >= 2 * machine.warp and self.threads // 2 >= number:
            self.threads //= 2
        all_columns = known(product([*self.over, *self.behind]))
        self.chunk = rows_of_a_chunk(known(self.size), all_columns, machine)
        self.identity = identity_of(scan.join, scan.out.dtype)

    def write(self) -> None:
        ib, scan, join = self.ib, self.scan, self.scan.join
        if self.chunk is None:
            with ib.new_scope():
                outer, column = self._bound()
                total = self._total()
                self._walk(outer, column, const(0), self.size, total, stores=True)
            return
        chunks = Analyzer().simplify(ceildiv(self.size, self.chunk))
        sums = ib.allocate(scan.out.dtype, (self.outer, chunks, self.columns), "sums")
        with ib.new_scope():
            chunk: Expr = run_on(ib, "blockIdx.z", chunks)
            outer, column = self._bound()
            total = self._total()
            self._walk(outer, column, chunk * self.chunk, const(self.chunk), total, stores=False)
            sums[outer, chunk, column] = total[0]
        with ib.new_scope():
            chunk = chunks - 1 - run_on(ib, "blockIdx.z", chunks)  # what was read last is in L2
            outer, column = self._bound()
            total = self._total()
            with ib.for_range(0, chunk, "k") as k:
                total[0] = join(total[0], sums[outer, k, column])
            self._walk(outer, column, chunk * self.chunk, const(self.chunk), total, stores=True)

    def _bound(self) -> tuple[Expr, Expr]:
        """Which column a thread has, of which of the outer ones; the rest of the scope is for columns that exist."""
        ib = self.ib
        blocks = Analyzer().simplify(ceildiv(self.columns, self.threads))
        number = known(blocks)
        outer: Expr
        block: Expr
        if number is None:
            outer, block = run_on(ib, "blockIdx.y", self.outer), run_on(ib, "blockIdx.x", blocks)
        else:  # as many as there are: blockIdx.y has 65,535 values
            both = run_on(ib, "blockIdx.x", Analyzer().simplify(self.outer * number))
            outer, block = both // number, both % number
        column = block * self.threads + run_on(ib, "threadIdx.x", self.threads)
        ib.emit(lambda body: IfThenElse(column < self.columns, body))
        return outer, column

    def _total(self) -> BufferVar:
        total = self.ib.allocate(self.scan.out.dtype, (1,), "total", scope="local")
        total[0] = self.identity
        return total

    def _walk(self, outer: Expr, column: Expr, begin: Expr, rows: Expr, total: BufferVar, stores: bool) -> None:
        """Some rows of a column in their order."""
        ib, scan = self.ib, self.scan
        out = ib.buffer_ptr(scan.out)
        held = ib.allocate(scan.out.dtype, (_UNDER_WAY,), "held", scope="local")
        with ib.for_range(0, Analyzer().simplify(ceildiv(rows, _UNDER_WAY)), "some") as some:
            first = begin + some * _UNDER_WAY
            with ib.for_range(0, _UNDER_WAY, "u", kind="unroll") as u:
                value = scan.element(self._index(outer, first + u, column))
                held[u] = if_then_else(first + u < self.size, value, self.identity)
            with ib.for_range(0, _UNDER_WAY, "u", kind="unroll") as u:
                if stores and scan.first is not None:
                    before = if_then_else(first + u > 0, total[0], scan.first)
                    with ib.if_scope(first + u < self.size):
                        out[tuple(self._index(outer, first + u, column))] = before
                total[0] = scan.join(total[0], held[u])
                if stores and scan.first is None:
                    with ib.if_scope(first + u < self.size):
                        out[tuple(self._index(outer, first + u, column))] = total[0]

    def _index(self, outer: Expr, row: Expr, column: Expr) -> list[Expr]:
        around = unravelled(outer, self.over)
        axis = self.scan.axis
        return [*around[:axis], row, *around[axis:], *unravelled(column, self.behind)]
