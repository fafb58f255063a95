"""widen_accesses: vector statements load and store 16 bytes at once, and compute lane by lane in between.

    B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)] * x    →    A_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
                                                                B_lanes[T.Ramp(0, 1, 4)] = A_lanes[T.Ramp(0, 1, 4)] * x
                                                                B[T.Ramp(i * 4, 1, 4)] = B_lanes[T.Ramp(0, 1, 4)]

For targets whose threads are scalar code, but load and store up to 16 bytes with one instruction: the first and the
last statement stay vectors, `scalarize_vectors` makes a loop of the one between, and the code generator keeps the lanes
in registers. An access becomes wide where its index is proved a multiple of its lanes, for sizes that are such
multiples where it takes that (`analysis/wide_accesses.py`). What a condition guards is loaded under it: a choice
between two sides by one condition for all lanes becomes an `if`.

Needs: `vectorize_loops`, flat buffers.
"""

from __future__ import annotations

from collections.abc import Collection

from loopwright.analysis.thread_axes import scope_of
from loopwright.analysis.wide_accesses import free_integers, wide_index, widths
from loopwright.ir import (
    Allocate,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    Ramp,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    deep,
    seq,
    structural_equal,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.flat_index import add_index, mul_index
from loopwright.transform.parts.known_ops import IF_THEN_ELSE
from loopwright.transform.parts.statements import StmtRewriter, flat_seq
from loopwright.transform.parts.vectorize_expr import sure_loads


class _Widen(StmtRewriter):
    def __init__(self, sizes: Collection[Var]) -> None:
        self.sizes = sizes  # what whoever launches knows, and can ask to be a multiple of something

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        node = self.rebuild(node)
        if node.value.dtype.lanes == 1:
            return node
        loads = _WideLoads(self, node.value)
        return loads.before(node.with_(value=loads.value))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        lanes, index = store.value.dtype.lanes, store.indices[-1]
        if lanes == 1 or store.buffer.dtype.lanes != 1 or len(store.indices) != 1:
            return store
        choice = store.value
        if isinstance(choice, Call) and choice.op is IF_THEN_ELSE and choice.args[0].dtype.lanes == 1:
            then, otherwise = [self.visit(store.with_(value=side)) for side in choice.args[1:]]
            return IfThenElse(choice.args[0], then, otherwise)
        if isinstance(choice, BufferLoad) and isinstance(index, Ramp):
            return self._copied(store, choice, index)
        return self._computed(store)

    def _copied(self, store: BufferStore, load: BufferLoad, index: Ramp) -> Stmt:
        """A copy has no lanes in between where both sides are wide."""
        source = load.indices[-1]
        if not isinstance(source, Ramp) or load.buffer.dtype is not store.buffer.dtype:
            return self._computed(store)
        into, out_of = self.width(store.buffer, index), self.width(load.buffer, source)
        if _is_local(load.buffer):
            wanted = 1 if _is_local(store.buffer) else into
        else:
            wanted = out_of if _is_local(store.buffer) else max(into, out_of)
        if wanted == 1 or (wanted == into == out_of == index.lanes and not store.buffer.dtype.is_bool):
            return store
        # A byte of bool need not be 0 or 1; what a lane writes is.
        if min(into, out_of) < wanted or store.buffer.dtype.is_bool:
            return self._computed(store)
        return _pieces(store.buffer, index, load.buffer, source, wanted)

    def _computed(self, store: BufferStore) -> Stmt:
        """A statement whose lanes are computed one by one."""
        loads = _WideLoads(self, store.value)
        index, lanes = store.indices[0], store.value.dtype.lanes
        width = 1 if _is_local(store.buffer) else self.width(store.buffer, index)
        if width == 1 or not isinstance(index, Ramp):
            return loads.before(store.with_(value=loads.value))
        kept = _lanes_of(store.buffer, lanes)
        fill = BufferStore(kept, loads.value, (_all(kept),))
        write = _pieces(store.buffer, index, kept, _all(kept), width)
        return loads.before(_allocate(kept, seq([fill, write])))

    def width(self, buffer: Buffer, index: Expr) -> int:
        """How many lanes one access may have; 1 where each has its own."""
        if not isinstance(index, Ramp):
            return 1
        for width in widths(buffer.dtype.nbytes, index.lanes):
            if wide_index(buffer, Ramp(index.base, index.stride, width), self.sizes) is not None:
                return width
        return 1


class _WideLoads(Rewriter):
    """The wide loads of a value: what they load into, and the value with that in their place."""

    def __init__(self, owner: _Widen, value: Expr) -> None:
        self.loads: list[tuple[BufferLoad, Buffer]] = []
        self.copies: list[Stmt] = []
        for load in sure_loads(value):
            index = load.indices[-1]
            if len(load.indices) != 1 or not isinstance(index, Ramp) or _is_local(load.buffer) or self._known(load):
                continue
            width = owner.width(load.buffer, index)
            if width > 1:
                kept = _lanes_of(load.buffer, index.lanes)
                self.loads.append((load, kept))
                self.copies.append(_pieces(kept, _all(kept), load.buffer, index, width))
        self.value: Expr = self.visit(value) if self.loads else value

    def before(self, statement: Stmt) -> Stmt:
        """The loads, then the statement."""
        result = seq([*self.copies, statement])
        for _, kept in reversed(self.loads):
            result = _allocate(kept, result)
        return result

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        kept = self._known(load)
        return self.rebuild(load) if kept is None else BufferLoad(kept, (_all(kept),))

    def _known(self, load: BufferLoad) -> Buffer | None:
        for other, kept in self.loads:
            if other is load or structural_equal(other, load):
                return kept
        return None


def _is_local(buffer: Buffer) -> bool:
    """Whether the memory is a thread's own, which is registers where the compiler can see to it."""
    return scope_of(buffer.data) == "local"


def _lanes_of(buffer: Buffer, lanes: int) -> Buffer:
    return decl_buffer((lanes,), buffer.dtype, f"{buffer.name}_lanes", scope="local")


def _all(buffer: Buffer) -> Ramp:
    size = buffer.shape[0]
    assert isinstance(size, IntImm)
    return Ramp(const(0), const(1), size.value)


def _pieces(into: Buffer, index: Ramp, out_of: Buffer, source: Ramp, width: int) -> Stmt:
    """into[index] = out_of[source], so many lanes at once."""

    def piece(first: Expr) -> Stmt:
        def at(ramp: Ramp) -> Ramp:
            return Ramp(add_index(ramp.base, cast(first, ramp.base.dtype)), ramp.stride, width)

        return BufferStore(into, BufferLoad(out_of, (at(source),)), (at(index),))

    if index.lanes == width:
        return piece(const(0))
    number = Var("piece", index.base.dtype)
    count = const(index.lanes // width, number.dtype)
    body = piece(mul_index(number, const(width, number.dtype)))
    return For(number, const(0, number.dtype), count, ForKind.UNROLLED, body)


def _allocate(buffer: Buffer, body: Stmt) -> Stmt:
    return Allocate(buffer.data, buffer.dtype, buffer.shape, const(True, "bool"), body)


@function_pass
@deep
def widen_accesses(func: PrimFunc) -> PrimFunc:
    """Vector statements load and store up to 16 bytes at once."""
    return func.with_(body=_Widen(free_integers(func.body)).visit(func.body))
