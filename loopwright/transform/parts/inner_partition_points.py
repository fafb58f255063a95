"""inner_partition_points: the guards that a loop inside decides as well, so that the one around it need not be cut.

    for i in range((n + 63) // 64):                the end of B lies in the last iteration of i, and of j in there:
        for k in range(256): …                     to cut i would write the loop over k twice, for nothing
        for j in range(64):
            if i * 64 + j < n: B[i * 64 + j] = …

A cut saves asking a guard again and again; but what it copies are all statements of the loop, also those that have
nothing to do with it. Where they hold loops, asking once more for each of them is next to nothing. A parallel loop is
not cut but branches, which copies just as much.

Where the outer loop is known to be cut at a number, the inner one may ask as well, if it does little of the work: the
border of an image is copied into a tile, and the convolution of that tile would be written out for each border.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from loopwright.ir import (
    BufferStore,
    CompareExpr,
    Evaluate,
    Expr,
    For,
    ForKind,
    IntImm,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    any_statement,
    uses_var,
)

SMALL_SHARE: Final = 1 / 8  # of the work of a loop's body: what is done with a guard that stays
SOME_EXTENT: Final = 16  # of a loop whose length is not known


def decided_inside(loop: For, nodes: Iterable[Expr]) -> set[Expr]:
    """Those comparisons that can be left to a serial loop inside `loop`."""
    walk = _Walk(loop, set(nodes))
    walk.visit(loop.body)
    return walk.found


def decided_cheaply_inside(loop: For, nodes: Iterable[Expr]) -> set[Expr]:
    """Those of them that no lane decides, and that stand only in statements which do a small share of the work."""
    walk = _CheapWalk(loop, set(nodes))
    walk.visit(loop.body)
    return walk.found - walk.elsewhere


def statements_run(statement: Stmt) -> float:
    """How many stores and calls it does, each vector counted as one."""
    if isinstance(statement, (BufferStore, Evaluate)):
        return 1.0
    inner = sum([statements_run(child) for child in statement.children() if isinstance(child, Stmt)])
    return inner * _iterations(statement) if isinstance(statement, For) else inner


def _iterations(loop: For) -> float:
    if loop.kind is ForKind.VECTORIZED:
        return 1.0
    return loop.extent.value if isinstance(loop.extent, IntImm) else SOME_EXTENT


class _Walk(Visitor):
    def __init__(self, loop: For, wanted: set[Expr]) -> None:
        self.wanted = wanted
        # Whether what is here shares the loop with loops of other statements.
        self.is_apart = loop.kind is ForKind.PARALLEL
        self.serial: set[Var] = set()
        self.found: set[Expr] = set()

    def visit_SeqStmt(self, node: SeqStmt) -> None:
        outside = self.is_apart
        busy = [has_serial_loop(statement) for statement in node.seq]
        for position, statement in enumerate(node.seq):
            self.is_apart = outside or any(busy[:position] + busy[position + 1 :])
            self.visit(statement)
        self.is_apart = outside

    def visit_For(self, loop: For) -> None:
        if loop.kind is ForKind.SERIAL:
            self.serial.add(loop.loop_var)
        self.visit(loop.body)
        self.serial.discard(loop.loop_var)

    def visit_CompareExpr(self, expr: CompareExpr) -> None:
        if expr in self.wanted and self.is_apart and uses_var(expr, self.serial.__contains__):
            self.found.add(expr)


class _CheapWalk(_Walk):
    """Finds what stands in serial loops that do little of the work, and is the same in all lanes."""

    def __init__(self, loop: For, wanted: set[Expr]) -> None:
        super().__init__(loop, wanted)
        self.most = SMALL_SHARE * statements_run(loop.body)
        self.times = 1.0  # that a loop here runs in one iteration of the outermost
        self.is_small = False
        self.lanes: set[Var] = set()
        self.elsewhere: set[Expr] = set()

    def visit_For(self, loop: For) -> None:
        times, is_small = self.times, self.is_small
        if loop.kind is ForKind.VECTORIZED:
            self.lanes.add(loop.loop_var)
        elif loop.kind is ForKind.SERIAL and not is_small:
            self.is_small = times * statements_run(loop) <= self.most
        self.times *= _iterations(loop)
        super().visit_For(loop)
        self.times, self.is_small = times, is_small

    def visit_CompareExpr(self, expr: CompareExpr) -> None:
        super().visit_CompareExpr(expr)
        is_cheap = self.is_small and expr in self.found and not uses_var(expr, self.lanes.__contains__)
        if expr in self.wanted and not is_cheap:
            self.elsewhere.add(expr)


def has_serial_loop(statement: Stmt) -> bool:
    """Whether there is a loop in it that is neither lanes nor written out."""
    return any_statement(statement, lambda node: isinstance(node, For) and node.kind is ForKind.SERIAL)
