"""vectorize_loops: a vectorized loop becomes vector statements.

    for i in T.vectorized(4):              →    B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)] + T.Broadcast(x, 4)
        B[i] = A[i] + x

All lanes run each statement together, its loads before its stores. Where that is not what the program means, the
statement runs lane by lane, in order: under a condition that differs between lanes (a guarded load stays guarded), for
a cell that several lanes update, for calls without a vector form. Memory allocated inside the loop exists once a lane:
the lanes' copies are interleaved, so that they are neighbours. Loops of very many lanes run in chunks, of as many lanes
as the annotation `vector_lanes` says. A vectorized loop around another one is serial (see `analysis/vector_loops.py`).

Needs: `flatten_buffers` (a lane is a stride of the flat index).  Leaves: no vectorized loop.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.analysis.vector_loops import runs_in_lockstep
from loopwright.arith import Analyzer
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    Ramp,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    While,
    collect,
    const,
    deep,
    pre_order_visit,
    seq,
)
from loopwright.ir.annotations import VECTOR_LANES
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import VectorExtentUnknown
from loopwright.transform.on_request.convert_for_loops_to_serial import run_serially
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.cpu_of import cpu_of
from loopwright.transform.parts.flat_index import add_index, mul_index
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.known_ops import ADDRESS_OF
from loopwright.transform.parts.proved_in_bounds import ProvedInBounds
from loopwright.transform.parts.purity import loads_from
from loopwright.transform.parts.statements import StmtRewriter, flat_seq
from loopwright.transform.parts.vectorize_expr import NeedsLanes, VectorizeExpr

_UNROLL_LANES = 16  # up to here, statements that run lane by lane are unrolled


class _VectorizeLoops(StmtRewriter):
    def __init__(self, max_lanes: int, arguments: Sequence[Buffer] = ()) -> None:
        self.max_lanes = max_lanes
        self.memory = ProvedInBounds()
        for buffer in arguments:
            self.memory.add_argument(buffer)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        self.memory.numbers.let(node.var, node.value)
        return self.rebuild(node)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        self.memory.add(node)
        return self.rebuild(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not tag_of(node):
            return self.rebuild(node)
        # What a thread is called has a range as loops have: an index of it stays within its type when lanes are added.
        with self.memory.facts.bound(axis_of(node).var, Range.from_min_extent(const(0, node.value.dtype), node.value)):
            return self.rebuild(node)

    def visit_For(self, loop: For) -> Stmt:
        if not runs_in_lockstep(loop):
            with self.memory.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
                loop = self.rebuild(loop)
            return loop.with_(kind=ForKind.SERIAL) if loop.kind is ForKind.VECTORIZED else loop
        if not isinstance(loop.extent, IntImm):
            raise VectorExtentUnknown(loop)
        lanes = loop.extent.value
        if lanes <= 1:
            return loop.with_(kind=ForKind.SERIAL)
        width = min(self.max_lanes, _asked_lanes(loop))
        if lanes > _UNROLL_LANES and lanes & (lanes - 1) and _loads_truths(loop.body):
            # As masks, which LLVM makes lane by lane where their number is odd: vectors of 128, 64, 32 and 8 for 232.
            width = min(width, 1 << lanes.bit_length() - 1)
        if lanes > width and lanes_are_independent(loop.body):
            return self._in_chunks(loop, lanes, width)
        return self._vectors(loop.loop_var, lanes, loop.body)

    def _vectors(self, lane: Var, lanes: int, body: Stmt) -> Stmt:
        with self.memory.facts.bound(lane, Range(0, lanes)):
            return _VectorizeStmt(lane, lanes, self.memory).visit(body)

    def _in_chunks(self, loop: For, lanes: int, width: int) -> Stmt:
        """A serial loop over full vectors, then the rest as one shorter vector."""
        var = loop.loop_var
        zero = const(0, var.dtype)
        chunk = Var(f"{var.name}_chunk", var.dtype)
        body = substitute_folding(loop.body, {var: chunk * width + var})
        parts: list[Stmt] = []
        with self.memory.facts.bound(chunk, Range(0, lanes // width)):
            vector = self._vectors(var, width, body)
        parts.append(For(chunk, zero, const(lanes // width, var.dtype), ForKind.SERIAL, vector))
        if lanes % width:
            lane = Var(var.name, var.dtype)
            index = lane + const(lanes // width * width, var.dtype)
            tail = clone_definitions(substitute_folding(loop.body, {var: index}))
            rest = loop.with_(loop_var=lane, extent=const(lanes % width, var.dtype), body=tail)
            parts.append(self.visit(rest))
        return seq(parts)


def _loads_truths(body: Stmt) -> bool:
    return any(load.buffer.dtype.is_bool for load in collect(body, BufferLoad))


def _asked_lanes(loop: For) -> int:
    """How many lanes the loop's annotation wants at most."""
    asked = loop.annotations.get(VECTOR_LANES)
    count = asked.value if isinstance(asked, IntImm) else asked
    return count if isinstance(count, int) and count > 1 else sys.maxsize


