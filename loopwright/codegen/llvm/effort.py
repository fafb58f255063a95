"""Effort: how much LLVM has to look for in a program, by what its schedule has left.

    for k in range(200):                            innermost, and its body is unrolled vectors: nothing is left to do
        for i in T.unroll(5):
            C[i * 16:i * 16 + 16] = …

Then LLVM need not look for loops to vectorize and unroll, which takes a third of its time. Where some innermost loop
works on single elements, or calls functions whose bodies are to be inlined, it should; but not where these elements
are what vectors left over. Nor need it look for what stays the same from iteration to iteration where all that these
loops read moves with them: in products and convolutions, whose sums are in registers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from loopwright import ir
from loopwright.codegen.llvm.loop_hints import is_rest
from loopwright.codegen.llvm.unrolling import is_worth_unrolling
from loopwright.codegen.math import has_body
from loopwright.ir.deep import deep
from loopwright.ir.visitor import Visitor, any_node, any_statement, uses_var

_FEW: Final = 4  # elements: fewer make no vector
_REGISTERS: Final = "local"


class Effort(IntEnum):
    """What LLVM is asked to do."""

    TIDY = 0  # fold what is known, keep sums in registers, write out what is to be written out
    HOIST = 1  # the passes of -O1, which also take out of a loop what stays the same in it, function by function
    SEARCH = 2  # everything: functions to inline, loops to vectorize, unroll and cut


@deep
def effort_for(module: ir.IRModule) -> Effort:
    """What the loops of a lowered program need: all, unless every innermost one works on vectors or unrolled tiles."""
    result = _Innermost()
    for _, function in module.functions_items():
        result.visit(function.body)
    if result.plain or not result.tiled:
        return Effort.SEARCH
    return Effort.HOIST if result.repeats else Effort.TIDY


class _Innermost(Visitor):
    """Looks at innermost loops."""

    def __init__(self) -> None:
        self.tiled = 0  # how many are laid out
        self.plain = False  # something there is for LLVM to improve
        self.repeats = False  # some loop that is laid out reads or asks the same in every iteration

    def visit_For(self, loop: ir.For) -> None:
        inner = _inner_loops(loop.body)
        if any([is_unrolled(item) for item in inner]):
            self._laid_out(loop)
        elif inner:
            self.visit_children(loop)
        elif is_unrolled(loop) or _has_vectors(loop.body):
            self._laid_out(loop)
        elif is_rest(loop) or (isinstance(loop.extent, ir.IntImm) and loop.extent.value < _FEW):
            self.visit_children(loop)
        else:
            self.plain = True

    def _laid_out(self, loop: ir.For) -> None:
        self.tiled += 1
        if not is_unrolled(loop) and not any_statement(loop.body, _runs_in_turns):
            self.repeats = self.repeats or _repeats(loop)
        self.visit_children(loop)

    def visit_While(self, loop: ir.While) -> None:
        self.plain = True

    def visit_Call(self, call: ir.Call) -> None:
        if not isinstance(call.op, ir.Op) or has_body(call.op.name.removeprefix("tir."), call.dtype):
            self.plain = True
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


def _runs_in_turns(statement: ir.Stmt) -> bool:
    """Whether it is a loop that is there when the program runs: what is around it runs seldom beside it."""
    return isinstance(statement, ir.While) or (isinstance(statement, ir.For) and not is_unrolled(statement))


def _repeats(loop: ir.For) -> bool:
    """Whether an iteration reads memory where the one before it did, or asks what that one asked."""
    moving: set[ir.Var] = {loop.loop_var}

    def moves(expr: ir.Expr) -> bool:
        return uses_var(expr, moving.__contains__)

    def is_same(node: ir.Node) -> bool:
        if isinstance(node, (ir.LetStmt, ir.Let)):
            moving.add(node.var)  # it may depend on what is read
        elif isinstance(node, ir.BufferLoad):
            return node.buffer.scope() != _REGISTERS and not any([moves(index) for index in node.indices])
        elif isinstance(node, ir.IfThenElse):
            return not moves(node.condition)
        elif isinstance(node, ir.Call):
            return node.op.name == "tir.if_then_else" and not moves(node.args[0])
        return False

    return any_node(loop.body, is_same)
