"""Written lets: where a let names integer arithmetic, its value stands in the place of the name.

    for i in range(8):                            →    for i in range(8):
        x: T.int32 = i * 4                                 for j in range(4):
        for j in range(4):                                     with T.block("B"):
            with T.block("B"):                                     v = T.axis.spatial(32, i * 4 + j)
                v = T.axis.spatial(32, x + j)                      B[v] = A[v]
                B[v] = A[v]

Bounds, bindings and indices then say what loops and parameters they depend on, which every primitive asks, so a
schedule does this when it takes a program. Lets stay that load from memory, call something, or name another type; that
are large; and that a block uses although they name loops around it, which a block may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from loopwright.analysis.effects import is_pure_call
from loopwright.ir import (
    Block,
    BlockRealize,
    Call,
    Expr,
    For,
    LetStmt,
    PrimFunc,
    Stmt,
    Var,
    any_node,
    any_statement,
    collect,
    deep,
    reads_memory,
    uses_var,
)
from loopwright.ir.visitor import Substitute

_LARGE: Final = 64  # nodes of a value, written out


@deep
def with_lets_written_out(function: PrimFunc) -> PrimFunc:
    """The function with integer arithmetic in the place of its names; itself where there are no such lets."""
    if not any_statement(function.body, lambda statement: isinstance(statement, LetStmt)):
        return function
    return function.with_(body=_WriteOut().visit(function.body))


class _WriteOut(Substitute):
    def __init__(self) -> None:
        super().__init__({}, {})
        self.loops: set[Var] = set()  # that blocks inside may not name

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        if not _is_plain(let.var, value):
            return let.with_(value=value, body=self.visit(let.body))
        with self._knowing({**self.values, let.var: value}):
            body = self.visit(let.body)
        is_used = uses_var(body, lambda var: var is let.var)
        return let.with_(value=value, body=body) if is_used else body

    def visit_For(self, loop: For) -> Stmt:
        self.loops.add(loop.loop_var)
        return self.rebuild(loop)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        inside = realize.with_(iter_values=tuple([self.visit(value) for value in realize.iter_values]))
        inside = inside.with_(predicate=self.visit(realize.predicate))
        if not block.iter_vars:
            return inside.with_(block=self.visit(block))
        axes = tuple([self._axis(axis) for axis in block.iter_vars])
        known = {var: value for var, value in self.values.items() if not uses_var(value, self.loops.__contains__)}
        outside, self.loops = self.loops, set()
        with self._knowing(known):
            changed: Block = block.rebuild(self.visit)
        self.loops = outside
        return inside.with_(block=changed.with_(iter_vars=axes))

    @contextmanager
    def _knowing(self, values: dict[Var, Expr]) -> Iterator[None]:
        """What is inside is rewritten with `values`, so nothing remembered from outside holds there, and back."""
        outside, memo = self.values, self._memo
        self.values, self._memo = values, {}
        yield
        self.values, self._memo = outside, memo


def _is_plain(var: Var, value: Expr) -> bool:
    if not (var.dtype.is_int or var.dtype.is_bool) or var.dtype.lanes != 1 or reads_memory(value):
        return False
    if any_node(value, lambda node: isinstance(node, Call) and not is_pure_call(node)):
        return False
    return len(collect(value, Expr)) <= _LARGE
