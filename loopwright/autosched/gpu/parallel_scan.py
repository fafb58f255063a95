"""Parallel scan: running totals along rows by blocks of threads, before anything is scheduled.

    a row of 2^24 elements, tiles of 4096:

        for tile in blockIdx.x: sums[tile] = total of the tile                 a kernel
        one block:              sums[tile] = total of all tiles before it      a kernel
        for tile in blockIdx.x: out[…] = sums[tile] ∘ running totals           a kernel

A thread has 16 neighbours of a tile: it reads them in 16-byte loads, and adds them up in order. The totals of threads
are scanned in shared memory: after step k, a thread has the total of 2^k threads. Enough rows to keep the GPU busy, and
rows of a few tiles, are one kernel: a block goes along its row, and takes the total from tile to tile.

The block that is replaced is read by `scan_idiom.py`, which compares all that it stores. Totals are joined in another
grouping than in the program, but in its order: sums of integers are the same, those of floats round differently
(docs/semantics.md). How they are grouped depends on sizes and on the GPU alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from loopwright.arith import Analyzer
from loopwright.autosched.facts import const as number_of
from loopwright.autosched.gpu.machine import USUAL_THREADS, VECTOR_BYTES, GpuMachine
from loopwright.autosched.gpu.scan_idiom import ScanIdiom, scan_idiom
from loopwright.autosched.machine import bytes_of
from loopwright.ir import (
    Add,
    Block,
    Expr,
    For,
    ForKind,
    GlobalVar,
    IRModule,
    IterType,
    IterVar,
    Max,
    Mul,
    PrimFunc,
    Rewriter,
    Stmt,
    Var,
    const,
    substitute,
)
from loopwright.ir.intrinsics import ceildiv, if_then_else, max_value, min_value
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.runtime.dtype import DataType

_EACH: Final = 16  # neighbours that a thread adds up
_TILES_IN_ORDER: Final = 4  # of a row that one block walks, where rows are few

Load = Callable[[Expr], Expr]
Store = Callable[[Expr, Expr], None]
LoadAt = Callable[[Expr, Expr], Expr]  # of a row
StoreAt = Callable[[Expr, Expr, Expr], None]


def parallel_scans(program: IRModule | PrimFunc, machine: GpuMachine) -> IRModule | PrimFunc:
    """The program with its scans along rows spread over threads; the same object where there are none."""
    if isinstance(program, PrimFunc):
        return program.with_(body=_Scans(machine).visit(program.body))
    if not isinstance(program, IRModule):
        return program  # Schedule says what it is
    functions: dict[str | GlobalVar, PrimFunc] = {
        name: func.with_(body=_Scans(machine).visit(func.body)) if isinstance(func, PrimFunc) else func
        for name, func in program.functions_items()
    }
    if all(functions[name] is func for name, func in program.functions_items()):
        return program
    return IRModule(functions, attrs=program.attrs)


class _Scans(Rewriter):
    def __init__(self, machine: GpuMachine) -> None:
        self.machine = machine

    def visit_Block(self, block: Block) -> Block:
        scan = scan_idiom(block.body) if not block.iter_vars and block.init is None else None
        if scan is None:
            result: Block = self.rebuild(block)
            return result
        return block.with_(body=_in_kernels(scan, self.machine))


class _Tile(NamedTuple):
    """What a block of threads has of a row."""

    scan: ScanIdiom
    threads: int
    each: int

    @property
    def size(self) -> int:
        return self.threads * self.each

    @property
    def steps(self) -> int:
        """Of the scan over threads: each doubles how many threads a total is of."""
        return (self.threads - 1).bit_length()

    @property
    def dtype(self) -> DataType:
        return self.scan.out.dtype

    def identity(self) -> Expr:
        """What changes no total: of floats, -0 (0 would make 0 of -0)."""
        join, dtype = self.scan.join, self.dtype
        if join is Add:
            return const(-0.0 if dtype.is_float else 0, dtype)
        if join is Mul:
            return const(1, dtype)
        if dtype.is_float:
            return const(float("-inf" if join is Max else "inf"), dtype)
        return min_value(dtype) if join is Max else max_value(dtype)


def _in_kernels(scan: ScanIdiom, machine: GpuMachine) -> Stmt:
    length, rows = number_of(scan.length), number_of(scan.rows)
    threads = machine.threads(USUAL_THREADS)
    while length is not None and threads > machine.warp and threads * _EACH >= 2 * length:
        threads //= 2
    tile = _Tile(scan, threads, _EACH)
    is_walked = (
        rows is None or rows >= machine.multiprocessors or (length or tile.size**2) <= _TILES_IN_ORDER * tile.size
    )
    ib = create()
    if is_walked:
        _walk(ib, tile, scan.rows, scan.length, *_of_program(ib, scan), scan.first)
    else:
        _in_tiles(ib, tile)
    return ib.get()


def _of_program(
    ib: IRBuilder, scan: ScanIdiom
) -> tuple[Callable[[Expr, Expr], Expr], Callable[[Expr, Expr, Expr], None]]:
    """How an element of a row is loaded, and stored."""
    out = ib.buffer_ptr(scan.out)

    def load(row: Expr, at: Expr) -> Expr:
        return substitute(scan.value, {scan.row: row, scan.at: at})

    def store(row: Expr, at: Expr, value: Expr) -> None:
        out[tuple([substitute(index, {scan.row: row, scan.at: at}) for index in scan.indices])] = value

    return load, store


def _in_tiles(ib: IRBuilder, tile: _Tile) -> None:
    """Totals of all tiles, their scan, and the tiles with what was before them."""
    scan = tile.scan
    load, store = _of_program(ib, scan)
    tiles = Analyzer().simplify(ceildiv(scan.length, tile.size))
    sums = ib.allocate(tile.dtype, (scan.rows, tiles), "sums")
    before = ib.allocate(tile.dtype, (scan.rows, tiles), "before")
    with ib.new_scope():
        row, number = _threads(ib, "blockIdx.y", scan.rows), _threads(ib, "blockIdx.x", tiles)
        held, shared = _memory(ib, tile)
        _scan(ib, tile, held, shared, lambda at: load(row, at), number * tile.size, scan.length)
        with ib.new_scope():
            thread = _threads(ib, "threadIdx.x", const(tile.threads))
            with ib.if_scope(thread.equal(tile.threads - 1)):
                sums[row, number] = shared[tile.steps, thread]

    def put_before(row: Expr, at: Expr, value: Expr) -> None:
        before[row, at] = value

    _walk(ib, tile, scan.rows, tiles, lambda row, at: sums[row, at], put_before, tile.identity())
    with ib.new_scope():
        row, number = _threads(ib, "blockIdx.y", scan.rows), _threads(ib, "blockIdx.x", tiles)
        held, shared = _memory(ib, tile)
        begin = number * tile.size
        _scan(ib, tile, held, shared, lambda at: load(row, at), begin, scan.length)
        offset = before[row, number]
        _put(ib, tile, held, shared, offset, begin, scan.length, lambda at, value: store(row, at, value), scan.first)


def _walk(
    ib: IRBuilder,
    tile: _Tile,
    rows: Expr,
    length: Expr,
    load: LoadAt,
    store: StoreAt,
    first: Expr | None,
) -> None:
    """A block for each row, tile after tile."""
    with ib.new_scope():
        row = _threads(ib, "blockIdx.x", rows)
        held, shared = _memory(ib, tile)
        totals = ib.allocate(tile.dtype, (tile.threads,), "total", scope="local")
        with ib.new_scope():
            totals[_threads(ib, "threadIdx.x", const(tile.threads))] = tile.identity()
        with ib.for_range(0, Analyzer().simplify(ceildiv(length, tile.size)), "tile") as number:
            begin = number * tile.size
            _scan(ib, tile, held, shared, lambda at: load(row, at), begin, length)
            _put(ib, tile, held, shared, totals, begin, length, lambda at, value: store(row, at, value), first)
            with ib.new_scope():
                thread = _threads(ib, "threadIdx.x", const(tile.threads))
                totals[thread] = tile.scan.join(totals[thread], shared[tile.steps, tile.threads - 1])


def _threads(ib: IRBuilder, tag: str, extent: Expr) -> Var:
    """The rest of the scope runs on these threads."""
    var = Var(tag.replace("Idx.", "_"), extent.dtype)
    axis = IterVar(None, Var(tag, extent.dtype), IterType.ThreadIndex, tag)
    zero = const(0, extent.dtype)
    ib.emit(lambda body: For(var, zero, extent, ForKind.THREAD_BINDING, body, thread_binding=axis))
    return var


def _memory(ib: IRBuilder, tile: _Tile) -> tuple[BufferVar, BufferVar]:
    """What each thread holds, and the totals of threads after each step."""
    held = ib.allocate(tile.dtype, (tile.threads, tile.each), "held", scope="local")
    return held, ib.allocate(tile.dtype, (tile.steps + 1, tile.threads), "totals", scope="shared")


def _scan(
    ib: IRBuilder, tile: _Tile, held: BufferVar, shared: BufferVar, load: Load, begin: Expr, length: Expr
) -> None:
    """Load a tile; the running totals of each thread, and of threads."""
    lanes = VECTOR_BYTES // bytes_of(str(tile.dtype))
    with ib.new_scope():
        thread = _threads(ib, "threadIdx.x", const(tile.threads))
        with (
            ib.for_range(0, tile.each // lanes, "u", kind="unroll") as u,
            ib.for_range(0, lanes, "v", kind="vectorize") as v,
        ):
            at = begin + thread * tile.each + u * lanes + v
            held[thread, u * lanes + v] = if_then_else(at < length, load(at), tile.identity())
        with ib.for_range(0, tile.each - 1, "k", kind="unroll") as k:
            held[thread, k + 1] = tile.scan.join(held[thread, k], held[thread, k + 1])
        shared[0, thread] = held[thread, tile.each - 1]
    for step in range(tile.steps):
        with ib.new_scope():
            thread = _threads(ib, "threadIdx.x", const(tile.threads))
            with ib.if_scope(thread >= 1 << step):
                joined = tile.scan.join(shared[step, thread - (1 << step)], shared[step, thread])
                shared[step + 1, thread] = joined
            with ib.else_scope():
                shared[step + 1, thread] = shared[step, thread]


def _put(
    ib: IRBuilder,
    tile: _Tile,
    held: BufferVar,
    shared: BufferVar,
    before: BufferVar | Expr,
    begin: Expr,
    length: Expr,
    store: Store,
    first: Expr | None,
) -> None:
    """Store what a thread has, behind what was before it; moved by one where an element is no part of its own."""
    join, lanes = tile.scan.join, VECTOR_BYTES // bytes_of(str(tile.dtype))
    with ib.new_scope():
        thread = _threads(ib, "threadIdx.x", const(tile.threads))
        offset = ib.allocate(tile.dtype, (1,), "offset", scope="local")
        until = if_then_else(thread > 0, shared[tile.steps, thread - 1], tile.identity())
        offset[0] = join(before if isinstance(before, Expr) else before[thread], until)
        moved = ib.allocate(tile.dtype, (tile.each,), "moved", scope="local")
        if first is None:
            with ib.for_range(0, tile.each, "k", kind="unroll") as k:
                moved[k] = join(offset[0], held[thread, k])
        else:
            moved[0] = if_then_else(begin + thread * tile.each > 0, offset[0], first)
            with ib.for_range(0, tile.each - 1, "k", kind="unroll") as k:
                moved[k + 1] = join(offset[0], held[thread, k])
        with (
            ib.for_range(0, tile.each // lanes, "u", kind="unroll") as u,
            ib.for_range(0, lanes, "v", kind="vectorize") as v,
        ):
            at = begin + thread * tile.each + u * lanes + v
            with ib.if_scope(at < length):
                store(at, moved[u * lanes + v])
