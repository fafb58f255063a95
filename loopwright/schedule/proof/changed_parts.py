"""Changed parts: two versions of a function without the statements that a step cannot have meddled with.

A step changes a nest or two. Of the other top-level statements, those that share no memory with a changed one see and
write what they did before (`lemmas.unchanged_memory`), and whether they are there makes no difference to the rest. They
are left out of the comparison, which then takes as long for a function of five hundred nests as for one of five.
"""

from __future__ import annotations

from functools import lru_cache

from loopwright.analysis.effects import is_pure_call
from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    BufferStore,
    Call,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    any_node,
    deep,
    is_no_op,
    no_op,
    seq,
)
from loopwright.schedule.proof.lemmas import memory_named, top_level, unchanged_memory, with_top_level

_PLAIN = (SeqStmt, IfThenElse, LetStmt, BufferStore, BlockRealize, Block, Allocate, AllocateConst, DeclBuffer)


@deep
def changed_parts(before: PrimFunc, after: PrimFunc) -> tuple[PrimFunc, PrimFunc]:
    """Both versions without such statements, or as they are where these are fewer than half of all."""
    old, new = top_level(before), top_level(after)
    common = set(old) & set(new)
    if 2 * len(common) < len(new):
        return before, after
    unchanged = unchanged_memory(before, after)
    left_out = frozenset([part for part in common if memory_named(part) <= unchanged and _is_plain(part)])
    if 2 * len(left_out) < len(new):
        return before, after
    return _without(before, left_out), _without(after, left_out)


@lru_cache(maxsize=64)  # one step ends as the next begins: what is known of a version is kept with it
def _without(function: PrimFunc, left_out: frozenset[Stmt]) -> PrimFunc:
    kept = [part for part in top_level(function) if part not in left_out]
    return with_top_level(function, seq(kept) if kept else no_op())


@lru_cache(maxsize=2048)
def _is_plain(statement: Stmt) -> bool:
    """Whether nothing in it reaches beyond the memory it names: no calls with effects, no threads."""

    def reaches_further(node: Node) -> bool:
        if isinstance(node, For):
            return node.kind is ForKind.THREAD_BINDING
        if isinstance(node, Stmt):
            return not isinstance(node, _PLAIN) and not is_no_op(node)
        return isinstance(node, Call) and not is_pure_call(node)

    return not any_node(statement, reaches_further)
