"""write_allocations: the buffers of a block become allocations around its body.

    with T.block("root"):                    →    with T.block("root"):
        B = T.alloc_buffer((4, 8))                    B_data = T.allocate([4, 8], "float32", "global")
        ...                                           B = T.decl_buffer((4, 8), data=B_data)
                                                      ...

What blocks asked for with `buffer_dim_align` (strides of a buffer they write) is noted at its allocation.
Needs: no init left (it may use the buffers, and must stand inside their allocation; `write_inits` sees to that).
Leaves: no block with alloc_buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from loopwright.arith import simplified_size
from loopwright.ir import (
    Allocate,
    Block,
    Buffer,
    BufferRealize,
    DeclBuffer,
    Expr,
    IntImm,
    PrimFunc,
    Stmt,
    const,
    deep,
    product,
    variables_in,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import BadAnnotation
from loopwright.transform.parts.statements import StmtRewriter

ALIGN_KEY: Final = "buffer_dim_align"


class _WriteAllocations(StmtRewriter):
    def __init__(self) -> None:
        self.aligned: dict[Buffer, list[list[int]]] = {}  # [axis, factor, offset] each, as blocks asked for

    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        self._note_alignment(block)
        if not block.alloc_buffers:
            return block
        body = block.body
        for buffer in reversed(block.alloc_buffers):
            body = allocate_around(buffer, body, self.aligned.get(buffer))
        return block.with_(body=body, alloc_buffers=())

    def _note_alignment(self, block: Block) -> None:
        requests: Any = block.annotations.get(ALIGN_KEY, ())
        for which, *request in _read_requests(block, requests):
            self.aligned.setdefault(block.writes[which].buffer, []).append(request)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        """What blocks asked for holds also where memory is allocated further in."""
        body = self.visit(node.body)
        requests = [one for buffer, result in self.aligned.items() if buffer.data is node.buffer_var for one in result]
        notes = {ALIGN_KEY: requests, **node.annotations} if requests else node.annotations
        return node.with_(body=body, annotations=notes) if notes is not node.annotations else node.with_(body=body)

    def visit_BufferRealize(self, node: BufferRealize) -> Stmt:
        """The whole buffer is stored: its bounds lie inside its shape."""
        return allocate_around(node.buffer, self.visit(node.body))


def _read_requests(block: Block, requests: Any) -> list[list[int]]:
    """[buffer, axis, factor, offset] each, of the buffers that the block writes."""
    try:
        result = [[int(number) for number in request] for request in requests]
    except (TypeError, ValueError):
        result = [[]]
    for request in result:
        is_whole = len(request) == 4 and 0 <= request[0] < len(block.writes) and request[2] > 0
        rank = len(block.writes[request[0]].buffer.shape) if is_whole else 0
        if not is_whole or not -rank <= request[1] < rank:
            wanted = f"[buffer, axis, factor, offset] for some of the {len(block.writes)} buffers that it writes"
            raise BadAnnotation(ALIGN_KEY, requests, wanted, block)
    return result


def allocate_around(buffer: Buffer, body: Stmt, aligned: Sequence[Sequence[int]] | None = None) -> Stmt:
    """`body` with memory for `buffer`."""
    notes = {ALIGN_KEY: aligned} if aligned else {}
    inner = DeclBuffer(buffer, body)
    return Allocate(buffer.data, buffer.dtype, buffer.allocated_extents(), const(True), inner, notes)


def strides_for(shape: Sequence[Expr], aligned: Sequence[Sequence[int]]) -> tuple[Expr, ...]:
    """Strides of a buffer of that shape, each of the aligned ones `offset` modulo `factor`; () where none is needed."""
    wanted = {axis % len(shape): (factor, offset) for axis, factor, offset in aligned}
    strides: list[Expr] = []
    stride: Expr = const(1, shape[-1].dtype)
    is_compact = True
    for axis in reversed(range(len(shape))):
        if axis in wanted and isinstance(stride, IntImm):
            factor, offset = wanted[axis]
            padding = (offset - stride.value) % factor
            is_compact = is_compact and not padding
            stride = const(stride.value + padding, stride.dtype)
        strides.append(stride)
        stride = product([stride, shape[axis]], stride.dtype)
    return () if is_compact else tuple(reversed(strides))


def allocated_size(buffer: Buffer) -> Expr:
    """How many elements from `data` on hold the buffer: one past the last element's offset."""
    last = buffer.elem_offset
    for extent, stride in zip(buffer.shape, buffer.effective_strides(), strict=True):
        last = last + (extent - 1) * stride
    size = last + 1
    return size if variables_in(size) else simplified_size(size)


@function_pass
@deep
def write_allocations(func: PrimFunc) -> PrimFunc:
    """The buffers of a block become allocations around its body."""
    return func.with_(body=_WriteAllocations().visit(func.body))
