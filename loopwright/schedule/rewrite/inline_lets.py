"""Inline lets: the value of a let that names integer arithmetic replaces its variable.

    for i in range(8):                            →    for i in range(8):
        x: T.int32 = i * 4                                 for j in range(4):
        for j in range(4):                                     with T.block("B"):
            with T.block("B"):                                     v = T.axis.spatial(32, i * 4 + j)
                v = T.axis.spatial(32, x + j)                      B[v] = A[v]
                B[v] = A[v]

Bounds, bindings and indices then say what loops and parameters they depend on, which every primitive asks, so a
schedule does this when it takes a program. A let stays where it loads from memory, calls something, has another type,
is large, is named by an annotation, or where a block uses it although it names loops around it, which it may not.
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
    Node,
    PrimFunc,
    Stmt,
    Var,
    any_node,
    any_statement,
    collect,
    deep,
    pre_order_visit,
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
    return function.with_(body=_WriteOut(_annotating(function)).visit(function.body))


def _annotating(function: PrimFunc) -> set[Var]:
    """The variables that annotations name; these are plain data to a walk."""
    result: set[Var] = set()

    def look(node: Node) -> None:
        for value in getattr(node, "annotations", {}).values():
            for part in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(part, Expr):
                    result.update(collect(part, Var))

    pre_order_visit(function.body, look)
    return result


class _WriteOut(Substitute):
    def __init__(self, kept: set[Var]) -> None:
        super().__init__({}, {})
        self.known: dict[Var, Expr] = {}  # what names stand for here
        self.kept = kept  # lets that stay, since a name of theirs does
        self.named: set[Var] = set()  # all lets around
        self.loops: set[Var] = set()  # that blocks inside may not name; one that ended is named nowhere

    def visit_Var(self, var: Var) -> Expr:
        value = self.known.get(var)
        if value is None and var in self.named:
            self.kept.add(var)
        return var if value is None else value

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        if let.var in self.kept or not _is_plain(let.var, value):
            return let.with_(value=value, body=self.visit(let.body))
        self.known[let.var] = value
        self.named.add(let.var)
        body = self.visit(let.body)
        self.named.discard(let.var)
        self.known.pop(let.var, None)
        return let.with_(value=value, body=body) if let.var in self.kept else body

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
        with self._own_names():
            changed: Block = block.rebuild(self.visit)
        return inside.with_(block=changed.with_(iter_vars=axes))

    @contextmanager
    def _own_names(self) -> Iterator[None]:
        """Inside a block, names of what loops around it say stay names; nothing remembered from outside holds there."""
        outside = self.known, self.loops, self._memo
        self.known = {var: value for var, value in self.known.items() if not uses_var(value, self.loops.__contains__)}
        self.loops, self._memo = set(), {}
        yield
        self.known, self.loops, self._memo = outside


def _is_plain(var: Var, value: Expr) -> bool:
    if not (var.dtype.is_int or var.dtype.is_bool) or var.dtype.lanes != 1 or reads_memory(value):
        return False
    if any_node(value, lambda node: isinstance(node, Call) and not is_pure_call(node)):
        return False
    return len(collect(value, Expr)) <= _LARGE
