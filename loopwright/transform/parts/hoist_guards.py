"""Guards of loops with roles, moved outwards as far as nothing in them depends on the loops between.

    for k in range(n):                              →    if t * 132 + bx < tiles:
        with T.attr("load", "warp_role", 32):                for k in range(n):
            if t * 132 + bx < tiles:                             with T.attr("load", "warp_role", 32):
                …                                                    …
        with T.attr("use", "warp_role", 32):                     with T.attr("use", "warp_role", 32):
            if t * 132 + bx < tiles:                                 …
                …

A schedule guards each block; what no thread and no loop changes is asked once, so that a copy of a tile or a product of
tiles is not cut into pieces by it.
"""

from __future__ import annotations

from loopwright.analysis.warp_roles import stages_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Call,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    seq,
    structural_equal,
    uses_var,
)
from loopwright.transform.parts.purity import has_data


def hoist_guards(statement: Stmt, thread: Var) -> Stmt:
    """The statement with its guards as far out as they may stand; `thread` is the number of a thread."""
    return _Hoist(thread).hoisted(statement)


class _Hoist:
    def __init__(self, thread: Var) -> None:
        self.thread = thread

    def hoisted(self, statement: Stmt) -> Stmt:
        if isinstance(statement, SeqStmt):
            return self.common([self.hoisted(part) for part in statement.seq], statement)
        if isinstance(statement, (For, Allocate, DeclBuffer, AttrStmt)):
            body = self.hoisted(statement.body)
            guard = self.guard(body)
            if guard is None:
                return statement.with_(body=body)
            if not _is_free(statement, guard.condition):  # in a loop of roles, each of them keeps its own
                is_of_roles = isinstance(statement, For) and stages_of(statement) is not None
                return statement if is_of_roles else statement.with_(body=body)
            return guard.with_(then_case=statement.with_(body=guard.then_case))
        if isinstance(statement, IfThenElse):
            inner = self.hoisted(statement.then_case)
            if statement.else_case is not None:
                return statement.with_(then_case=inner, else_case=self.hoisted(statement.else_case))
            guard = self.guard(inner)
            if guard is not None and self.guard(statement) is None:
                return guard.with_(then_case=statement.with_(then_case=guard.then_case))
            return statement.with_(then_case=inner)
        return statement

    def common(self, parts: list[Stmt], statement: SeqStmt) -> Stmt:
        """One guard for all parts where all have the same; otherwise each keeps what it has."""
        guards = [self.guard(part) for part in parts]
        first, *others = guards
        if first is not None:
            if all([one is not None and structural_equal(one.condition, first.condition) for one in others]):
                return first.with_(then_case=seq([one.then_case for one in guards if one is not None]))
        return statement

    def guard(self, statement: Stmt) -> IfThenElse | None:
        """The statement as a condition that reads nothing, of what no thread decides."""
        if not isinstance(statement, IfThenElse) or statement.else_case is not None or has_data(statement.condition):
            return None
        is_theirs = any_node(statement.condition, lambda node: node is self.thread or isinstance(node, Call))
        return None if is_theirs else statement


def _is_free(statement: Stmt, condition: Expr) -> bool:
    if isinstance(statement, For):
        is_plain = statement.kind in (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTORIZED)
        return is_plain and not uses_var(condition, lambda var: var is statement.loop_var)
    return True
