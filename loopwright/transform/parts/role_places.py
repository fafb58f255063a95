"""Places in the part of a role: before the first statement that touches some memory, and behind the last one.

    if j < 4:                                   →    if j < 4:
        S[t] = A[t]                                      wait
                                                         S[t] = A[t]
                                                     else:
                                                         wait
    B[t] = S[0]                                      B[t] = S[0]

Every thread of the role gets to such a place exactly once, whichever way it takes.
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    AttrStmt,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    IfThenElse,
    LetStmt,
    Node,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    seq,
)


def before_first(statement: Stmt, memory: frozenset[Var], what: Stmt) -> Stmt:
    """`what` goes before the first part of the statement that touches the memory; all threads of the role get there."""
    if isinstance(statement, SeqStmt):
        parts = list(statement.seq)
        first = next(k for k, part in enumerate(parts) if touches(part, memory))
        parts[first] = before_first(parts[first], memory, what)
        return seq(parts)
    if _is_plain(statement, memory):
        return statement.with_(body=before_first(statement.body, memory, what))  # type: ignore[attr-defined]
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
    return seq([statement, what])


def _is_plain(statement: Stmt, memory: frozenset[Var]) -> bool:
    """Whether a statement runs its body once, and touches the memory in it alone."""
    if isinstance(statement, LetStmt):
        return not touches(statement.value, memory)
    return isinstance(statement, (Allocate, DeclBuffer, AttrStmt))


def touches(node: Node, memory: frozenset[Var]) -> bool:
    """Whether the memory is loaded or stored."""
    return any_node(node, lambda item: isinstance(item, (BufferLoad, BufferStore)) and item.buffer.data in memory)
