"""decide_conditions: a statement with some of its comparisons decided, and all that follows from that.

    if i < n and j < m: B[i] = A[i]         with i < n true        →    if j < m: B[i] = A[i]
    B[i] = T.if_then_else(i < n, A[i], 0)   with i < n false       →    B[i] = 0

    C[i] = C[i] + T.if_then_else(i < n, A[i], -0)                  →    nothing: every bit stays as it is

Comparisons are known by identity: one that is written twice in the same words may be decided in one place and not in
the other. Statements that come to do nothing go.
"""

from __future__ import annotations

from math import copysign, inf

from loopwright.arith.data import holds_data
from loopwright.arith.linear import is_index
from loopwright.ir import (
    Add,
    Allocate,
    And,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    const,
    is_no_op,
    logical_and,
    logical_not,
    logical_or,
    no_op,
    structural_equal,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, LIKELY
from loopwright.transform.parts.statements import flat_seq


class _Decide(Rewriter):
    """Replaces comparisons (by identity) by their truth, and folds what that decides."""

    def __init__(self, truths: dict[Expr, bool]) -> None:
        self.truths = truths

    def visit_CompareExpr(self, expr: Expr) -> Expr:
        truth = self.truths.get(expr)
        return self.rebuild(expr) if truth is None else const(truth)

    def visit_And(self, expr: And) -> Expr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return expr if a is expr.a and b is expr.b else logical_and(a, b)

    def visit_Or(self, expr: Or) -> Expr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return expr if a is expr.a and b is expr.b else logical_or(a, b)

    def visit_Not(self, expr: Not) -> Expr:
        a = self.visit(expr.a)
        return expr if a is expr.a else logical_not(a)

    def visit_Call(self, call: Call) -> Expr:
        if call.op is LIKELY:
            condition = self.visit(call.args[0])
            return condition if isinstance(condition, IntImm) else call.with_(args=(condition,))
        if call.op is not IF_THEN_ELSE:
            return self.rebuild(call)
        condition = self.visit(call.args[0])
        if isinstance(condition, IntImm):
            kept, dropped = call.args[1:] if condition.value else (call.args[2], call.args[1])
            if not _loses_data(kept, dropped):
                return self.visit(kept)
        chosen, other = self.visit(call.args[1]), self.visit(call.args[2])
        if condition is call.args[0] and chosen is call.args[1] and other is call.args[2]:
            return call
        return call.with_(args=(condition, chosen, other))

    def visit_Select(self, expr: Select) -> Expr:
        condition = self.visit(expr.condition)
        if isinstance(condition, IntImm):
            kept, dropped = expr.true_value, expr.false_value
            kept, dropped = (kept, dropped) if condition.value else (dropped, kept)
            if not _loses_data(kept, dropped):
                return self.visit(kept)
        chosen, other = self.visit(expr.true_value), self.visit(expr.false_value)
        return expr.with_(condition=condition, true_value=chosen, false_value=other)

    def _combined(self, expr: Add | Mul | Max | Min) -> Expr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        for unit, other in ((b, a), (a, b)):
            if _is_neutral(type(expr), unit) and (not expr.dtype.is_int or holds_data(other)):
                return other
        return expr.with_(a=a, b=b)

    visit_Add = visit_Mul = visit_Max = visit_Min = _combined

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        value, indices = self.visit(store.value), rewrite_tuple(store.indices, self.visit)
        if value is not store.value and isinstance(value, BufferLoad) and value.buffer is store.buffer:
            if all(structural_equal(a, b) for a, b in zip(value.indices, indices, strict=True)):
                return no_op()
        return store.with_(value=value, indices=indices)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self.visit(node.condition)
        if isinstance(condition, IntImm):
            chosen = node.then_case if condition.value else node.else_case
            return no_op() if chosen is None else self.visit(chosen)
        then_case = self.visit(node.then_case)
        else_case = None if node.else_case is None else self.visit(node.else_case)
        return node.with_(condition=condition, then_case=then_case, else_case=else_case)

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        return no_op() if is_no_op(loop.body) else loop

    def visit_Allocate(self, node: Allocate) -> Stmt:
        node = self.rebuild(node)
        return no_op() if is_no_op(node.body) else node

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        node = self.rebuild(node)
        return no_op() if is_no_op(node.body) else node

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)


def _is_neutral(operation: type[Expr], unit: Expr) -> bool:
    """Whether data combined with this number keeps every bit. (Indices are for `simplify`.)"""
    if isinstance(unit, IntImm):
        if operation is Add or operation is Mul:
            return unit.value == (1 if operation is Mul else 0)
        return unit.value == (unit.dtype.lowest if operation is Max else unit.dtype.highest)
    if not isinstance(unit, FloatImm):
        return False
    if operation is Add:
        return unit.value == 0 and copysign(1.0, unit.value) < 0
    return unit.value == (1.0 if operation is Mul else -inf if operation is Max else inf)


def _loses_data(kept: Expr, dropped: Expr) -> bool:
    """Whether a choice would be an index, exact and not to wrap around, where it was data: `simplify` sees to those."""
    return is_index(kept.dtype) and holds_data(dropped) and not holds_data(kept)


def decide_conditions(body: Stmt, truths: dict[Expr, bool]) -> Stmt:
    """`body` with those comparisons decided."""
    result: Stmt = _Decide(truths).visit(body) if truths else body
    return result
