"""write_allocations: the buffers of a block become allocations around its body.

    with T.block("root"):                    →    with T.block("root"):
        B = T.alloc_buffer((4, 8))                    B_data = T.allocate([4, 8], "float32", "global")
        ...                                           B = T.decl_buffer((4, 8), data=B_data)
                                                      ...

Needs: no init left (it may use the buffers, and must stand inside their allocation; `write_inits` sees to that).
Leaves: no block with alloc_buffers.
"""

from __future__ import annotations

from loopwright.ir import Allocate, Block, Buffer, DeclBuffer, Expr, PrimFunc, Stmt, const, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.statements import StmtRewriter


class _WriteAllocations(StmtRewriter):
    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        if not block.alloc_buffers:
            return block
        body = block.body
        for buffer in reversed(block.alloc_buffers):
            body = allocate_around(buffer, body)
        return block.with_(body=body, alloc_buffers=())


def allocate_around(buffer: Buffer, body: Stmt) -> Stmt:
    """`body` with memory for `buffer`."""
    extents = (allocated_size(buffer),) if buffer.strides else buffer.shape
    return Allocate(buffer.data, buffer.dtype, extents, const(True), DeclBuffer(buffer, body))


def allocated_size(buffer: Buffer) -> Expr:
    """How many elements from `data` on hold the buffer: one past the last element's offset."""
    last = buffer.elem_offset
    for extent, stride in zip(buffer.shape, buffer.effective_strides(), strict=True):
        last = last + (extent - 1) * stride
    return last + 1


@function_pass
@deep
def write_allocations(func: PrimFunc) -> PrimFunc:
    """The buffers of a block become allocations around its body."""
    return func.with_(body=_WriteAllocations().visit(func.body))