def lanes_are_independent(body: Stmt) -> bool:
    """Whether each lane reads, of what the loop writes, only the cell it writes: then lanes may run in any groups."""
    touched: dict[Var, list[tuple[Expr, ...]]] = {}  # by memory: the indices of all loads and stores
    written: set[Var] = set()

    def look(node: object) -> None:
        if isinstance(node, (BufferLoad, BufferStore)):
            touched.setdefault(node.buffer.data, []).append(node.indices)
            if isinstance(node, BufferStore):
                written.add(node.buffer.data)

    pre_order_visit(body, look)
    facts = Analyzer()
    for data in written:
        first, *others = touched[data]
        for other in others:
            if len(other) != len(first):
                return False
            for a, b in zip(first, other, strict=True):
                if not facts.can_prove_equal(a, b):
                    return False
    return True


class _VectorizeStmt(Rewriter):
    """Rewrites the body of one vectorized loop."""

    def __init__(self, lane: Var, lanes: int, memory: ProvedInBounds) -> None:
        self.lane, self.lanes = lane, lanes
        self.exprs = VectorizeExpr(lane, lanes, memory)
        self.ran_by_lane = 0  # how many statements could not become vectors

    def by_lane(self, statement: Stmt) -> Stmt:
        """The statement once a lane, in order."""
        self.ran_by_lane += 1
        lane = Var(self.lane.name, self.lane.dtype)
        kind = ForKind.UNROLLED if self.lanes <= _UNROLL_LANES else ForKind.SERIAL
        body = substitute_folding(statement, {self.lane: lane})
        return For(lane, const(0, lane.dtype), const(self.lanes, lane.dtype), kind, body)

    def uniform(self, expr: Expr) -> Expr:
        """An expression all lanes agree on."""
        new: Expr = self.exprs.visit(expr)
        if new.dtype.lanes != expr.dtype.lanes:
            raise NeedsLanes
        return new

    def first_lane(self, expr: Expr) -> Expr:
        """What an expression is in lane 0, the first to fail where a condition all lanes agree on does not hold."""
        new = substitute_folding(expr, {self.lane: const(0, self.lane.dtype)})
        if self.exprs.depends(new):
            raise NeedsLanes
        return new

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_Expr(self, expr: Expr) -> Expr:
        return self.uniform(expr)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        try:
            return self._store(store)
        except NeedsLanes:
            return self.by_lane(store)

    def _store(self, store: BufferStore) -> Stmt:
        if store.value.dtype.lanes > 1 or len(store.indices) != 1:
            if any(self.exprs.depends(part) for part in (*store.indices, store.value)):
                raise NeedsLanes
            return store if not loads_from(store.value, store.buffer.data) else self.by_lane(store)
        value, index = self.exprs.visit(store.value), self.exprs.visit(store.indices[0])
        reads_itself = loads_from(store.value, store.buffer.data)
        if index.dtype.lanes == 1:
            # One cell for all lanes. Storing one value into it many times is storing it once.
            if value.dtype.lanes > 1 or reads_itself:
                raise NeedsLanes
            return store.with_(value=value, indices=rewrite_tuple(store.indices, lambda _: index))
        steps = isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value != 0
        if reads_itself and not steps:
            raise NeedsLanes  # two lanes may update one cell
        return BufferStore(store.buffer, self.exprs.vector(value), (index,), span=store.span)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        try:
            condition = self.uniform(node.condition)
        except NeedsLanes:
            return self.by_lane(node)
        otherwise = None if node.else_case is None else self.visit(node.else_case)
        return node.with_(condition=condition, then_case=self.visit(node.then_case), else_case=otherwise)

    def visit_For(self, loop: For) -> Stmt:
        try:
            low, extent = self.uniform(loop.min), self.uniform(loop.extent)
        except NeedsLanes:
            return self.by_lane(loop)
        return loop.with_(min=low, extent=extent, body=self.visit(loop.body))

    def visit_While(self, node: While) -> Stmt:
        return self.by_lane(node)  # lanes may stop at different times

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        self.exprs.memory.numbers.let(node.var, node.value)
        try:
            value = self.exprs.visit(node.value)
        except NeedsLanes:
            return self.by_lane(node)
        if value.dtype.lanes == node.value.dtype.lanes:
            return node.with_(value=value, body=self.visit(node.body))
        before = self.ran_by_lane
        var = Var(node.var.name, value.dtype)
        self.exprs.values[node.var] = var
        with self.exprs.after(node.value):
            body = self.visit(node.body)
        del self.exprs.values[node.var]
        if self.ran_by_lane > before:
            # A statement that runs lane by lane may use the variable, whose lanes are not to be had one by one.
            return self.by_lane(node)
        return node.with_(var=var, value=value, body=body)

    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        try:
            condition, message = self.uniform(node.condition), self.first_lane(node.message)
            return node.with_(condition=condition, message=message, body=self.visit(node.body))
        except NeedsLanes:
            return self.by_lane(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        try:
            return node.with_(value=self.uniform(node.value), body=self.visit(node.body))
        except NeedsLanes:
            return self.by_lane(node)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        try:
            return node.with_(value=self.uniform(node.value))
        except NeedsLanes:
            return self.by_lane(node)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        return node.with_(body=self.visit(node.body))

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return node.with_(body=self.visit(node.body))

    def visit_Allocate(self, node: Allocate) -> Stmt:
        try:
            extents = rewrite_tuple(node.extents, self.uniform)
            body = _interleave(node, self.lane, self.lanes)
        except NeedsLanes:
            return self.by_lane(node)
        size = mul_index(extents[0], const(self.lanes, extents[0].dtype))
        return node.with_(extents=(size,), body=self.visit(body))


class _Interleave(Rewriter):
    """Every access to memory private to a lane goes to that lane's copy: element e of lane l lies at e * lanes + l."""

    def __init__(self, data: Var, lane: Var, lanes: int) -> None:
        self.data, self.lane, self.lanes = data, lane, lanes
        self.buffers: dict[Buffer, Buffer] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data is not self.data:
            return buffer
        if buffer not in self.buffers:
            size = buffer.shape[0]
            self.buffers[buffer] = buffer.with_(shape=(mul_index(size, const(self.lanes, size.dtype)),))
        return self.buffers[buffer]

    def _index(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if len(indices) != 1 or indices[0].dtype.lanes > 1:
            raise NeedsLanes
        index = self.visit(indices[0])
        return (add_index(mul_index(index, const(self.lanes, index.dtype)), self.lane.astype(index.dtype)),)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer.data is not self.data:
            return self.rebuild(load)
        return load.with_(buffer=self.visit_Buffer(load.buffer), indices=self._index(load.indices))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer.data is not self.data:
            return self.rebuild(store)
        indices = self._index(store.indices)
        return store.with_(buffer=self.visit_Buffer(store.buffer), value=self.visit(store.value), indices=indices)

    def visit_Var(self, var: Var) -> Expr:
        if var is self.data:
            raise NeedsLanes  # a bare pointer: whoever gets it expects one lane's memory
        return var

    def visit_Call(self, call: Call) -> Expr:
        if call.op is ADDRESS_OF and loads_from(call, self.data):
            raise NeedsLanes
        return self.rebuild(call)


def _interleave(node: Allocate, lane: Var, lanes: int) -> Stmt:
    if len(node.extents) != 1:
        raise NeedsLanes
    body: Stmt = _Interleave(node.buffer_var, lane, lanes).visit(node.body)
    return body


@function_pass
@deep
def vectorize_loops(func: PrimFunc) -> PrimFunc:
    """A vectorized loop becomes vector statements."""
    if PassContext.current().setting("tir.disable_vectorize"):
        return func.with_(body=run_serially(func.body, ForKind.VECTORIZED))
    # Four registers of bytes are sixteen of float32: what an inner loop can hold. More lanes than that only spill.
    max_lanes = 4 * cpu_of(func).native_vector_lanes("int8")
    return func.with_(body=_VectorizeLoops(max_lanes, func.argument_buffers()).visit(func.body))
