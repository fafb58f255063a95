"""tile_cases: how much of a tile in registers there is to do, decided before the loops over it.

    sums = local (4,)                         →    if n - i * 4 == 1: … for j in T.unroll(1): sums[j] = …
    for k in range(64):                            elif n - i * 4 == 2: … for j in T.unroll(2): sums[j] = …
        for j in T.unroll(4):                      else: … for j in T.unroll(3): sums[j] = …
            if i * 4 + j < n:
                sums[j] = sums[j] + …

The last tile of a size that is known only when the program runs has a row more or a row less. Registers have no
address: a loop over them must have a constant length, or else all sums wait in memory. So the statements that work on
the tile are written once for each length that the last one can have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import (
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    any_node,
    any_statement,
    const,
    seq,
    uses_var,
)
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.guards import Conditions, find_guards
from loopwright.transform.parts.inner_partition_points import has_serial_loop
from loopwright.transform.parts.statements import StmtRewriter

MAX_CASES: Final = 16  # lengths of a tile: each is a copy of everything done to it
REGISTERS: Final = "local"


class _Tile(NamedTuple):
    """Unrolled loops of `extent` iterations of which the first `length` run, and the comparisons that say so."""

    extent: int
    length: Expr
    guards: list[tuple[Expr, Var]]


class _FindTile(Visitor):
    def __init__(self, facts: Analyzer, conditions: Conditions) -> None:
        self.facts, self.conditions = facts, conditions
        self.inner: set[Var] = set()
        self.tile: _Tile | None = None

    def visit_Expr(self, expr: Expr) -> None:
        """There are no loops in expressions."""

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.inner.add(let.var)
        self.visit(let.body)

    def visit_For(self, loop: For) -> None:
        if not self.conditions.are_in(loop.body):
            return
        if loop.kind is ForKind.UNROLLED and isinstance(loop.extent, IntImm) and _has_guard(loop.body):
            self._look(loop, loop.extent.value)
        self.inner.add(loop.loop_var)
        self.visit(loop.body)

    def _look(self, loop: For, extent: int) -> None:
        if extent > MAX_CASES or not _moves_in_registers(loop):
            return
        for guard in find_guards(loop, self.facts, self.conditions):
            length = guard.high
            ends_there = guard.is_statement and guard.low is None and length is not None and length is guard.fails_from
            if not ends_there or guard.is_reversed or isinstance(length, IntImm):
                continue
            assert length is not None
            if uses_var(length, self.inner.__contains__):
                continue  # it is not known yet
            if self.tile is None:
                self.tile = _Tile(extent, length, [])
            if self.tile.extent == extent and self.facts.can_prove_equal(self.tile.length, length):
                self.tile.guards.append((guard.node, loop.loop_var))


def _has_guard(body: Stmt) -> bool:
    return any_statement(body, lambda statement: isinstance(statement, IfThenElse))


def _moves_in_registers(loop: For) -> bool:
    """Whether an access to registers depends on the loop's variable."""
    var = loop.loop_var

    def moves(node: Node) -> bool:
        if not isinstance(node, (BufferLoad, BufferStore)) or node.buffer.scope() != REGISTERS:
            return False
        return any([uses_var(index, lambda used: used is var) for index in node.indices])

    return any_node(loop.body, moves)


class _Decide(Rewriter):
    """The guards of a tile with its length known."""

    def __init__(self, guards: Sequence[tuple[Expr, Var]], length: int) -> None:
        self.decided = {node: var < const(length, var.dtype) for node, var in guards}

    def visit_CompareExpr(self, expr: Expr) -> Expr:
        decided = self.decided.get(expr)
        return self.rebuild(expr) if decided is None else decided


class _Place(StmtRewriter):
    """Writes the statement that holds all of a tile's guards once for each length."""

    def __init__(self, tile: _Tile, facts: Analyzer) -> None:
        self.tile, self.facts = tile, facts
        self.wanted = {node for node, _ in tile.guards}

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        holding = [k for k, statement in enumerate(node.seq) if self._holds(statement)]
        first, last = holding[0], holding[-1] + 1
        if len(holding) == 1:
            return seq([*node.seq[:first], self.visit(node.seq[first]), *node.seq[last:]])
        return seq([*node.seq[:first], self._cases(seq(node.seq[first:last])), *node.seq[last:]])

    def visit_For(self, loop: For) -> Stmt:
        # The length is asked for outside the innermost loop that is neither lanes nor written out.
        return self._cases(loop) if not has_serial_loop(loop.body) else loop.with_(body=self.visit(loop.body))

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        return self._cases(node)

    def _holds(self, statement: Stmt) -> bool:
        finder = _HasNode(self.wanted)
        finder.visit(statement)
        return finder.found

    def _cases(self, statement: Stmt) -> Stmt:
        """An empty length is last: there is none where the loops around end with the tile."""
        extent, length, guards = self.tile
        zero, whole = const(0, length.dtype), const(extent, length.dtype)
        chosen = [(length.equal(const(rows, length.dtype)), rows) for rows in range(1, extent)]
        if not self.facts.can_prove(length < whole):
            chosen.insert(0, (length >= whole, extent))
        if not self.facts.can_prove(length > zero):
            chosen.append((length <= zero, 0))
        chain: Stmt | None = None
        for condition, rows in reversed(chosen):
            body = clone_definitions(_Decide(guards, rows).visit(statement))
            chain = body if chain is None else IfThenElse(condition, body, chain)
        assert chain is not None
        return chain


class _HasNode(Visitor):
    def __init__(self, wanted: set[Expr]) -> None:
        self.wanted, self.found = wanted, False

    def visit_CompareExpr(self, expr: Expr) -> None:
        self.found = self.found or expr in self.wanted


def specialize_tail_tiles(body: Stmt, facts: Analyzer, conditions: Conditions) -> Stmt:
    """`body` with what it does to a tile written once for each length of it that is known outside."""
    if not conditions.are_in(body) or not _has_guard(body):
        return body
    finder = _FindTile(facts, conditions)
    finder.visit(body)
    result: Stmt = body if finder.tile is None else _Place(finder.tile, facts).visit(body)
    return result
