"""Which unrolled loops LLVM is asked to write out.

Asked for a full unroll, LLVM obeys at any size: 80,000 instructions in one block take minutes. Asked for one that it
cannot do, because the number of iterations is not a constant, it prints a warning. So it is asked only where it can
and should.

A loop around tiles that are written out is as long as its schedule wants it: LLVM is told to leave it alone. Three
steps of a window, unrolled, read the same numbers, which it would keep in registers that hold sums. Other loops it
unrolls as it sees fit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from loopwright import ir
from loopwright.codegen.math import has_body
from loopwright.ir.visitor import Visitor

_MOST_NODES: Final = 16_384  # after unrolling; about as many instructions
_NODES_OF_MATH: Final = 40  # a body of `codegen/math`, inlined


def is_worth_unrolling(loop: ir.For) -> bool:
    """Whether the iterations are known in number, and few enough to be written out one after the other."""
    return isinstance(loop.extent, ir.IntImm) and _nodes_of(loop.body) * loop.extent.value <= _MOST_NODES


def holds_tile(loop: ir.For) -> bool:
    """Whether a loop that runs its iterations one after the other is around one that is written out."""
    if loop.kind is not ir.ForKind.SERIAL:
        return False
    pending: list[ir.Stmt] = [loop.body]
    while pending:
        statement = pending.pop()
        if isinstance(statement, ir.For) and statement.kind is ir.ForKind.UNROLLED and is_worth_unrolling(statement):
            return True
        pending += [child for child in statement.children() if isinstance(child, ir.Stmt)]
    return False


@lru_cache(maxsize=256)  # every loop around a tile asks
def _nodes_of(body: ir.Stmt) -> int:
    """How many nodes a body has, written out."""
    result: int = _Count().visit(body)
    return result


class _Count(Visitor):
    """How many nodes there are once the loops marked unrolled are written out; counting stops when it is too many."""

    def visit_children(self, node: ir.Node) -> int:
        total = 1
        for child in node.children():
            total += self.visit(child)
            if total > _MOST_NODES:
                break
        return total

    def visit_Call(self, call: ir.Call) -> int:
        name = call.op.name.removeprefix("tir.")
        return self.visit_children(call) + (_NODES_OF_MATH if has_body(name, call.dtype) else 0)

    def visit_For(self, loop: ir.For) -> int:
        body = _nodes_of(loop.body)
        written_out = body * loop.extent.value if isinstance(loop.extent, ir.IntImm) else 0
        return written_out if loop.kind is ir.ForKind.UNROLLED and 0 < written_out <= _MOST_NODES else body + 1
