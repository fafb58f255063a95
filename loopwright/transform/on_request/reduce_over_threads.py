"""reduce_over_threads: a value is reduced over threads by shuffles in a warp, and through shared memory beyond one.

    with T.attr(T.comm_reducer(…), "reduce_scope", …):     →   R[0] = P[0]
        T.tvm_thread_allreduce(1, P[0], True, R[0], tx)        R[0] = R[0] + T.tvm_warp_shuffle_xor(m, R[0], 16, 32, 32)
                                                               …   # then 8, 4, 2, 1: no barrier in a warp
                                                               if tx % 32 == 0:          # 256 threads are eight warps
                                                                   S[0, tx // 32] = R[0]
                                                               T.tvm_storage_sync("shared")
                                                               R[0] = S[0, tx % 8]
                                                               R[0] = R[0] + T.tvm_warp_shuffle_xor(m, R[0], 4, 32, 32)
                                                               …   # then 2, 1: every thread has the result

Threads that reduce one value are a *group*. How they do it depends on how they lie in warps:

    neighbours, 2^k ≤ 32 of them        shuffles alone
    neighbours, whole warps             shuffles, one partial result a warp in shared memory, one barrier, shuffles
    all threads, any number             the same; each thread joins the partial results itself, one after the other
    anything else (threads along y)     a tree in shared memory: of n threads the first half joins the second, with a
                                        barrier after each step

The order in which values are joined depends on these numbers alone (docs/semantics.md). A shuffle is reached by all
lanes that its mask names: under a condition that differs between threads there is none.

Needs: `allreduce_threads`, extents of threads that are constants.  Leaves: no `tvm_thread_allreduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, NamedTuple

from loopwright.analysis.thread_axes import axis_of, barrier, has_threads, is_allreduce, tag_of, uses
from loopwright.ir import (
    Add,
    Allocate,
    And,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    CommReducer,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Max,
    Min,
    Mul,
    Node,
    Or,
    PrimFunc,
    Select,
    Stmt,
    Var,
    While,
    const,
    decl_buffer,
    deep,
    is_one,
    pre_order_visit,
    seq,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.ir.machine_intrinsics import tvm_warp_shuffle, tvm_warp_shuffle_down, tvm_warp_shuffle_xor
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter

WARP: Final = 32
_ALL_LANES: Final = 0xFFFFFFFF
# x ∘ y and y ∘ x are the same bits: lanes that exchange their values agree on the result.
_SYMMETRIC: Final = (Add, Mul, Min, Max, And, Or)
_SYMMETRIC_CALLS: Final = frozenset(["tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor"])


class _Axis(NamedTuple):
    """An axis of the threads of a kernel."""

    tag: str
    extent: int


class _Running(NamedTuple):
    """Threads along an axis: the variable that tells them apart, its least value, and how many there are."""

    var: Var
    low: Expr
    extent: Expr


class _Values:
    """The values of a thread under way, and how two of them join: several for a reduction of tuples."""

    def __init__(self, reducer: CommReducer, results: Sequence[BufferLoad]) -> None:
        self.reducer, self.results = reducer, results
        zero = const(0)
        self.other = [decl_buffer((1,), result.dtype, "other", scope="local") for result in results]
        self.others = [BufferLoad(buffer, (zero,)) for buffer in self.other]
        self.needs_other = False

    @property
    def is_symmetric(self) -> bool:
        result = self.reducer.result[0]
        if len(self.results) > 1:
            return False
        operands: Sequence[Expr] = ()
        if isinstance(result, _SYMMETRIC):
            operands = result.a, result.b
        elif isinstance(result, Call) and result.op.name in _SYMMETRIC_CALLS:
            operands = result.args
        return set(operands) == {self.reducer.lhs[0], self.reducer.rhs[0]}

    def set_to(self, values: Sequence[Expr]) -> list[Stmt]:
        """Statements after which the values are these, which do not read them."""
        return [
            BufferStore(result.buffer, value, result.indices)
            for result, value in zip(self.results, values, strict=True)
        ]

    def join(self, left: Sequence[Expr], right: Sequence[Expr], to: Sequence[BufferLoad] | None = None) -> list[Stmt]:
        """Statements that put what two tuples join to into `to`, the values under way by default."""
        to = self.results if to is None else to
        given = dict(zip([*self.reducer.lhs, *self.reducer.rhs], [*left, *right], strict=True))
        joined = [substitute(result, given) for result in self.reducer.result]
        if len(to) == 1:
            return [BufferStore(to[0].buffer, joined[0], to[0].indices)]
        self.needs_other = True  # all of them are computed before the first is stored
        moves = [*zip(self.others, joined, strict=True), *zip(to, self.others, strict=True)]
        return [BufferStore(load.buffer, value, load.indices) for load, value in moves]


class _Reduce(StmtRewriter):
    def __init__(self) -> None:
        self.threads: dict[str, _Running] = {}  # the threads of a block that run here, by axis
        self.kernel: list[_Axis] | None = (
            None  # the axes of all threads of this kernel, x first, where they are constants
        )
        self.in_kernel = False
        self.is_plain = True  # no axis is bound twice around, and no condition around differs between threads
        self.count = 0

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is ForKind.THREAD_BINDING or tag_of(loop):
            return self._bound(loop)
        return self._under([loop.min, loop.extent], loop)

    def _bound(self, node: For | AttrStmt) -> Stmt:
        tag = tag_of(node)
        if not self.in_kernel:
            self.kernel, self.in_kernel = _thread_axes(node), True
            result: Stmt = self._bound(node)
            self.kernel, self.in_kernel = None, False
            return result
        if not tag.startswith("threadIdx"):
            return self._under([node.min, node.extent] if isinstance(node, For) else [node.value], node)
        outer, was_plain = self.threads.get(tag), self.is_plain
        self.is_plain = was_plain and outer is None
        axis = axis_of(node)
        self.threads[tag] = _Running(axis.var, node.min if isinstance(node, For) else const(0), axis.extent)
        result = self.rebuild(node)
        del self.threads[tag]
        if outer is not None:
            self.threads[tag] = outer
        self.is_plain = was_plain
        return result

    def visit_IfThenElse(self, statement: IfThenElse) -> Stmt:
        return self._under([statement.condition], statement)

    def visit_While(self, statement: While) -> Stmt:
        return self._under([statement.condition], statement)

    def _under(self, steering: Sequence[Expr], statement: Stmt) -> Stmt:
        """What is inside a statement that not all threads may run alike."""
        names = {axis.var for axis in self.threads.values()}
        was_plain = self.is_plain
        self.is_plain = was_plain and not any([uses(expr, names) for expr in steering])
        result: Stmt = self.rebuild(statement)
        self.is_plain = was_plain
        return result

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if tag_of(node):
            return self._bound(node)
        reducer, body = node.node, node.body
        if not isinstance(reducer, CommReducer) or not isinstance(body, Evaluate) or not is_allreduce(body):
            return self.rebuild(node)
        call = body.value
        assert isinstance(call, Call)
        count = len(reducer.lhs)
        parts, condition, rest = call.args[1 : 1 + count], call.args[1 + count], call.args[2 + count :]
        results, over = rest[:count], rest[count:]
        variables = {axis.var: tag for tag, axis in self.threads.items()}
        is_known = all([isinstance(result, BufferLoad) for result in results]) and self.kernel is not None
        if not is_known or not all([var in variables for var in over]):
            return node
        if not all([isinstance(axis.extent, IntImm) for axis in self.threads.values()]):
            return node
        loads = [result for result in results if isinstance(result, BufferLoad)]
        if not is_one(condition):
            identities = reducer.identity_element
            parts = tuple([if_then_else(condition, *pair) for pair in zip(parts, identities, strict=True)])
        return self._reduced(_Values(reducer, loads), parts, [variables[var] for var in over])  # type: ignore[index]

    def _reduced(self, values: _Values, parts: Sequence[Expr], over: Sequence[str]) -> Stmt:
        steps = values.set_to(parts)
        group = self._extent(over)
        kernel = self.kernel or []
        threads = prod([axis.extent for axis in kernel])
        shared: list[Buffer] = []
        if self._are_neighbours(over) and group == 1:
            pass
        elif self._are_neighbours(over) and self._shuffles(group, threads):
            steps += self._in_warp(values, min(group, WARP), group, threads)
            if group > WARP:
                shared = self._partials(values, threads // group, -(-group // WARP))
                steps += self._over_warps(values, shared, group, threads)
        else:
            return self._tree(values, parts, over)
        if values.needs_other:
            steps = [_allocated(values.other, steps)]
        return _allocated(shared, steps) if shared else seq(steps)

    # --- which threads --------------------------------------------------------------------------------------------

    def _extent(self, tags: Sequence[str]) -> int:
        return prod([int(self.threads[tag].extent) for tag in tags])  # type: ignore[call-overload]

    def _are_neighbours(self, over: Sequence[str]) -> bool:
        """Whether the threads of a group have numbers that follow each other, and all threads of their warps run."""
        kernel = [axis for axis in self.kernel or [] if axis.extent > 1]
        lowest = [axis.tag for axis in kernel if axis.tag in over]
        if not self.is_plain or [axis.tag for axis in kernel[: len(lowest)]] != lowest:
            return False
        below = 1  # threads along axes that come before
        for axis in kernel:
            if axis.tag not in self.threads and below % WARP:
                return False  # the first along this axis runs the statement, in the same warp as others
            below *= axis.extent
        return True

    def _shuffles(self, group: int, threads: int) -> bool:
        """Whether groups of this size lie in warps as they have to."""
        if group <= WARP and group & (group - 1) == 0:
            return True
        return group == threads or (group % WARP == 0 and group // WARP <= WARP)

    def _number(self, tags: Sequence[str]) -> Expr:
        """Which of the threads along these axes it is; those along x are neighbours."""
        number: Expr = const(0)
        for tag in sorted(tags, reverse=True):
            axis = self.threads[tag]
            number = number * axis.extent + (axis.var - axis.low)
        return number

    @property
    def _thread(self) -> Expr:
        return self._number([*self.threads])

    # --- shuffles -------------------------------------------------------------------------------------------------

    def _mask(self, threads: int) -> Expr:
        """The lanes of the warp."""
        tail = threads % WARP
        if not tail:
            return const(_ALL_LANES, "uint32")
        rest = const((1 << tail) - 1, "uint32")
        if threads < WARP:
            return rest
        return Select(self._thread < threads - tail, const(_ALL_LANES, "uint32"), rest)

    def _in_warp(self, values: _Values, lanes: int, group: int, threads: int) -> list[Stmt]:
        """Groups of `lanes` neighbours reduce: all of them have the result, where their number is a power of two."""
        if values.is_symmetric and lanes & (lanes - 1) == 0 and (group <= WARP or group % WARP == 0):
            return self._exchanged(values, lanes, threads)
        mask, steps = self._mask(threads), list[Stmt]()
        taken = [decl_buffer((1,), load.dtype, "shuffled", scope="local") for load in values.results]
        loads = [BufferLoad(buffer, (const(0),)) for buffer in taken]
        is_whole = lanes & (lanes - 1) == 0 and (group <= WARP or group % WARP == 0)
        for distance in reversed(_powers_below(lanes)):
            steps += self._moved(values, loads, tvm_warp_shuffle_down, mask, const(distance))
            joined = seq(values.join(values.results, loads))
            steps.append(joined if is_whole else IfThenElse(self._thread + distance < group, joined))
        if group <= WARP:  # the first thread of a group has the result
            first = self._thread % WARP // lanes * lanes if is_whole else const(0)
            steps += self._moved(values, loads, tvm_warp_shuffle, mask, first)
            steps += values.set_to(loads)
        return [_allocated(taken, steps)]

    def _exchanged(self, values: _Values, lanes: int, threads: int) -> list[Stmt]:
        mask = self._mask(threads)
        (value,) = values.results
        steps: list[Stmt] = []
        for distance in reversed(_powers_below(lanes)):
            steps += values.join([value], [tvm_warp_shuffle_xor(mask, value, distance, WARP, WARP)])
        return steps

    def _moved(
        self, values: _Values, to: Sequence[BufferLoad], shuffle: Callable[..., Expr], mask: Expr, lane: Expr
    ) -> list[Stmt]:
        return [
            BufferStore(load.buffer, shuffle(mask, value, lane, WARP, WARP), load.indices)
            for load, value in zip(to, values.results, strict=True)
        ]

    # --- shared memory --------------------------------------------------------------------------------------------

    def _partials(self, values: _Values, rows: int, columns: int) -> list[Buffer]:
        name = f"red_buf{self.count}"
        self.count += 1
        dtypes = [load.dtype for load in values.results]
        names = [name] if len(dtypes) == 1 else [f"{name}_{k}" for k in range(len(dtypes))]
        return [
            decl_buffer((rows, columns), dtype, own, scope="shared") for own, dtype in zip(names, dtypes, strict=True)
        ]

    def _over_warps(self, values: _Values, shared: Sequence[Buffer], group: int, threads: int) -> list[Stmt]:
        """The first lane of each warp has a partial result; afterwards all threads have the whole."""
        thread, warps = self._thread, -(-group // WARP)
        row, warp = thread // group, thread % group // WARP
        if threads == group:
            row, warp = const(0), thread // WARP
        puts = [BufferStore(buffer, load, (row, warp)) for buffer, load in zip(shared, values.results, strict=True)]
        steps: list[Stmt] = [IfThenElse((thread % WARP).equal(0), seq(puts)), barrier()]
        if group % WARP or not values.is_symmetric:
            steps += values.set_to([BufferLoad(buffer, (row, const(0))) for buffer in shared])
            for k in range(1, warps):
                steps += values.join(values.results, [BufferLoad(buffer, (row, const(k))) for buffer in shared])
            return steps
        lanes = 1
        while lanes < warps:
            lanes *= 2
        mine = thread % lanes
        (buffer,), (result,) = shared, values.results
        if lanes == warps:
            steps += values.set_to([BufferLoad(buffer, (row, mine))])
        else:
            rest = BufferStore(result.buffer, values.reducer.identity_element[0], result.indices)
            load = BufferStore(result.buffer, BufferLoad(buffer, (row, mine)), result.indices)
            steps.append(IfThenElse(mine < warps, load, rest))
        return steps + self._exchanged(values, lanes, threads)

    def _tree(self, values: _Values, parts: Sequence[Expr], over: Sequence[str]) -> Stmt:
        others = [tag for tag in self.threads if tag not in over]
        count, rows = self._extent(over), self._extent(others)
        thread, row = self._number(over), self._number(others)
        # Threads with neighbouring numbers have neighbouring elements: no two of a warp in one bank.
        is_by_row = bool(over) and min(self.threads) in over
        shared = self._partials(values, *((rows, count) if is_by_row else (count, rows)))

        def cells(index: Expr) -> list[BufferLoad]:
            return [BufferLoad(buffer, (row, index) if is_by_row else (index, row)) for buffer in shared]

        mine = cells(thread)
        puts = zip(mine, parts, strict=True)
        steps: list[Stmt] = [*[BufferStore(load.buffer, part, load.indices) for load, part in puts], barrier()]
        half = 1
        while half < count:
            half *= 2
        while half > 1:
            half //= 2
            joined = seq(values.join(mine, cells(thread + half), mine))
            steps += [IfThenElse(thread < min(half, count - half), joined), barrier()]
        steps += values.set_to(cells(const(0, thread.dtype)))
        steps.append(barrier())  # the memory may be filled again
        if values.needs_other:
            steps = [_allocated(values.other, steps)]
        return _allocated(shared, steps)


def _powers_below(count: int) -> list[int]:
    """1, 2, 4, … below `count`."""
    return [1 << k for k in range((count - 1).bit_length())]


def _allocated(buffers: Sequence[Buffer], steps: Sequence[Stmt]) -> Stmt:
    body = seq(list(steps))
    for buffer in reversed(buffers):
        declared = DeclBuffer(buffer, body)
        body = Allocate(buffer.data, buffer.dtype, tuple(buffer.shape), const(True), declared)
    return body


def _thread_axes(root: Stmt) -> list[_Axis] | None:
    """The axes of the threads of a kernel, x first; None where the number of threads is no constant."""
    extents: dict[str, Expr] = {}

    def look(node: Node) -> None:
        tag = tag_of(node) if isinstance(node, Stmt) else ""
        if tag.startswith("threadIdx"):
            assert isinstance(node, (For, AttrStmt))
            extents[tag] = node.extent if isinstance(node, For) else node.value

    pre_order_visit(root, look)
    if not all([isinstance(extent, IntImm) for extent in extents.values()]):
        return None
    return [_Axis(tag, extents[tag].value) for tag in sorted(extents)]  # type: ignore[attr-defined]


@function_pass
@deep
def reduce_over_threads(func: PrimFunc) -> PrimFunc:
    """Values are reduced over threads by shuffles in a warp, and through shared memory beyond one."""
    return func.with_(body=_Reduce().visit(func.body)) if has_threads(func.body) else func
