"""load_early: an unrolled loop loads what all of its iterations need before the first one computes.

    for u in T.unroll(4):                               A_lanes = alloc(16)
        A_lanes = alloc(4)                              for u in T.unroll(4):
        A_lanes[0:4] = A[u * 1024 + t : …]         →        A_lanes[u * 4 : …] = A[u * 1024 + t : …]
        B_lanes[0:4] = erf(A_lanes[0:4])                for u in T.unroll(4):
        B[u * 1024 + t : …] = B_lanes[0:4]                  B_lanes[0:4] = erf(A_lanes[u * 4 : …])
                                                            B[u * 1024 + t : …] = B_lanes[0:4]

Loads that are under way together hide the latency of memory. The compiler of a GPU does this by itself where iterations
are straight lines, but moves no load across a branch, and divisions and many functions have one. Nothing that the loop
writes is loaded: arguments of a kernel are different memory (`__restrict__`).

Needs: `widen_accesses`, whose loads are copies into memory of the thread.  Leaves: loops that are straight lines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.thread_axes import scope_of
from loopwright.ir import (
    Allocate,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    ForKind,
    IntImm,
    Mod,
    PrimFunc,
    Ramp,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    cast,
    collect,
    const,
    decl_buffer,
    deep,
    seq,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.flat_index import add_index, mul_index
from loopwright.transform.parts.statements import StmtRewriter

_MOST_BYTES: Final = 256  # of registers that a thread has loaded into before it computes
_STRAIGHT: Final = frozenset(
    f"tir.{name}" for name in "fma abs copysign reinterpret likely floor ceil trunc sqrt shift_left bitwise_and".split()
)


class _LoadEarly(StmtRewriter):
    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if loop.kind is not ForKind.UNROLLED or not isinstance(loop.extent, IntImm) or loop.extent.value < 2:
            return loop
        parts = _parts_of(loop.body)
        if parts is None or not _has_branches(parts.rest):
            return loop
        count = loop.extent.value
        if sum([_size(buffer) * buffer.dtype.nbytes for buffer in parts.own]) * count > _MOST_BYTES:
            return loop
        larger = {
            buffer.data: decl_buffer((_size(buffer) * count,), buffer.dtype, buffer.name, scope="local")
            for buffer in parts.own
        }
        early = Var(loop.loop_var.name, loop.loop_var.dtype)
        loads = _Versions(larger, loop.loop_var, early, count).visit(seq(parts.loads))
        rest = _Versions(larger, loop.loop_var, loop.loop_var, count).visit(parts.rest)
        result = seq([loop.with_(loop_var=early, body=loads), loop.with_(body=rest)])
        for buffer in reversed(larger.values()):
            result = Allocate(buffer.data, buffer.dtype, buffer.shape, const(True, "bool"), result)
        return result


class _Parts(NamedTuple):
    """An iteration: what it loads into memory of its own, and what it does then."""

    own: Sequence[Buffer]
    loads: Sequence[Stmt]
    rest: Stmt


def _parts_of(body: Stmt) -> _Parts | None:
    """The parts of an iteration that begins with loads; None of any other."""
    allocated: list[Var] = []
    while isinstance(body, Allocate) and scope_of(body.buffer_var) == "local":
        allocated.append(body.buffer_var)
        body = body.body
    statements = list(body.seq) if isinstance(body, SeqStmt) else [body]
    count = 0
    while count < len(statements) and _is_load(statements[count], allocated):
        count += 1
    loads, rest = statements[:count], statements[count:]
    own = {store.buffer.data: store.buffer for load in loads for store in collect(load, BufferStore)}
    if not own or not rest or set(own) != set(allocated):
        return None
    read = {load.buffer.data for one in loads for load in collect(one, BufferLoad)}
    written = {store.buffer.data for one in rest for store in collect(one, BufferStore)}
    if written & (read | set(own)):
        return None
    if not all([is_pure_call(call) for one in rest for call in collect(one, Call)]):
        return None
    return _Parts(list(own.values()), loads, seq(rest))


def _is_load(statement: Stmt, allocated: Collection[Var]) -> bool:
    """Whether a statement copies vectors into memory that the iteration allocates."""
    while isinstance(statement, For) and statement.kind is ForKind.UNROLLED:
        statement = statement.body
    if not isinstance(statement, BufferStore) or not isinstance(statement.value, BufferLoad):
        return False
    source = statement.value.buffer.data
    return statement.buffer.data in allocated and source not in allocated and statement.value.dtype.lanes > 1


def _has_branches(rest: Stmt) -> bool:
    """Whether the compiler may branch in what is computed: a division has a slow path, a function as it likes."""
    quotients = [*collect(rest, Div, Mod), *collect(rest, FloorDiv, FloorMod)]
    if any([node.dtype.is_float for node in quotients]):
        return True
    return any([call.op.name not in _STRAIGHT for call in collect(rest, Call)])


def _size(buffer: Buffer) -> int:
    size = buffer.shape[0]
    assert isinstance(size, IntImm)
    return size.value


class _Versions(Rewriter):
    """Puts what one iteration has in memory behind what the iterations before it have."""

    def __init__(self, larger: Mapping[Var, Buffer], loop_var: Var, now: Var, count: int) -> None:
        self.larger, self.loop_var, self.now, self.count = larger, loop_var, now, count

    def visit_Var(self, var: Var) -> Expr:
        return self.now if var is self.loop_var else var

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        buffer = self.larger.get(load.buffer.data)
        return load if buffer is None else BufferLoad(buffer, (self._index(load.indices[0], buffer),))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        buffer = self.larger.get(store.buffer.data)
        if buffer is None:
            return store
        return BufferStore(buffer, store.value, (self._index(store.indices[0], buffer),))

    def _index(self, index: Expr, buffer: Buffer) -> Expr:
        first = index.base if isinstance(index, Ramp) else index
        behind = mul_index(cast(self.now, first.dtype), const(_size(buffer) // self.count, first.dtype))
        moved = add_index(first, behind)
        return Ramp(moved, index.stride, index.lanes) if isinstance(index, Ramp) else moved


@function_pass
@deep
def load_early(func: PrimFunc) -> PrimFunc:
    """Unrolled loops with branches load what they need before they compute."""
    return func.with_(body=_LoadEarly().visit(func.body))
