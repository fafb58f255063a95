"""Guarded operands: what a block evaluates only where the values that it updates say so.

    C[0] = C[0] and A[v] > 0             A[v] is read while C[0] is true: harmless, as it is within A for every v
    C[0] = C[0] and A[I[v]] > 0          A[I[v]] may lie outside A where C[0] is false: nobody reads it there

In another order, or in partial results, such an operand is evaluated for other values of the cell. That the updates
commute says nothing about it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from loopwright.analysis.may_fail import Risk, is_safe
from loopwright.arith import Analyzer
from loopwright.ir import (
    And,
    Buffer,
    BufferLoad,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElse,
    IterVar,
    Let,
    LetStmt,
    Mod,
    Node,
    Or,
    Stmt,
    Var,
    Visitor,
    any_node,
    deep,
    structural_equal,
)


@deep
def guarded_operand(body: Stmt, fields: Container[Buffer], axes: Sequence[IterVar]) -> Expr | None:
    """A load or division that may fail, and that the values of `fields` keep from being evaluated; None without one."""
    walk = _Walk(fields)
    walk.visit(body)
    if not walk.guarded:
        return None
    facts = Analyzer()
    for axis in axes:
        if axis.dom is not None:
            facts.bind(axis.var, axis.dom)
    for risk in walk.guarded:
        is_sure = any([structural_equal(risk, other, map_free_vars=False) for other in walk.sure])
        if not is_sure and not is_safe(risk, facts):
            return risk
    return None


class _Walk(Visitor):
    """What may fail: what is evaluated whatever the fields hold, and what is not."""

    def __init__(self, fields: Container[Buffer]) -> None:
        self.fields = fields
        self.named: set[Var] = set()  # bound to what was computed from a field
        self.is_guarded = False
        self.sure: list[Risk] = []
        self.guarded: list[Risk] = []

    def _reads_field(self, root: Node) -> bool:
        return any_node(
            root, lambda node: node in self.named or (isinstance(node, BufferLoad) and node.buffer in self.fields)
        )

    def _under(self, condition: Expr, parts: Sequence[Node | None]) -> None:
        self.visit(condition)
        outer, self.is_guarded = self.is_guarded, self.is_guarded or self._reads_field(condition)
        for part in parts:
            if part is not None:
                self.visit(part)
        self.is_guarded = outer

    def visit_And(self, both: And) -> None:
        self._under(both.a, [both.b])

    def visit_Or(self, either: Or) -> None:
        self._under(either.a, [either.b])

    def visit_IfThenElse(self, choice: IfThenElse) -> None:
        self._under(choice.condition, [choice.then_case, choice.else_case])

    def visit_Call(self, call: Call) -> None:
        if call.op.name == "tir.if_then_else":
            self._under(call.args[0], call.args[1:])
        else:
            self.visit_children(call)

    def visit_Let(self, let: Let) -> None:
        self._let(let.var, let.value)
        self.visit(let.body)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self._let(let.var, let.value)
        self.visit(let.body)

    def _let(self, var: Var, value: Expr) -> None:
        self.visit(value)
        if self._reads_field(value):
            self.named.add(var)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit_children(load)
        if load.buffer not in self.fields:
            self._add(load)

    def visit_Div(self, node: Div | Mod | FloorDiv | FloorMod) -> None:
        self.visit_children(node)
        if node.dtype.is_int:
            self._add(node)

    visit_Mod = visit_FloorDiv = visit_FloorMod = visit_Div

    def _add(self, risk: Risk) -> None:
        (self.guarded if self.is_guarded else self.sure).append(risk)
