"""flatten_buffers: every buffer has one dimension.

    def f(A: T.Buffer((4, 8)), B: T.Buffer((4,), strides=(s,))):   →    A_1 = T.decl_buffer((32,), data=A.data)
        B[i] = A[i, j]                                                  B_1[i * s] = A_1[i * 8 + j]

Strides and offset go into the index. Where loops were fused, the parts of a fused variable meet again there, and are
put together (`A[f // 8, f % 8]` is `A_1[f]`): a vector over `f` is then one load. The function's own buffers keep their
declarations in `buffer_map`, for the checks at the call; the body sees the same memory by flat names. A buffer that
is flat already stays.
Needs: no blocks.  Leaves: one index for each load and store.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.arith import Analyzer
from loopwright.arith.index_arithmetic import IndexArithmetic, is_index_type
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    DeclBuffer,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    LetStmt,
    Node,
    Prefetch,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    any_statement,
    const,
    deep,
)
from loopwright.ir.attributes import python_value
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import INT32, INT64
from loopwright.transform.errors import BlockNotLowered
from loopwright.transform.parts.flat_index import add_index, flat_index, is_literal, mul_index, sub_index
from loopwright.transform.parts.known_ops import ADDRESS_OF
from loopwright.transform.parts.prefetch_loops import prefetch_loops
from loopwright.transform.parts.swizzles import SWIZZLE, swizzled


class _FlattenBuffers(Rewriter):
    def __init__(self, by_separators: bool = False, has_swizzles: bool = False) -> None:
        self.has_swizzles = has_swizzles  # which are simpler where the numbers of threads are known
        self.by_separators = by_separators
        self.flat: dict[Buffer, Buffer] = {}
        self.memory: dict[Var, Buffer] = {}  # what stands for an allocation whose axes are separated
        self.swizzles: dict[Var, int] = {}  # of memory, in bytes of its lines
        self.is_address = False
        self.facts = Analyzer()
        self.numbers = IndexArithmetic()

    def visit_For(self, loop: For) -> Stmt:
        self.numbers.loop(loop.loop_var, loop.min, loop.extent)
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        # A loop that runs has iterations, which says something of sizes: it is true inside the loop, and only there.
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            body = self.visit(loop.body)
        return loop.with_(min=low, extent=extent, body=body)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        self.numbers.let(node.var, node.value)
        return self.rebuild(node)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        flat = self.flat.get(buffer)
        if flat is None:
            if self.is_separated(buffer):
                flat = self.memory[buffer.data] = buffer.get_flattened_buffer()
            else:
                flat = buffer if is_flat(buffer) else flattened(buffer)
            self.flat[buffer] = flat
        return flat

    def is_separated(self, buffer: Buffer) -> bool:
        return self.by_separators and bool(buffer.axis_separators) and not buffer.strides

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        indices = rewrite_tuple(load.indices, self.visit)
        flat = self.visit_Buffer(load.buffer)
        if flat is load.buffer:
            return load.with_(indices=rewrite_tuple(indices, self.put_together))
        return BufferLoad._make(flat, self.indices(load.buffer, indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = rewrite_tuple(store.indices, self.visit)
        value = self.visit(store.value)
        flat = self.visit_Buffer(store.buffer)
        if flat is store.buffer:
            return store.with_(value=value, indices=rewrite_tuple(indices, self.put_together))
        return BufferStore(flat, value, self.indices(store.buffer, indices), span=store.span)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """One flat index, or one for the axes between any two separators."""
        if not self.is_separated(buffer):
            return (self.index(buffer, indices),)
        begins, ends = [0, *buffer.axis_separators], [*buffer.axis_separators, len(indices)]
        return tuple(
            [
                self.index(buffer.with_(shape=buffer.shape[begin:end], axis_separators=()), indices[begin:end])
                for begin, end in zip(begins, ends, strict=True)
            ]
        )

    def index(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
        """The flat index, without the quotients and remainders that cancel in it."""
        bytes = 0 if self.is_address else self.swizzles.get(buffer.data, 0)
        if bytes:
            return flat_index(buffer, swizzled(buffer, indices, bytes, self.facts))
        return self.put_together(flat_index(buffer, rewrite_tuple(indices, self._as_counted)))

    def visit_Call(self, call: Call) -> Expr:
        """An address is that of a tile: who gets it knows how the tile lies."""
        around, self.is_address = self.is_address, self.is_address or call.op is ADDRESS_OF
        result: Expr = self.rebuild(call)
        self.is_address = around
        return result

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not tag_of(node) or not self.has_swizzles:
            return self.rebuild(node)
        axis, extent = axis_of(node), self.visit(node.value)
        with self.facts.bound(axis.var, Range.from_min_extent(const(0, axis.var.dtype), axis.extent)):
            return node.with_(value=extent, body=self.visit(node.body))

    def put_together(self, index: Expr) -> Expr:
        """An index without the quotients and remainders that cancel in it; `index` itself where none do."""
        before = _divisions(index)
        if before > 1:
            short = self.facts.simplify(index)
            if _divisions(short) > 2:  # a quotient and a remainder read better than a quotient in two places
                joined = self.facts.join_quotients(short)
                short = joined if _divisions(joined) < _divisions(short) - 1 else short
            if short.dtype == index.dtype and _divisions(short) < before:
                return short
        return index

    def _as_counted(self, index: Expr) -> Expr:
        """An index in the type of the loop that counts it: a loop of more than 2^31 iterations has 64 bits."""
        if isinstance(index, Cast) and is_index_type(index.value.dtype) and index.dtype.element is INT32:
            low, high = self.numbers.operand(index.value)
            if index.dtype.lowest <= low and high <= index.dtype.highest:
                return index.value
        return index

    def visit_Allocate(self, node: Allocate) -> Stmt:
        swizzle = python_value(node.annotations.get(SWIZZLE))
        if isinstance(swizzle, int):
            self.swizzles[node.buffer_var] = swizzle
        body = self.visit(node.body)
        separated = self.memory.get(node.buffer_var)
        return node.with_(extents=one_extent(node.extents) if separated is None else separated.shape, body=body)

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return node.with_(extents=one_extent(node.extents), body=self.visit(node.body))

    def visit_Prefetch(self, node: Prefetch) -> Stmt:
        result: Stmt = self.visit(prefetch_loops(node))
        return result

    def visit_Block(self, block: Block) -> Stmt:
        raise BlockNotLowered("flatten_buffers", block)


def _divisions(index: Expr) -> int:
    """How many quotients and remainders are computed for an index."""
    count = 0
    pending: list[Node] = [index]
    while pending:  # asked of every index
        node = pending.pop()
        if not isinstance(node, (Var, IntImm)):
            count += isinstance(node, (FloorDiv, FloorMod))
            node.each_child(pending.append)
    return count


def is_flat(buffer: Buffer) -> bool:
    """Whether it has one dimension, stride 1 and offset 0 already."""
    if len(buffer.shape) != 1 or not is_literal(buffer.elem_offset, 0):
        return False
    return not buffer.strides or is_literal(buffer.strides[0], 1)


def flattened(buffer: Buffer) -> Buffer:
    """The same memory from `data` on, as one dimension."""
    size: Expr
    if buffer.strides:
        size = add_index(buffer.elem_offset, const(1, buffer.elem_offset.dtype))
        for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
            size = add_index(size, mul_index(sub_index(extent, const(1, extent.dtype)), stride))
    else:
        size = add_index(buffer.elem_offset, one_extent(buffer.shape)[0])
    return buffer.with_(shape=(size,), strides=(), elem_offset=const(0, size.dtype), axis_separators=())


def one_extent(extents: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The number of elements that the extents make, as the one extent of a flat allocation."""
    if len(extents) == 1:
        return extents
    known, count = [], 1
    for extent in extents:
        if isinstance(extent, IntImm):
            count *= extent.value
        else:
            known.append(extent)
    size: Expr = const(count, INT64 if count >= 1 << 31 else extents[0].dtype if extents else "int32")
    for extent in known:
        size = mul_index(size, extent)
    return (size,)


@function_pass
@deep
def flatten_buffers(func: PrimFunc) -> PrimFunc:
    """Every buffer has one dimension."""
    return _flatten(func, _FlattenBuffers(has_swizzles=any_statement(func.body, _is_swizzled)))


@function_pass
@deep
def flatten_buffers_by_separators(func: PrimFunc) -> PrimFunc:
    """As `flatten_buffers`, but axes on two sides of a separator stay apart: some memory has two dimensions."""
    return _flatten(func, _FlattenBuffers(by_separators=True))


def _is_swizzled(node: Node) -> bool:
    return isinstance(node, Allocate) and SWIZZLE in node.annotations


def _flatten(func: PrimFunc, rewriter: _FlattenBuffers) -> PrimFunc:
    arguments = func.argument_buffers()
    body: Stmt = rewriter.visit(func.body)
    for buffer in reversed(arguments):
        flat = rewriter.flat.get(buffer, buffer)
        if flat is not buffer:
            body = DeclBuffer(flat, body)
    return func.with_(body=body)
