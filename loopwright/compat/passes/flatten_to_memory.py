"""flatten_to_memory: every buffer has the dimensions of the memory it lies in, one unless axis separators say more.

    def f(A: T.Buffer((4, 8))):          →    def f(A: T.Buffer((4, 8))):
        A[i, j] = ...                             A_1 = T.Buffer((32,), data=A.data)
                                                  A_1[i * 8 + j] = ...

As `flatten_buffers`, with what scripts see beside it: blocks may still be there, and their regions and buffers are
flattened too; the new names of buffers are not declared; booleans are stored as int8; axis separators keep several
dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    DeclBuffer,
    Expr,
    For,
    IterVar,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    const,
    deep,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.runtime.dtype import BOOL, DataType
from loopwright.transform.parts.flat_index import add_index, mul_index
from loopwright.transform.passes.flatten_buffers import one_extent

_BYTE = DataType("int8")


class _Flatten(Rewriter):
    def __init__(self) -> None:
        self.flat: dict[Buffer, Buffer] = {}
        self.facts = Analyzer()

    # -- what is known of indices

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        with self.facts.bound(loop.loop_var, Range.from_min_extent(low, extent)):
            return loop.with_(min=low, extent=extent, body=self.visit(loop.body))

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        axis = node.node
        if not isinstance(axis, IterVar):
            return self.rebuild(node)
        value = self.visit(node.value)
        with self.facts.bound(axis.var, Range.from_min_extent(const(0, value.dtype), value)):
            return node.with_(value=value, body=self.visit(node.body))

    # -- buffers

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        flat = self.flat.get(buffer)
        if flat is None:
            flat = self.flat[buffer] = self._flattened(buffer)
        return flat

    def _flattened(self, buffer: Buffer) -> Buffer:
        groups = _groups(buffer)
        if len(groups) == buffer.ndim and not buffer.strides and buffer.dtype.element is not BOOL:
            return buffer
        if buffer.strides:
            sizes = [mul_index(buffer.shape[group[0]], buffer.strides[group[0]]) for group in groups]
        else:
            sizes = [one_extent(tuple([buffer.shape[k] for k in group]))[0] for group in groups]
        shape = tuple([self.facts.simplify(size) for size in sizes])
        separators = tuple(range(1, len(groups)))
        dtype = _BYTE.with_lanes(buffer.dtype.lanes) if buffer.dtype.element is BOOL else buffer.dtype
        return buffer.with_(shape=shape, strides=(), axis_separators=separators, dtype=dtype)

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        groups = _groups(buffer)
        if len(groups) == buffer.ndim and not buffer.strides:
            return indices
        flat = []
        for group in groups:
            index: Expr = const(0, indices[group[0]].dtype.element if group else "int32")
            for k in group:
                if buffer.strides:
                    index = add_index(index, mul_index(indices[k], buffer.strides[k]))
                else:
                    index = add_index(mul_index(index, buffer.shape[k]), indices[k])
            flat.append(self.facts.simplify(index) if index.dtype.lanes == 1 else index)
        return tuple(flat)

    # -- where they are used

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        indices = self._indices(load.buffer, rewrite_tuple(load.indices, self.visit))
        changed = load.with_(buffer=self.visit_Buffer(load.buffer), indices=indices)
        return Cast(load.dtype, changed) if changed.dtype is not load.dtype else changed

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = self._indices(store.buffer, rewrite_tuple(store.indices, self.visit))
        flat, value = self.visit_Buffer(store.buffer), self.visit(store.value)
        if flat.dtype is not store.buffer.dtype:
            value = Cast(flat.dtype.element.with_lanes(value.dtype.lanes), value)
        if flat is store.buffer and value is store.value and indices is store.indices:
            return store
        return BufferStore(flat, value, indices, span=store.span)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        parts = rewrite_tuple(region.region, self.visit)
        flat = self.visit_Buffer(region.buffer)
        if flat is region.buffer:
            return region.with_(region=parts)
        low = self._indices(region.buffer, tuple([part.min for part in parts]))
        last = self._indices(region.buffer, tuple([part.min + part.extent - 1 for part in parts]))
        ranges = [
            Range.from_min_extent(a, self.facts.simplify(b - a + 1)) for a, b in zip(low, last, strict=True)
        ]
        return BufferRegion(flat, tuple(ranges))

    def visit_Block(self, block: Block) -> Block:
        return self.rebuild(block).with_(alloc_buffers=rewrite_tuple(block.alloc_buffers, self.visit_Buffer))

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        body: Stmt = self.visit(node.body)
        return body

    def visit_Allocate(self, node: Allocate) -> Stmt:
        extents, dtype = node.extents, node.dtype
        declared = node.body.buffer if isinstance(node.body, DeclBuffer) else None
        if declared is not None and declared.data is node.buffer_var and len(declared.shape) == len(extents):
            groups: Sequence[Sequence[int]] = _groups(declared)
        else:
            groups = [range(len(extents))] if len(extents) > 1 else [[k] for k in range(len(extents))]
        if len(groups) != len(extents):
            sizes = [one_extent(tuple([extents[k] for k in group]))[0] for group in groups]
            extents = tuple([self.facts.simplify(size) for size in sizes])
        if dtype.element is BOOL:
            dtype = _BYTE.with_lanes(dtype.lanes)
        return node.with_(extents=extents, dtype=dtype, body=self.visit(node.body))

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return node.with_(extents=one_extent(node.extents), body=self.visit(node.body))


def _groups(buffer: Buffer) -> list[list[int]]:
    """The dimensions that become one each."""
    if not buffer.shape:
        return [[]]
    ends = [*buffer.axis_separators, buffer.ndim]
    starts = [0, *buffer.axis_separators]
    return [list(range(start, end)) for start, end in zip(starts, ends, strict=True)]


@named_pass("FlattenBuffer", skips_te=True)
@deep
def flatten_to_memory(func: PrimFunc) -> PrimFunc:
    """Every buffer has the dimensions of the memory it lies in."""
    return func.with_(body=_Flatten().visit(func.body))
