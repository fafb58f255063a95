"""Places in what a role does: before the first and behind the last access of some memory."""

from __future__ import annotations

from loopwright.analysis.warp_roles import core_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    IfThenElse,
    LetStmt,
    Node,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    any_node,
    any_statement,
    const,
    seq,
)
from loopwright.ir.async_intrinsics import mbarrier_arrive
from loopwright.transform.parts.warpgroup_products import RELEASE


def before_first(statement: Stmt, memory: frozenset[Var], what: Stmt) -> Stmt:
    """`what` goes before the first part of the statement that touches the memory; all threads of the role get there."""
    if isinstance(statement, SeqStmt):
        parts = list(statement.seq)
        first = next(k for k, part in enumerate(parts) if touches(part, memory))
        parts[first] = before_first(parts[first], memory, what)
        return seq(parts)
    if _is_plain(statement, memory):
        return statement.with_(body=before_first(statement.body, memory, what))  # type: ignore[attr-defined]
    if _is_choice(statement, memory):
        assert isinstance(statement, IfThenElse) and statement.else_case is not None
        cases = [
            before_first(case, memory, what) if touches(case, memory) else seq([what, case])
            for case in (statement.then_case, statement.else_case)
        ]
        return statement.with_(then_case=cases[0], else_case=cases[1])
    return seq([what, statement])


def after_last(statement: Stmt, memory: frozenset[Var], what: Stmt) -> Stmt:
    """`what` goes behind the last part of the statement that touches the memory."""
    if isinstance(statement, SeqStmt):
        parts = list(statement.seq)
        last = max(k for k, part in enumerate(parts) if touches(part, memory))
        parts[last] = after_last(parts[last], memory, what)
        return seq(parts)
    if _is_plain(statement, memory):
        return statement.with_(body=after_last(statement.body, memory, what))  # type: ignore[attr-defined]
    if isinstance(statement, LetStmt):  # its value is read once, before its body
        body = statement.body
        return statement.with_(body=after_last(body, memory, what) if touches(body, memory) else seq([what, body]))
    if _is_choice(statement, memory):
        assert isinstance(statement, IfThenElse) and statement.else_case is not None
        cases = [
            after_last(case, memory, what) if touches(case, memory) else seq([what, case])
            for case in (statement.then_case, statement.else_case)
        ]
        return statement.with_(then_case=cases[0], else_case=cases[1])
    return seq([statement, what])


def release(empty: Expr, is_tile: bool) -> Stmt:
    """Say that memory is free; where tensor cores read it, when they have done so."""
    arrive: Stmt = Evaluate(mbarrier_arrive(empty))
    return AttrStmt(StringImm(""), RELEASE, const(1), arrive) if is_tile else arrive


def _is_choice(statement: Stmt, memory: frozenset[Var]) -> bool:
    """Whether warpgroups choose between two parts, one of which multiplies tiles: each part then has its own places."""
    return (
        isinstance(statement, IfThenElse)
        and statement.else_case is not None
        and not touches(statement.condition, memory)
        and any_statement(statement, lambda node: core_of(node) is not None)
    )


def _is_plain(statement: Stmt, memory: frozenset[Var]) -> bool:
    """Whether a statement runs its body once, and touches the memory in it alone."""
    if isinstance(statement, LetStmt):
        return not touches(statement.value, memory)
    return isinstance(statement, (Allocate, DeclBuffer, AttrStmt))


def uses_memory(statement: Stmt, data: Var) -> bool:
    def uses(node: Node) -> bool:
        return node is data or (isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is data)

    return any_node(statement, uses)


def touches(node: Node, memory: frozenset[Var]) -> bool:
    """Whether the memory is loaded or stored."""
    return any_node(node, lambda item: isinstance(item, (BufferLoad, BufferStore)) and item.buffer.data in memory)
