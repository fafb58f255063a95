"""hoist_conditions: conditions and lets that a loop does not change move before it, as settings say which.

    for i in range(8):                               →    if n < 5:
        if i < 4:                                             for i in range(8):
            B[i] = T.if_then_else(n < 5, A[i], C[i])              if i < 4:
                                                                      B[i] = A[i]
                                                          else:
                                                              for i in range(8):
                                                                  if i < 4:
                                                                      B[i] = C[i]

A condition moves over the loops around it as long as one statement is all that they do. Those that read memory or may
fail stay: the loop may have no iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Allocate,
    And,
    AttrStmt,
    Block,
    BlockRealize,
    Call,
    CompareExpr,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Node,
    Or,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    const,
    deep,
    is_no_op,
    no_op,
    pre_order_visit,
    structural_equal,
    uses_var,
)
from loopwright.ir.pass_context import PassContext
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, LIKELY
from loopwright.transform.parts.purity import can_fail
from loopwright.transform.parts.statements import StmtRewriter

IF_STATEMENTS, IF_EXPRESSIONS, BOOLEANS, THREADS = 1, 2, 4, 8  # of `HoistedConditionals`
REQUIRED_LETS, LET_STATEMENTS, LET_EXPRESSIONS = 1, 2, 4  # of `HoistedLetBindings`


class _Found(NamedTuple):
    """What may move over a loop: a condition, or a let with its value."""

    condition: Expr | None
    let: LetStmt | Let | None


class _Path:
    """What one iteration of a loop does, as long as it is one statement."""

    def __init__(self, hoist: _Hoist, loop: For) -> None:
        self.hoist = hoist
        self.inside = {loop.loop_var}
        self.found: list[_Found] = []
        self.statement(loop.body)

    def _moves(self, value: Expr) -> bool:
        if can_fail(value) or isinstance(value, IntImm) or uses_var(value, self.inside.__contains__):
            return False
        threads = self.hoist.threads
        return bool(self.hoist.conditionals & THREADS) or not uses_var(value, threads.__contains__)

    def _condition(self, value: Expr) -> None:
        if isinstance(value, Call) and value.op is LIKELY:
            value = value.args[0]
        if self._moves(value):
            self.found.append(_Found(value, None))

    def statement(self, node: Stmt) -> None:
        """Look at a statement and the one inside it."""
        if isinstance(node, (SeqStmt, BlockRealize, Block)):
            return  # what a block says is in terms of its own axes
        if isinstance(node, IfThenElse):
            if self.hoist.conditionals & IF_STATEMENTS:
                self._condition(node.condition)
            self.expression(node.condition)
            for branch in (node.then_case, node.else_case):
                if branch is not None:
                    self.statement(branch)
            return
        if isinstance(node, LetStmt):
            self.expression(node.value)
            if not self._let(node, LET_STATEMENTS):
                self.inside.add(node.var)
            self.statement(node.body)
            return
        if isinstance(node, AttrStmt) and isinstance(node.node, IterVar):
            self.inside.add(node.node.var)
        elif isinstance(node, For):
            self.inside.add(node.loop_var)
        elif isinstance(node, Allocate):
            self.inside.add(node.buffer_var)
        for child in node.children():
            if isinstance(child, Stmt):
                self.statement(child)
            elif isinstance(child, Expr):
                self.expression(child)

    def _let(self, node: LetStmt | Let, flag: int) -> bool:
        moves = bool(self.hoist.lets & (flag | REQUIRED_LETS)) and self._moves(node.value)
        if moves:
            self.found.append(_Found(None, node))
        return moves

    def expression(self, e: Expr) -> None:
        """Look at conditions inside an expression."""
        if not self.hoist.conditionals & (IF_EXPRESSIONS | BOOLEANS) and not self.hoist.lets & LET_EXPRESSIONS:
            return
        own: set[Var] = set()
        pre_order_visit(e, lambda node: own.add(node.var) if isinstance(node, Let) else None)
        before = set(self.inside)
        self.inside |= own

        def look(node: Node) -> None:
            if isinstance(node, Call) and node.op is IF_THEN_ELSE and self.hoist.conditionals & IF_EXPRESSIONS:
                self._condition(node.args[0])
            elif isinstance(node, (And, Or, CompareExpr)) and self.hoist.conditionals & BOOLEANS:
                if node.dtype.lanes == 1:
                    self._condition(node)

        pre_order_visit(e, look)
        self.inside = before


class _Hoist(StmtRewriter):
    def __init__(self, conditionals: int, lets: int) -> None:
        self.conditionals, self.lets = conditionals, lets
        self.threads: set[Var] = set()  # that tell the threads of a launch apart

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if isinstance(node.node, IterVar):
            self.threads.add(node.node.var)
        return node.with_(body=self.visit(node.body))

    def visit_For(self, loop: For) -> Stmt:
        return self._hoisted(loop.with_(body=self.visit(loop.body)))

    def _hoisted(self, loop: For) -> Stmt:
        found = _Path(self, loop).found
        conditions = [each.condition for each in found if each.condition is not None]
        lets = [each.let for each in found if each.let is not None]
        for let in lets:
            flag = LET_STATEMENTS if isinstance(let, LetStmt) else LET_EXPRESSIONS
            needed = any([uses_var(condition, _is(let.var)) for condition in conditions])
            if self.lets & flag or (self.lets & REQUIRED_LETS and needed):
                inner = _TakeLet(let).visit(loop)
                return LetStmt(let.var, let.value, self._hoisted(inner))
        moved = {let.var for let in lets}
        for condition in conditions:
            if not uses_var(condition, moved.__contains__):
                return self._branch(condition, loop)
        return loop

    def _branch(self, condition: Expr, loop: For) -> Stmt:
        then_loop: Stmt = _Decide(condition, True).visit(loop)
        else_loop: Stmt = _Decide(condition, False).visit(loop)
        then_case = self._hoisted(then_loop) if isinstance(then_loop, For) else then_loop
        if not _does_something(else_loop):
            return IfThenElse(condition, then_case)
        else_case = self._hoisted(else_loop) if isinstance(else_loop, For) else else_loop
        return IfThenElse(condition, then_case, clone_definitions(else_case))


def _is(var: Var) -> Callable[[Var], bool]:
    return lambda used: used is var


def _does_something(statement: Stmt) -> bool:
    if isinstance(statement, (For, AttrStmt, LetStmt, Allocate, DeclBuffer)):
        return _does_something(statement.body)
    if isinstance(statement, IfThenElse):
        branches = [statement.then_case, *([statement.else_case] if statement.else_case is not None else [])]
        return any([_does_something(branch) for branch in branches])
    return not is_no_op(statement)


class _Decide(Rewriter):
    """The statement where a condition is known."""

    def __init__(self, condition: Expr, holds: bool) -> None:
        self.condition, self.holds = condition, holds

    def _is_it(self, e: Expr) -> bool:
        if isinstance(e, Call) and e.op is LIKELY:
            e = e.args[0]
        return e.dtype is self.condition.dtype and structural_equal(e, self.condition)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        if not self._is_it(node.condition):
            return self.rebuild(node)
        chosen = node.then_case if self.holds else node.else_case
        return no_op() if chosen is None else self.visit(chosen)

    def visit_Call(self, call: Call) -> Expr:
        if call.op is IF_THEN_ELSE and self._is_it(call.args[0]):
            chosen: Expr = self.visit(call.args[1 if self.holds else 2])
            return chosen
        return self.rebuild(call)

    def _boolean(self, e: And | Or | CompareExpr) -> Expr:
        return const(self.holds) if self._is_it(e) else self.rebuild(e)

    visit_And = visit_Or = visit_CompareExpr = _boolean


class _TakeLet(Rewriter):
    """The statement without a let, which stands before it now."""

    def __init__(self, let: LetStmt | Let) -> None:
        self.let = let

    def _let(self, node: LetStmt | Let) -> Node:
        result: Node = self.visit(node.body) if node is self.let else self.rebuild(node)
        return result

    visit_LetStmt = visit_Let = _let


@named_pass("HoistIfThenElse")
@deep
def hoist_if_then_else(func: PrimFunc) -> PrimFunc:
    """Branches that a loop does not change are taken before it."""
    settings = PassContext.current().setting("tir.HoistIfThenElse")
    threads = THREADS if settings.support_block_scope_hosting else 0
    return func.with_(body=_Hoist(IF_STATEMENTS | threads, 0).visit(func.body))


@named_pass("HoistExpression")
@deep
def hoist_expression(func: PrimFunc) -> PrimFunc:
    """Conditions and lets that a loop does not change move before it."""
    settings = PassContext.current().setting("tir.HoistExpression")
    walk = _Hoist(int(settings.hoisted_conditionals), int(settings.hoisted_let_bindings))
    return func.with_(body=walk.visit(func.body))
