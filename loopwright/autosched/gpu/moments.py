"""Moments: a mean and the squares of distances from it, in one pass over memory, after everything else is scheduled.

    for c, k: s[c] += x[k, c]                        for part, c in blockIdx.x:           a part of the values of c
    for c: m[c] = s[c] / n                               x in registers; their sum, their mean,
    for c, k: q[c] += (x[k, c] - m[c]) ** 2    →         and the squares of their distances from their own mean
                                                     for c: s, m, and q = Σ squares + n_part * (mean of part - m) ** 2

Over the real numbers that is the same (Chan, Golub and LeVeque, 1979), and rounding is no worse: each part has two
passes, over registers. How large parts are depends on sizes and on the GPU alone. It is done where the data is more
than L2 holds, so that a second pass would read it from memory again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from loopwright.autosched.facts import const as number_of
from loopwright.autosched.facts import loads_of
from loopwright.autosched.gpu.machine import USUAL_THREADS, VECTOR_BYTES, GpuMachine
from loopwright.autosched.gpu.thread_loops import run_on
from loopwright.autosched.gpu.warp_totals import join_warp
from loopwright.autosched.machine import bytes_of
from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Div,
    Expr,
    FloatImm,
    For,
    ForKind,
    IntImm,
    IterType,
    Mul,
    Stmt,
    Sub,
    Var,
    const,
    structural_equal,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else, minimum
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.te.scan_loops import unravelled

_VALUES: Final = 32  # of a thread, in registers


@dataclass(frozen=True)
class Moments:
    """`total[i] = Σ value`, `mean[i] = total[i] / n`, `squares[i] = Σ (value - mean[i])²`, in terms of the axes."""

    spatial: tuple[Var, ...]
    counts: tuple[int, ...]  # of the spatial axes
    reduced: tuple[Var, ...]
    sizes: tuple[int, ...]  # of the reduced axes
    value: Expr
    total: Buffer
    mean: Buffer
    squares: Buffer
    indices: tuple[Expr, ...]  # of all three, in terms of the spatial axes

    @property
    def results(self) -> int:
        return prod(self.counts)

    @property
    def members(self) -> int:
        return prod(self.sizes)


def moments_of(parts: Sequence[BlockRealize]) -> Moments | None:
    """What three blocks compute, nests of nothing but their axes around each; None for any others."""
    total, mean, squares = [part.block for part in parts]
    value = _summed(total)
    distance = _squared(squares)
    if value is None or distance is None or len(total.iter_vars) != len(squares.iter_vars):
        return None
    spatial = [axis for axis in total.iter_vars if axis.iter_type is IterType.DataPar]
    reduced = [axis for axis in total.iter_vars if axis.iter_type is IterType.CommReduce]
    extents = [number_of(axis.dom.extent) if axis.dom is not None else None for axis in (*spatial, *reduced)]
    if not reduced or len(spatial) + len(reduced) != len(total.iter_vars) or None in extents:
        return None
    sizes = [extent for extent in extents if extent is not None]
    own = _store(total)
    assert own is not None
    found = Moments(
        tuple([axis.var for axis in spatial]),
        tuple(sizes[: len(spatial)]),
        tuple([axis.var for axis in reduced]),
        tuple(sizes[len(spatial) :]),
        value,
        own.buffer,
        mean.writes[0].buffer,
        squares.writes[0].buffer,
        tuple(own.indices),
    )
    return found if _is_mean(found, mean) and _is_square(found, total, squares, distance) else None


def nest_of_axes(statement: Stmt) -> BlockRealize | None:
    """The one block of a nest of serial loops, each of which is an axis."""
    loops: list[For] = []
    while isinstance(statement, For) and statement.kind is ForKind.SERIAL and not statement.annotations:
        loops.append(statement)
        statement = statement.body
    if not isinstance(statement, BlockRealize) or len(loops) != len(statement.block.iter_vars):
        return None
    for loop, axis, value in zip(loops, statement.block.iter_vars, statement.iter_values, strict=True):
        same = axis.dom is not None and number_of(axis.dom.extent) == number_of(loop.extent) is not None
        if value is not loop.loop_var or number_of(loop.min) != 0 or not same:
            return None
    is_whole = isinstance(statement.predicate, IntImm) and statement.predicate.value == 1
    return statement if is_whole else None


def _store(block: Block) -> BufferStore | None:
    return block.body if isinstance(block.body, BufferStore) else None


def _summed(block: Block) -> Expr | None:
    """What a block sums up, from 0."""
    store, start = _store(block), block.init
    if store is None or not isinstance(start, BufferStore) or not isinstance(start.value, FloatImm):
        return None
    value = store.value
    if start.value.value != 0 or start.buffer is not store.buffer or not isinstance(value, Add):
        return None
    if not _is_cell(value.a, store.buffer, store.indices) or start.buffer.dtype.lanes != 1:
        return None
    return None if any(load.buffer is store.buffer for load in loads_of(value.b)) else value.b


def _squared(block: Block) -> Sub | None:
    """The difference whose squares a block sums up."""
    value = _summed(block)
    if not isinstance(value, Mul) or not isinstance(value.a, Sub) or not structural_equal(value.a, value.b):
        return None
    return value.a


def _is_cell(expr: Expr, buffer: Buffer, indices: Sequence[Expr]) -> bool:
    return (
        isinstance(expr, BufferLoad)
        and expr.buffer is buffer
        and len(expr.indices) == len(indices)
        and all(structural_equal(a, b) for a, b in zip(expr.indices, indices, strict=True))
    )


def _is_mean(found: Moments, block: Block) -> bool:
    """Whether the block divides the sum by how many members it has, cell by cell."""
    store = _store(block)
    if store is None or block.init is not None or len(block.iter_vars) != len(found.spatial):
        return False
    own = {axis.var: var for axis, var in zip(block.iter_vars, found.spatial, strict=True)}
    extents = [number_of(axis.dom.extent) if axis.dom is not None else None for axis in block.iter_vars]
    value = store.value
    if extents != list(found.counts) or not isinstance(value, Div) or not isinstance(value.b, FloatImm):
        return False
    indices = [substitute(index, own) for index in store.indices]
    cell = substitute(value.a, own)
    return (
        value.b.value == found.members
        and all(structural_equal(a, b) for a, b in zip(indices, found.indices, strict=True))
        and _is_cell(cell, found.total, found.indices)
    )


def _is_square(found: Moments, total: Block, squares: Block, distance: Sub) -> bool:
    """Whether the squares are of the distances of the same values from the mean."""
    for one, other in zip(total.iter_vars, squares.iter_vars, strict=True):
        if one.iter_type is not other.iter_type or not structural_equal(one.dom, other.dom):
            return False
    own = {other.var: one.var for one, other in zip(total.iter_vars, squares.iter_vars, strict=True)}
    store = _store(squares)
    assert store is not None
    return (
        structural_equal(substitute(distance.a, own), found.value)
        and _is_cell(substitute(distance.b, own), found.mean, found.indices)
        and all(structural_equal(substitute(a, own), b) for a, b in zip(store.indices, found.indices, strict=True))
        and len({found.total, found.mean, found.squares}) == 3
    )


# --- plan ---------------------------------------------------------------------------------------------------------


def lanes_of(moments: Moments, machine: GpuMachine) -> int | None:
    """How many members a thread loads at once; None where neighbours in memory belong to different results."""
    loads = loads_of(moments.value)
    last = moments.reduced[-1]
    if len(loads) != 1 or not isinstance(loads[0], BufferLoad) or loads[0].buffer.strides:
        return None
    index = loads[0].indices[-1]
    if index is not last:
        return None
    lanes = VECTOR_BYTES // max(bytes_of(str(loads[0].buffer.dtype)), bytes_of(str(moments.total.dtype)))
    while moments.sizes[-1] % lanes:
        lanes //= 2
    return lanes


def is_worth_it(moments: Moments, machine: GpuMachine) -> bool:
    """Whether the data is more than L2 keeps for a second pass, and there is a block for each multiprocessor."""
    loads = loads_of(moments.value)
    size = sum([moments.results * moments.members * bytes_of(str(load.buffer.dtype)) for load in loads])
    is_float = moments.total.dtype.is_float and moments.total.dtype.bits >= 32
    if not is_float or size <= machine.l2 // 2 or machine.max_threads < USUAL_THREADS:
        return False
    blocks = moments.results * -(-moments.members // (USUAL_THREADS * _VALUES))
    return lanes_of(moments, machine) is not None and blocks >= machine.multiprocessors


# --- kernels ------------------------------------------------------------------------------------------------------


def moments_by_parts(moments: Moments, machine: GpuMachine) -> Stmt:
    """Both kernels."""
    ib = create()
    kernels = _Kernels(ib, moments, machine)
    kernels.parts()
    kernels.whole()
    return ib.get()


class _Kernels:
    def __init__(self, ib: IRBuilder, moments: Moments, machine: GpuMachine) -> None:
        self.ib, self.moments, self.warp = ib, moments, machine.warp
        self.dtype = moments.total.dtype
        self.lanes = lanes_of(moments, machine) or 1
        self.threads = USUAL_THREADS
        self.vectors = _VALUES // self.lanes
        self.part = self.threads * _VALUES
        self.number = -(-moments.members // self.part)
        self.sums = ib.allocate(self.dtype, (moments.results, self.number), "sums")
        self.squares = ib.allocate(self.dtype, (moments.results, self.number), "squares")

    def parts(self) -> None:
        """The sum of each part, and the squares of the distances from its mean."""
        ib, moments = self.ib, self.moments
        with ib.new_scope():
            block = run_on(ib, "blockIdx.x", self.number * moments.results)
            part, result = block // moments.results, block % moments.results
            held = ib.allocate(self.dtype, (self.threads, _VALUES), "held", scope="local")
            total = ib.allocate(self.dtype, (self.threads, 1), "total", scope="local")
            mean = ib.allocate(self.dtype, (self.threads, 1), "mean", scope="local")
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", self.threads)
                with (
                    ib.for_range(0, self.vectors, "u", kind="unroll") as u,
                    ib.for_range(0, self.lanes, "v", kind="vectorize") as v,
                ):
                    at = self._at(part, thread, u) + v
                    value = if_then_else(at < moments.members, self._value(result, at), const(0, self.dtype))
                    held[thread, u * self.lanes + v] = value
                total[thread, 0] = const(0, self.dtype)
                with ib.for_range(0, _VALUES, "k", kind="unroll") as k:
                    total[thread, 0] = total[thread, 0] + held[thread, k]
            self._join_block(total)
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", self.threads)
                with ib.if_scope(thread.equal(0)):
                    self.sums[result, part] = total[thread, 0]
                mean[thread, 0] = total[thread, 0] / self._count(part)
                total[thread, 0] = const(0, self.dtype)
                with (
                    ib.for_range(0, self.vectors, "u", kind="unroll") as u,
                    ib.for_range(0, self.lanes, "v", kind="unroll") as v,
                    ib.if_scope(self._at(part, thread, u) + v < moments.members),
                ):
                    away = held[thread, u * self.lanes + v] - mean[thread, 0]
                    total[thread, 0] = total[thread, 0] + away * away
            self._join_block(total)
            with ib.new_scope():
                thread = run_on(ib, "threadIdx.x", self.threads)
                with ib.if_scope(thread.equal(0)):
                    self.squares[result, part] = total[thread, 0]

    def whole(self) -> None:
        """A warp for each result joins its parts."""
        ib, moments = self.ib, self.moments
        with ib.new_scope():
            result = run_on(ib, "blockIdx.x", moments.results)
            lane = run_on(ib, "threadIdx.x", self.warp)
            total = ib.allocate(self.dtype, (1,), "total", scope="local")
            mean = ib.allocate(self.dtype, (1,), "mean", scope="local")
            squares = ib.allocate(self.dtype, (1,), "squares", scope="local")
            total[0] = const(0, self.dtype)
            steps = -(-self.number // self.warp)
            with ib.for_range(0, steps, "k") as k:
                part = k * self.warp + lane
                here = if_then_else(part < self.number, self.sums[result, part], const(0, self.dtype))
                total[0] = total[0] + here
            join_warp(total, (const(0),), Add, self.warp)
            mean[0] = total[0] / const(float(moments.members), self.dtype)
            squares[0] = const(0, self.dtype)
            with ib.for_range(0, steps, "k") as k:
                part = k * self.warp + lane
                with ib.if_scope(part < self.number):
                    away = self.sums[result, part] / self._count(part) - mean[0]
                    squares[0] = squares[0] + (self.squares[result, part] + self._count(part) * (away * away))
            join_warp(squares, (const(0),), Add, self.warp)
            with ib.if_scope(lane.equal(0)):
                own = dict(zip(moments.spatial, self._axes(result), strict=True))
                index = tuple([substitute(one, own) for one in moments.indices])
                ib.buffer_ptr(moments.total)[index] = total[0]
                ib.buffer_ptr(moments.mean)[index] = mean[0]
                ib.buffer_ptr(moments.squares)[index] = squares[0]

    # --- parts ----------------------------------------------------------------------------------------------------

    def _at(self, part: Expr, thread: Expr, vector: Expr) -> Expr:
        return part * self.part + vector * (self.threads * self.lanes) + thread * self.lanes

    def _count(self, part: Expr) -> Expr:
        """How many members a part has."""
        return minimum(self.moments.members - part * self.part, self.part).astype(self.dtype)

    def _axes(self, result: Expr) -> list[Expr]:
        return unravelled(result, [const(count) for count in self.moments.counts])

    def _value(self, result: Expr, member: Expr) -> Expr:
        moments = self.moments
        reduced = unravelled(member, [const(size) for size in moments.sizes])
        own = dict(zip((*moments.spatial, *moments.reduced), (*self._axes(result), *reduced), strict=True))
        return substitute(moments.value, own)

    def _join_block(self, total: BufferVar) -> None:
        """All threads get the sum over the block."""
        ib, warps = self.ib, self.threads // self.warp
        parts = ib.allocate(self.dtype, (warps,), "parts", scope="shared")
        with ib.new_scope():
            thread = run_on(ib, "threadIdx.x", self.threads)
            join_warp(total, (thread, const(0)), Add, self.warp)
            with ib.if_scope((thread % self.warp).equal(0)):
                parts[thread // self.warp] = total[thread, 0]
        with ib.new_scope():
            thread = run_on(ib, "threadIdx.x", self.threads)
            total[thread, 0] = parts[0]
            with ib.for_range(0, warps - 1, "k", kind="unroll") as k:
                total[thread, 0] = total[thread, 0] + parts[k + 1]
