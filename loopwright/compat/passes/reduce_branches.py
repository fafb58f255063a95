"""reduce_branches: a branch goes where its statements do nothing, or do the same, when its condition does not hold.

    for i in range(16):                    →    for i in range(16):
        if i > 0:                                   A[0] = A[0] + i * i
            A[0] = A[0] + i * i
"""

from __future__ import annotations

from loopwright.compat.passes.named_pass import named_pass
from loopwright.compat.passes.simplify_in_place import InPlaceSimplifier
from loopwright.compat.settings import SimplifyConfig
from loopwright.ir import (
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    deep,
    logical_not,
    no_op,
    structural_equal,
)
from loopwright.transform.parts.purity import has_data, is_pure
from loopwright.transform.parts.statements import StmtRewriter


class _Reduce(StmtRewriter):
    def __init__(self, func: PrimFunc) -> None:
        self.simplifier = InPlaceSimplifier(func, SimplifyConfig())

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return self.rebuild(node)  # no-ops stay: the user put them there

    def visit_For(self, loop: For) -> Stmt:
        with self.simplifier.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            return loop.with_(body=self.visit(loop.body))

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        return node.with_(body=self.visit(node.body))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        then_case: Stmt = self.visit(node.then_case)
        else_case: Stmt | None = None if node.else_case is None else self.visit(node.else_case)
        if is_pure(node.condition) and not has_data(node.condition):
            for kept, other, condition in (
                (then_case, else_case, logical_not(node.condition)),
                (else_case, then_case, node.condition),
            ):
                if kept is not None and structural_equal(self._under(kept, condition), self._under(other, condition)):
                    return kept
        return node.with_(then_case=then_case, else_case=else_case)

    def _under(self, statement: Stmt | None, condition: object) -> Stmt:
        """What is left of the statement when the condition holds."""
        if statement is None:
            return no_op()
        with self.simplifier.facts.constraint_scope(condition), self.simplifier.known.scope(condition):  # type: ignore
            return _without_no_ops(self.simplifier.visit(statement))


class _Drop(StmtRewriter):
    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return no_op() if is_pure(node.value) else node

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        new = self.rebuild(node)
        is_empty = _is_nothing(new.then_case) and (new.else_case is None or _is_nothing(new.else_case))
        return no_op() if is_empty and is_pure(new.condition) else new

    def visit_For(self, loop: For) -> Stmt:
        new = self.rebuild(loop)
        return no_op() if _is_nothing(new.body) else new


def _is_nothing(statement: Stmt) -> bool:
    return isinstance(statement, Evaluate) and isinstance(statement.value, IntImm)


def _without_no_ops(statement: Stmt) -> Stmt:
    result: Stmt = _Drop().visit(statement)
    return result


@named_pass("ReduceBranchingThroughOvercompute")
@deep
def reduce_branches(func: PrimFunc) -> PrimFunc:
    """A branch goes where its statements do nothing, or do the same, when its condition does not hold."""
    return func.with_(body=_Reduce(func).visit(func.body))
