"""check_strides: no two elements of an allocated buffer share memory.

    T.alloc_buffer((4, 4), strides=[8, 1])      rows of 4 elements, 8 apart
    T.alloc_buffer((4, 4), strides=[1, 1])      refused: B[0, 1] and B[1, 0] are one place

Every analysis takes the elements of a buffer for places of their own. Written arguments whose strides are declared are
held to the same rule when the function is called.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    Buffer,
    BufferRealize,
    DeclBuffer,
    Expr,
    IntImm,
    Node,
    PrimFunc,
    Stmt,
    Var,
    const,
    pre_order_visit,
)
from loopwright.runtime.errors import LoopwrightError


class StridesMeet(LoopwrightError, ValueError):
    """An allocated buffer is declared with strides that lead from two indices to one place, or may do so.

    The stride of each dimension must reach beyond all elements along the dimensions of smaller strides. Leave `strides`
    out for rows without gaps; `storage_align` puts gaps between them.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def f(C: T.Buffer((4, 4))):
            B = T.alloc_buffer((4, 4), strides=[1, 1])
            for i, j in T.grid(4, 4):
                B[i, j] = T.float32(1)
                C[i, j] = B[i, j]

        tir.Schedule(f)
    """

    code = "LW0826"

    def __init__(self, function: PrimFunc, buffer: Buffer) -> None:
        shape, strides = (", ".join([repr(item) for item in items]) for items in (buffer.shape, buffer.strides))
        super().__init__(
            f"{function.name}: two elements of {buffer.name} may share memory: its shape is ({shape}), its strides are "
            f"({strides})",
            hint="leave strides out, or let each reach beyond the elements along the dimensions of smaller ones",
        )


def check_strides(function: PrimFunc) -> None:
    """Raise StridesMeet for an allocated buffer whose elements are not proved to have places of their own."""
    result: dict[Buffer, None] = {}
    allocated: set[Var] = set()

    def look(node: Node) -> bool:
        if isinstance(node, Block):
            result.update(dict.fromkeys(node.alloc_buffers))
        elif isinstance(node, (Allocate, AllocateConst)):
            allocated.add(node.buffer_var)
        elif isinstance(node, (DeclBuffer, BufferRealize)):
            if isinstance(node, BufferRealize) or node.buffer.data in allocated:
                result[node.buffer] = None
        return isinstance(node, Stmt)

    pre_order_visit(function.body, look)
    for buffer in result:
        if buffer.strides and not elements_apart(buffer):
            raise StridesMeet(function, buffer)


def elements_apart(buffer: Buffer) -> bool:
    """Whether the strides are proved to keep all elements of the buffer apart."""
    facts = Analyzer()
    axes = [axis for axis in zip(buffer.shape, buffer.strides, strict=True) if not facts.can_prove(axis[0] <= 1)]
    if any([isinstance(extent, IntImm) and extent.value <= 0 for extent in buffer.shape]):
        return True
    if all([isinstance(stride, IntImm) for _, stride in axes]):
        axes.sort(key=lambda axis: -abs(axis[1].value))  # type: ignore[attr-defined]
    below: Expr | None = None
    for extent, stride in reversed(axes):
        step = const(abs(stride.value), stride.dtype) if isinstance(stride, IntImm) else stride
        least = const(0, step.dtype) if below is None else below.astype(step.dtype)
        if not facts.can_prove(step > least):
            return False
        reach = (extent.astype(step.dtype) - const(1, step.dtype)) * step
        below = reach if below is None else below.astype(step.dtype) + reach
    return True
