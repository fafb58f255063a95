"""Sites: the accesses of a statement to memory that is looked at, with the loops and conditions around each of them.

Statements without synchronisation are looked at as a whole: threads run them in any order. What reads happen in
`T.if_then_else` and `Select` happen under their conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loopwright.analysis.async_order.footprints import Site, Step
from loopwright.analysis.async_order.values import is_counter
from loopwright.ir import (
    Allocate,
    And,
    AssertStmt,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    Let,
    LetStmt,
    Node,
    Select,
    SeqStmt,
    Stmt,
    Var,
    While,
    any_node,
    pre_order_visit,
)


class Plain(NamedTuple):
    """What a statement without synchronisation does."""

    sites: tuple[Site, ...]
    free: tuple[Var, ...]  # of which its accesses depend
    counters: tuple[Var, ...]  # the memory of local integers that it loads
    changed: tuple[Var, ...]  # … and that it stores to
    escapes: tuple[Buffer, ...]  # memory whose address something else gets


class _Collect:
    """Walks a statement in the order in which a thread runs it."""

    def __init__(self, tracked: frozenset[Var]) -> None:
        self.tracked = tracked
        self.around: tuple[Step, ...] = ()
        self.sites: list[Site] = []
        self.changed: dict[Var, None] = {}
        self.escapes: dict[Buffer, None] = {}
        self.statement: Stmt | None = None

    def inside(self, step: Step, node: Node | None) -> None:
        if node is not None:
            before, self.around = self.around, (*self.around, step)
            self.visit(node)
            self.around = before

    def under(self, condition: Expr, holds: bool, node: Node | None) -> None:
        before = self.around
        terms = _terms(condition) if holds else [condition]
        self.around = (*before, *[Step(condition, term, holds) for term in terms])
        if node is not None:
            self.visit(node)
        self.around = before

    def visit(self, node: Node) -> None:
        if isinstance(node, Expr):
            self.expr(node)
            return
        if isinstance(node, (BufferStore, Evaluate, LetStmt, IfThenElse)):
            self.statement = node
        if isinstance(node, SeqStmt):
            for part in node.seq:
                self.visit(part)
        elif isinstance(node, For):
            self.expr(node.min)
            self.expr(node.extent)
            self.inside(Step(node), node.body)
        elif isinstance(node, While):
            self.expr(node.condition)
            self.inside(Step(node.condition, node.condition), node.body)
        elif isinstance(node, IfThenElse):
            self.expr(node.condition)
            self.under(node.condition, True, node.then_case)
            self.under(node.condition, False, node.else_case)
        elif isinstance(node, LetStmt):
            self.expr(node.value)
            self.inside(Step(node.var, node.value), node.body)
        elif isinstance(node, BufferStore):
            for index in node.indices:
                self.expr(index)
            self.expr(node.value)
            self.access(node, node.buffer, node.indices, True)
        elif isinstance(node, (AttrStmt, Allocate, DeclBuffer)):
            self.visit(node.body)
        elif isinstance(node, AssertStmt):
            self.expr(node.condition)
            self.visit(node.body)
        elif isinstance(node, Evaluate):
            self.expr(node.value)
        else:
            pre_order_visit(node, self._any)

    def _any(self, node: Node) -> bool:
        if isinstance(node, (BufferLoad, BufferStore)):
            self.escape(node.buffer)
        return True

    def expr(self, expr: Expr) -> None:
        if isinstance(expr, BufferLoad):
            for index in expr.indices:
                self.expr(index)
            self.access(expr, expr.buffer, expr.indices, False)
        elif isinstance(expr, Select):
            self.chosen(expr.condition, expr.true_value, expr.false_value)
        elif isinstance(expr, Let):
            self.expr(expr.value)
            self.inside(Step(expr.var, expr.value), expr.body)
        elif isinstance(expr, Call):
            self.call(expr)
        else:
            for child in expr.children():
                if isinstance(child, Expr):
                    self.expr(child)

    def call(self, expr: Call) -> None:
        if expr.op.name == "tir.if_then_else":
            self.chosen(expr.args[0], expr.args[1], expr.args[2])
            return
        for argument in expr.args:
            if isinstance(argument, BufferLoad) and expr.op.name == "tir.address_of":
                for index in argument.indices:
                    self.expr(index)
                self.escape(argument.buffer)
            elif isinstance(argument, Expr):
                self.expr(argument)

    def chosen(self, condition: Expr, then: Expr, otherwise: Expr) -> None:
        self.expr(condition)
        self.under(condition, True, then)
        self.under(condition, False, otherwise)

    def access(self, node: Node, buffer: Buffer, indices: tuple[Expr, ...], is_write: bool) -> None:
        if buffer.data in self.tracked:
            assert self.statement is not None
            self.sites.append(Site(node, buffer, tuple(indices), is_write, self.around, self.statement))
        elif is_write and is_counter(buffer):
            self.changed[buffer.data] = None

    def escape(self, buffer: Buffer) -> None:
        if buffer.scope().startswith("shared") or buffer.data in self.tracked:
            self.escapes[buffer] = None
        if is_counter(buffer):
            self.changed[buffer.data] = None


def _terms(condition: Expr) -> list[Expr]:
    return [*_terms(condition.a), *_terms(condition.b)] if isinstance(condition, And) else [condition]


def plain(statement: Stmt, tracked: frozenset[Var]) -> Plain:
    """What a statement without synchronisation does."""
    collect = _Collect(tracked)
    collect.statement = statement
    collect.visit(statement)
    return _plain(collect)


def reads_of(expr: Expr, statement: Stmt, tracked: frozenset[Var]) -> Plain:
    """What the computation of an expression reads."""
    collect = _Collect(tracked)
    collect.statement = statement
    collect.expr(expr)
    return _plain(collect)


def _plain(collect: _Collect) -> Plain:
    bound: set[Var] = set()
    used: dict[Var, None] = {}
    counters: dict[Var, None] = {}

    def look(node: Node) -> bool:
        if isinstance(node, Var) and node.dtype.kind != "handle":
            used[node] = None
        elif isinstance(node, BufferLoad) and is_counter(node.buffer):
            counters[node.buffer.data] = None
        return True

    for site in collect.sites:
        for step in site.around:
            if isinstance(step.node, For):
                bound.add(step.node.loop_var)
                pre_order_visit(step.node.min, look)
                pre_order_visit(step.node.extent, look)
            elif step.value is not None:
                if isinstance(step.node, Var):
                    bound.add(step.node)
                pre_order_visit(step.value, look)
        for index in site.indices:
            pre_order_visit(index, look)
    free = tuple([var for var in used if var not in bound])
    return Plain(tuple(collect.sites), free, tuple(counters), tuple(collect.changed), tuple(collect.escapes))


def children_of(statement: Stmt) -> Iterator[Stmt]:
    """The statements right inside of a statement."""
    for child in statement.children():
        if isinstance(child, Stmt):
            yield child


def mentions(node: Node, names: frozenset[str]) -> bool:
    """Whether one of the calls stands in it."""
    return any_node(node, lambda inner: isinstance(inner, Call) and inner.op.name in names)
