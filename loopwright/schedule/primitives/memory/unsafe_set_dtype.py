"""unsafe_set_dtype: a buffer holds numbers of another type; what is stored is converted, and back when it is loaded.

    B = T.alloc_buffer((8,))               →     B = T.alloc_buffer((8,), "float16")
    B[vi] = A[vi] + 1                            B[vi] = T.Cast("float16", A[vi] + 1)
    … B[vi] …                                    … T.Cast("float32", B[vi]) …

This may change values, and nobody can prove that it does not matter: the trace and what is built say *unproved*.
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    Node,
    PrimFunc,
    Rewriter,
    Stmt,
    decl_buffer,
    deep,
)
from loopwright.ir.operators import cast
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.allocations import home_of
from loopwright.schedule.rewrite.buffers import BufferName, check_plain_use, find_buffer
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def unsafe_set_dtype(view: View, block: BlockRealize, buffer_index: BufferName, dtype: str) -> Step:
    """Store a buffer that `block` writes as numbers of type `dtype`."""
    old = find_buffer("unsafe_set_dtype", block, buffer_index, "writes")
    home_of("unsafe_set_dtype", view, old, block)
    check_plain_use("unsafe_set_dtype", view.function.body, old)
    try:
        wanted = DataType(dtype)
    except LoopwrightError as error:
        raise BadStepArgument("unsafe_set_dtype", error.problem, block, 'give a type such as "float16"') from None
    if wanted is old.dtype:
        return Step(view.function, Proof.ORDER_KEPT, at=block)
    new = decl_buffer(old.shape, wanted, old.name, strides=old.strides, scope=old.scope())
    return Step(_Retyped(old, new).apply(view.function), Proof.GIVEN, at=block)


class _Retyped(Rewriter):
    def __init__(self, old: Buffer, new: Buffer) -> None:
        self.old, self.new = old, new

    @deep
    def apply(self, function: PrimFunc) -> PrimFunc:
        return function.with_(body=self.visit(function.body))

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        indices = tuple([self.visit(index) for index in load.indices])
        if load.buffer is not self.old:
            return load.with_(indices=indices)
        return cast(BufferLoad._make(self.new, indices, span=load.span), load.dtype)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        value, indices = self.visit(store.value), tuple([self.visit(index) for index in store.indices])
        if store.buffer is not self.old:
            return store.with_(value=value, indices=indices)
        kept = cast(value, self.new.dtype.with_lanes(value.dtype.lanes))
        return BufferStore(self.new, kept, indices, span=store.span)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        return region.with_(buffer=self.new) if region.buffer is self.old else region

    def visit_Buffer(self, buffer: Node) -> Node:
        return self.new if buffer is self.old else buffer

    def visit_Allocate(self, allocation: Allocate) -> Stmt:
        body = self.visit(allocation.body)
        if allocation.buffer_var is not self.old.data:
            return allocation.with_(body=body)
        return allocation.with_(buffer_var=self.new.data, dtype=self.new.dtype, body=body)
