"""double_buffer: while one half of a buffer is used, the other half is filled for the next iteration.

    for i in range(8):                                          →    B = T.decl_buffer((2, 4))
        B = T.decl_buffer((4,))                                      for j in range(4):
        with T.attr(B.data, "double_buffer_scope", 1):                   B[0, j] = A[0, j]
            for j in range(4):                                       for i in range(7):
                B[j] = A[i, j]                                           for j in range(4):
        for j in range(4):                                                   B[(i + 1) % 2, j] = A[i + 1, j]
            C[i, j] = B[j] + 1                                           for j in range(4):
                                                                             C[i, j] = B[i % 2, j] + 1
                                                                     for j in range(4):
                                                                         C[7, j] = B[1, j] + 1

A double buffer is a software pipeline of two stages: what writes the buffer is the first, all else the second, and so
is what keeps it from being wrong: the same proof of dependences. A buffer that is not allocated in a serial loop is
filled once, so there is nothing to overlap, and the mark goes. `tir.InjectDoubleBuffer` with `split_loop=2` unrolls the
loop by two, so that which half is used is known when the program is compiled.

Needs: no blocks; loops from 0.  Leaves: no `double_buffer_scope`.
"""

from __future__ import annotations

from loopwright.analysis.effects import Names, effects
from loopwright.ir import (
    Allocate,
    AttrStmt,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    LetStmt,
    PrimFunc,
    Stmt,
    Var,
    deep,
    pre_order_visit,
)
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.pipeline_dependences import touched
from loopwright.transform.parts.pipeline_marks import DOUBLE_BUFFER, marked_memory
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.passes.software_pipeline import pipelined, take_apart


class _RemoveMarks(StmtRewriter):
    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        node = self.rebuild(node)
        return node.body if node.attr_key == DOUBLE_BUFFER else node


class _DoubleBuffer(StmtRewriter):
    def __init__(self, marked: set[Var], split: int, names: Names) -> None:
        self.marked, self.split, self.names = marked, split, names

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if loop.kind is not ForKind.SERIAL or not self._allocates_one(loop.body):
            return loop
        body = take_apart(loop)
        doubled = {node.buffer_var for node in body.allocations} & self.marked
        fills = [bool(touched(statement, self.names).written() & doubled) for statement in body.statements]
        if not doubled or all(fills):
            return loop
        stages = [0 if fill else 1 for fill in fills]
        return pipelined(loop, body, stages, list(range(len(stages))), self.names, self.split)

    def _allocates_one(self, body: Stmt) -> bool:
        while isinstance(body, (Allocate, DeclBuffer, LetStmt, AttrStmt)):
            if isinstance(body, Allocate) and body.buffer_var in self.marked:
                return True
            body = body.body
        return False


@function_pass
@deep
def double_buffer(func: PrimFunc) -> PrimFunc:
    """While one half of a buffer is used, the other half is filled for the next iteration."""
    marked: set[Var] = set()

    def look(node: object) -> bool:
        if isinstance(node, AttrStmt) and node.attr_key == DOUBLE_BUFFER:
            memory = marked_memory(node)
            if memory is not None:
                marked.add(memory)
        return not isinstance(node, Expr)

    pre_order_visit(func.body, look)
    if not marked:
        return func
    split = PassContext.current().setting("tir.InjectDoubleBuffer").split_loop
    body = _DoubleBuffer(marked, split, effects(func.body).names).visit(func.body)
    return func.with_(body=_RemoveMarks().visit(body))
