"""unroll_loops: a loop marked unrolled is written out.

    for i in T.unroll(3):        →    B[0] = A[0]
        B[i] = A[i]                   B[1] = A[1]
                                      B[2] = A[2]

For reading, and for C. The LLVM pipeline does not run it: there unrolled loops stay loops that carry a mark, since
writing out thousands of nodes costs more than the rest of the compilation. `tir.UnrollLoop` and pragmas may ask for
serial loops to be unrolled as well (`auto_unroll.py`).
Needs: loops from 0.  Leaves: no unrolled loop.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import (
    BufferStore,
    Evaluate,
    Expr,
    For,
    ForKind,
    IntImm,
    PrimFunc,
    Stmt,
    const,
    deep,
    pre_order_visit,
    seq,
)
from loopwright.ir.pass_config import UnrollLoopConfig
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import UnrollExtentUnknown
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.flat_index import add_index
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.passes.auto_unroll import mark_short_loops


class _UnrollLoops(StmtRewriter):
    def __init__(self, config: UnrollLoopConfig) -> None:
        self.config = config

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if loop.kind is ForKind.UNROLLED and not isinstance(loop.extent, IntImm):
            raise UnrollExtentUnknown(loop)
        if not self._wanted(loop):
            return loop
        count = int(loop.extent)  # type: ignore[call-overload]
        copies: list[Stmt] = []
        for step in range(count):
            body = loop.body if step == 0 else clone_definitions(loop.body)
            value = add_index(loop.min, const(step, loop.loop_var.dtype))
            copies.append(substitute_folding(body, {loop.loop_var: value}))
        return seq(copies)

    def _wanted(self, loop: For) -> bool:
        config = self.config
        if loop.kind is ForKind.UNROLLED:
            return config.explicit_unroll
        if loop.kind is not ForKind.SERIAL or not isinstance(loop.extent, IntImm):
            return False
        extent = loop.extent.value
        steps, depth = _size(loop.body)
        if depth > config.auto_max_depth:
            return False
        return 0 < extent <= config.auto_max_extent or 0 < extent * steps <= config.auto_max_step


def _size(body: Stmt) -> tuple[int, int]:
    """How many stores and calls there are, and how many loops are still inside."""
    steps = loops = 0

    def look(node: object) -> bool:
        nonlocal steps, loops
        steps += isinstance(node, (BufferStore, Evaluate))
        loops += isinstance(node, For)
        return not isinstance(node, Expr)

    pre_order_visit(body, look)
    return max(1, steps), loops


_FEW: Final = 64  # statements that a loop may become without anybody asking why the source is so long


class _UnrollSmallLoops(_UnrollLoops):
    def _wanted(self, loop: For) -> bool:
        if not isinstance(loop.extent, IntImm) or not super()._wanted(loop):
            return False
        return max(0, loop.extent.value) * _size(loop.body)[0] <= _FEW

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is ForKind.UNROLLED and not isinstance(loop.extent, IntImm):
            return self.rebuild(loop)
        return super().visit_For(loop)


@function_pass
@deep
def unroll_small_loops(func: PrimFunc) -> PrimFunc:
    """A loop marked unrolled is written out where few statements come of it; others stay loops that carry the mark."""
    return func.with_(body=_UnrollSmallLoops(PassContext.current().setting("tir.UnrollLoop")).visit(func.body))


@function_pass
@deep
def unroll_loops(func: PrimFunc) -> PrimFunc:
    """A loop marked unrolled is written out."""
    config = PassContext.current().setting("tir.UnrollLoop")
    return func.with_(body=_UnrollLoops(config).visit(mark_short_loops(func.body)))
