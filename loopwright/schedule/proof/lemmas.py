"""Lemmas: quick, sound ways to *yes* that need no isl. Where none applies, the exact test decides.

permutation_is_free: instances that write distinct cells and read nothing written below the loop run in any order.
unchanged_memory: what flows through memory whose users are the very same statements, in the same order, is the same.
is_alone_with: a block whose memory nobody else touches meanwhile may work on a copy of it that is copied back.
fixed_by: an index list that has each variable, or its quotient and remainder, is another one for other values.

One that needs more room has files of its own: what is read from a buffer that one block fills (`same_source.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from loopwright.analysis.commuting_updates import update_law
from loopwright.analysis.effects import OUTSIDE, EffectsWalk, effects, effects_of_all, meet_in_memory, names_on
from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    DeclBuffer,
    Evaluate,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IfThenElse,
    IntImm,
    IterType,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    collect,
    collect_statements,
    deep,
    is_no_op,
    pre_order_visit,
    uses_var,
)
from loopwright.schedule.rewrite.blocks import is_leaf, is_unit_axis

_PLAIN = {For, SeqStmt, IfThenElse, BlockRealize}  # beside stores, blocks, lets and statements that do nothing
_BESIDE_A_COPY = _PLAIN | {Allocate, AllocateConst, DeclBuffer, Evaluate}


class Touched(NamedTuple):
    """The memory that a statement reads and writes."""

    reads: set[Var]
    writes: set[Var]


def touched(statement: Stmt) -> Touched | None:
    """What a statement touches; None when it holds calls or statements whose effect is not known."""
    done = effects(statement)
    if done.kinds - _PLAIN or done.names or done.calls or done.hints or done.pointers or done.named:
        return None
    return Touched(set(done.loaded), set(done.stored))


class _Others(EffectsWalk):
    """What is done beside a block."""

    def __init__(self, block: Block, path: Sequence[Stmt]) -> None:
        super().__init__(names_on(path))
        self.block = block

    def visit_Block(self, block: Block) -> None:
        if block is not self.block:
            super().visit_Block(block)


@deep
def is_alone_with(block: Block, memory: Var, writes: bool, statement: Stmt, path: Sequence[Stmt]) -> bool:
    """Whether nobody in `statement` but `block` writes the memory, nor, if the block `writes` it, reads it.

    `path` are the statements around `statement`.
    """
    walk = _Others(block, path)
    walk.visit(statement)
    others = walk.found
    if others.kinds - _BESIDE_A_COPY or others.calls or others.hints:
        return False
    behind = {buffer.data for sources in others.names.values() for buffer in sources}
    if memory in walk.names or memory in behind or memory in others.pointers or memory in others.named:
        return False
    return memory not in others.stored and not (writes and memory in others.loaded)


def fixed_by(indices: Sequence[Expr]) -> set[Var]:
    """The variables whose value the indices tell: each is one of them, or both `v // c` and `v % c` are."""
    result = {index for index in indices if isinstance(index, Var)}
    parts: dict[tuple[Var, int], set[type]] = {}
    for index in indices:
        if isinstance(index, (FloorDiv, FloorMod)) and isinstance(index.a, Var) and isinstance(index.b, IntImm):
            parts.setdefault((index.a, index.b.value), set()).add(type(index))
    return result | {var for (var, _), kinds in parts.items() if len(kinds) == 2}


@deep
def unchanged_memory(before: PrimFunc, after: PrimFunc) -> set[Var]:
    """The memory whose users are the same top-level statements, in the same order, in both versions."""
    old, new = _users(before), _users(after)
    result = set()
    for data, mine in new.items():
        theirs = old.get(data, [])
        if len(mine) == len(theirs) and all([a is b for a, b in zip(mine, theirs, strict=True)]):
            result.add(data)
    return result


def _users(function: PrimFunc) -> dict[Var, list[Stmt]]:
    users: dict[Var, list[Stmt]] = {}
    for statement in top_level(function):
        for data in memory_named(statement):
            users.setdefault(data, []).append(statement)
    return users


def top_level(function: PrimFunc) -> Sequence[Stmt]:
    """The statements that stand one after the other in the outermost blocks."""
    statement = function.body
    while _is_around_all(statement):
        statement = statement.block.body
    return statement.seq if isinstance(statement, SeqStmt) else [statement]


def with_top_level(function: PrimFunc, statement: Stmt) -> PrimFunc:
    """The function with another statement in its outermost blocks."""
    around: list[BlockRealize] = []
    inner = function.body
    while _is_around_all(inner):
        around.append(inner)
        inner = inner.block.body
    for realize in reversed(around):
        statement = realize.with_(block=realize.block.with_(body=statement))
    return function.with_(body=statement)


def _is_around_all(statement: Stmt) -> TypeGuard[BlockRealize]:
    """Whether it is a block without axes, which runs once, and gives memory no other names."""
    if not isinstance(statement, BlockRealize):
        return False
    block = statement.block
    return not block.iter_vars and block.init is None and not block.match_buffers


@lru_cache(maxsize=2048)
def memory_named(statement: Stmt | Expr) -> frozenset[Var]:
    """All memory that a statement or an expression names; and what is outside, where a call reaches it."""
    done = effects(statement)
    behind = [buffer.data for sources in done.names.values() for buffer in sources]
    result = {*done.loaded, *done.stored, *done.pointers, *done.named, *done.names, *done.hinted, *behind}
    return frozenset(result | {OUTSIDE.data} if done.reaches_outside else result)


def beside(path: Sequence[Stmt]) -> list[Stmt | Expr]:
    """What stands in the statements of a path, but for the path itself."""
    return [
        other
        for parent, child in pairwise(path)
        for other in parent.children()
        if other is not child and isinstance(other, (Stmt, Expr))
    ]


@deep
def permutation_is_free(loop: For, path: Sequence[Stmt]) -> bool:
    """Whether everything below the loop may run in any order, the inits of reductions where they belong.

    Each block writes each of its buffers at one cell for one value of its data axes; nobody else below the loop touches
    that buffer; and it reads the buffer nowhere, or, as a reduction whose updates commute, at that cell only.
    `path` are the statements around the loop.
    """
    everything = touched(loop.body)
    if everything is None or meet_in_memory(everything.reads | everything.writes, path):
        return False
    blocks: list[BlockRealize] = []
    if not _collect(loop.body, blocks):
        return False
    written: set[Var] = set()
    running = _loop_vars(loop)
    for realize in blocks:
        mine = _written_freely(realize, everything.writes, running)
        if mine is None or not written.isdisjoint(mine):
            return False
        written |= mine
    # Conditions and bounds around the blocks must not depend on what is written below.
    return _reads_around(loop.body).isdisjoint(everything.writes)


def _collect(statement: Stmt, blocks: list[BlockRealize]) -> bool:
    """Every block directly below; False when something else is done there."""
    if isinstance(statement, BlockRealize):
        blocks.append(statement)
        return True
    if isinstance(statement, SeqStmt):
        return all([_collect(item, blocks) for item in statement.seq])
    if isinstance(statement, For):
        return _collect(statement.body, blocks)
    if isinstance(statement, IfThenElse):
        other = statement.else_case
        return _collect(statement.then_case, blocks) and (other is None or _collect(other, blocks))
    return isinstance(statement, Evaluate) and is_no_op(statement)


def _reads_around(statement: Stmt) -> set[Var]:
    """What conditions, bounds, bindings and predicates read."""
    reads: set[Var] = set()

    def look(node: Node) -> bool:
        if isinstance(node, BufferLoad):
            reads.add(node.buffer.data)
        return not isinstance(node, Block)

    pre_order_visit(statement, look)
    return reads


def _loop_vars(root: For) -> set[Var]:
    """The variables of a loop and of those inside it."""
    return {loop.loop_var for loop in collect_statements(root, For)}


def _written_freely(realize: BlockRealize, written_below: set[Var], running: set[Var]) -> set[Var] | None:
    """The memory a block writes, when it does so at cells of its own and depends on nothing written below the loop.

    Axes that only depend on loops outside those that are `running` stand still, and need not show in the cells. A loop
    that is running and that the body itself uses counts like an axis.
    """
    block = realize.block
    if block.alloc_buffers or not is_leaf(block):
        return None
    parts = [block.body, *([block.init] if block.init is not None else [])]
    done = effects_of_all(parts)
    stores, loads = done.stores, done.loads
    kinds = {axis.iter_type for axis in block.iter_vars}
    if not kinds <= {IterType.DataPar, IterType.CommReduce}:
        return None
    reduces = IterType.CommReduce in kinds
    data = {
        axis.var
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type == IterType.DataPar and not is_unit_axis(axis) and uses_var(value, running.__contains__)
    }
    for part in parts:
        data |= _used(part, running)
    cells: dict[Buffer, tuple[Expr, ...]] = {}
    for store in stores:
        if not data <= fixed_by(store.indices):
            return None
        if store.buffer in cells and not _same(cells[store.buffer], store.indices):
            return None
        cells.setdefault(store.buffer, store.indices)
    own = {buffer.data for buffer in cells}
    if len(own) < len(cells):
        return None
    updated: set[Buffer] = set()
    for load in loads:
        if load.buffer in cells:
            if not reduces or not _same(cells[load.buffer], load.indices):
                return None
            updated.add(load.buffer)
        elif load.buffer.data in written_below:
            return None
    if not reduces:
        return own
    # Of a reduction every store must be an update: the last of several plain stores depends on the order. And the
    # updates of one cell must commute.
    if len(updated) < len(cells):
        return None
    law = update_law(block.body, {buffer: buffer for buffer in cells}, block.iter_vars)
    return own if law is not None else None


def _used(root: Stmt, variables: set[Var]) -> set[Var]:
    """The variables that a statement uses."""
    return {node for node in collect(root, Var) if node in variables}


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether the indices are the same variables and literals."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x is not y and not (isinstance(x, IntImm) and isinstance(y, IntImm) and x.value == y.value):
            return False
    return True
