"""mark_roles: loops that a schedule gave to roles become the parts of these roles.

    for i in T.serial(8, annotations={"warp_role_stages": 4}):      →    for i in T.serial(8, annotations={…: 4}):
        for j in T.serial(64, annotations={"warp_role": "load"}):            with T.attr("load", "warp_role", 32):
            S[j] = A[i, j]                                                       for j in range(64):
        for y in T.thread_binding(8, thread="threadIdx.y", …"use"):                  S[j] = A[i, j]
            for x in T.thread_binding(4, thread="threadIdx.x"):              with T.attr("use", "warp_role", 32):
                …                                                                for y in T.thread_binding(8, …): …

`sch.annotate(loop, "warp_role", "load")` says so. Neighbours of one role are one part. A role has as many threads as
the loops in it are bound to; one without such loops is a warp, whose first thread does everything: copies of a tile are
then the work of the copy engine.

Needs: nothing.  Leaves: roles as attributes (`analysis/warp_roles.py`).
"""

from __future__ import annotations

from math import prod

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.analysis.warp_roles import ROLE, NotARole, Role, role_name_of, role_of
from loopwright.ir import (
    AttrStmt,
    For,
    IntImm,
    PrimFunc,
    SeqStmt,
    Stmt,
    StringImm,
    any_statement,
    collect_statements,
    const,
    deep,
    seq,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter

_WARP = 32


class _MarkRoles(StmtRewriter):
    def __init__(self, threads: dict[str, int]) -> None:
        self.threads = threads

    def visit_For(self, loop: For) -> Stmt:
        name = role_name_of(loop)
        if name is None:
            return self.rebuild(loop)
        rest = {key: value for key, value in loop.annotations.items() if key != ROLE}
        return AttrStmt(StringImm(name), ROLE, const(self.threads[name]), loop.with_(annotations=rest))

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        visited = super().visit_SeqStmt(node)
        if visited is node or not isinstance(visited, SeqStmt):
            return visited
        parts: list[Stmt] = []
        for part in visited.seq:
            role, before = role_of(part), role_of(parts[-1]) if parts else None
            if role is not None and role == before:
                assert isinstance(part, AttrStmt) and isinstance(parts[-1], AttrStmt)
                parts[-1] = part.with_(body=seq([parts[-1].body, part.body]))
            else:
                parts.append(part)
        return seq(parts)


def _threads_of(body: Stmt) -> dict[str, int]:
    """How many threads each role has."""
    extents: dict[str, dict[str, int]] = {}
    for loop in collect_statements(body, For):
        name = role_name_of(loop)
        if name is None:
            continue
        mine = extents.setdefault(name, {})
        for inner in collect_statements(loop, For):
            if not tag_of(inner).startswith("threadIdx"):
                continue
            extent = axis_of(inner).extent
            if not isinstance(extent, IntImm):
                raise NotARole(f"loop {inner.loop_var.name} of role {name}", extent, "as long as a constant", inner)
            mine.setdefault(tag_of(inner), extent.value)
    return {name: Role(name, prod(mine.values()) if mine else _WARP).threads for name, mine in extents.items()}


@function_pass
@deep
def mark_roles(func: PrimFunc) -> PrimFunc:
    """Loops that a schedule gave to roles become the parts of these roles."""
    if not any_statement(func.body, lambda node: role_name_of(node) is not None):
        return func
    return func.with_(body=_MarkRoles(_threads_of(func.body)).visit(func.body))
