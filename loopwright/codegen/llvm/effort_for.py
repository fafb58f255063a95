"""What is left for LLVM to look for: nothing but tidying, where a schedule laid out all loops down to registers.

    for k in range(200):                            innermost, and its body is unrolled vectors: nothing is left to do
        for i in T.unroll(5):
            C[i * 16:i * 16 + 16] = …

Then LLVM need not look for loops to vectorize and unroll, which takes a third of its time, and seconds where a loop is
unrolled far: what is to be kept from one iteration for the next compares all of its accesses. Where some innermost loop
works on single elements it should, but not where these are what vectors left over. Where math functions are called
their bodies are inlined, which have much in common.
"""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.loop_hints import is_rest
from loopwright.codegen.llvm.unrolling import is_worth_unrolling
from loopwright.codegen.math import has_body
from loopwright.ir.deep import deep
from loopwright.ir.visitor import Visitor, any_node

_FEW: Final = 4  # elements: fewer make no vector


@deep
def effort_for(module: ir.IRModule) -> Effort:
    """All that LLVM can, unless there are loops and every innermost one of them works on vectors or unrolled tiles."""
    result = _Innermost()
    for _, function in module.functions_items():
        result.visit(function.body)
    if result.plain or not result.tiled:
        return Effort.SEARCH
    return Effort.REUSE if result.has_bodies else Effort.SIMPLIFY


class _Innermost(Visitor):
    """Counts innermost loops that were laid out; `plain` says that there is something for LLVM to improve."""

    def __init__(self) -> None:
        self.tiled = 0
        self.plain = False
        self.has_bodies = False

    def visit_For(self, loop: ir.For) -> None:
        inner = _inner_loops(loop.body)
        if any([is_unrolled(item) for item in inner]):
            self.tiled += 1
            self.visit_children(loop)
        elif inner:
            self.visit_children(loop)
        elif is_unrolled(loop) or _has_vectors(loop.body):
            self.tiled += 1
            self.visit_children(loop)
        elif is_rest(loop) or (isinstance(loop.extent, ir.IntImm) and loop.extent.value < _FEW):
            self.visit_children(loop)
        else:
            self.plain = True

    def visit_While(self, loop: ir.While) -> None:
        self.plain = True

    def visit_Call(self, call: ir.Call) -> None:
        if not isinstance(call.op, ir.Op):
            self.plain = True
        elif has_body(call.op.name.removeprefix("tir."), call.dtype):
            self.has_bodies = True
        self.visit_children(call)


def is_unrolled(loop: ir.For) -> bool:
    """Whether LLVM is asked to write the loop out."""
    return loop.kind is ir.ForKind.UNROLLED and is_worth_unrolling(loop)


def _inner_loops(statement: ir.Stmt) -> list[ir.For]:
    """The outermost loops in a statement."""
    if isinstance(statement, ir.For):
        return [statement]
    return [loop for child in statement.children() if isinstance(child, ir.Stmt) for loop in _inner_loops(child)]


def _has_vectors(body: ir.Stmt) -> bool:
    return any_node(body, lambda node: isinstance(node, ir.BufferStore) and node.value.dtype.lanes > 1)
