"""Bindings: what loop transformations do to the blocks below: substitute loop variables, simplify, add guards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.arith import Analyzer
from loopwright.ir import (
    BlockRealize,
    BufferLoad,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    Mod,
    Node,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    const,
    deep,
    is_one,
    logical_and,
    pre_order_visit,
    seq,
    substitute,
    uses_var,
)


@deep
def rebind(body: Stmt, values: Mapping[Var, Expr], around: Sequence[For], keep_units: bool = False) -> Stmt:
    """`body` with loop variables replaced; bindings and predicates simplified under the loops `around` it.

    A loop of one iteration is a number, and goes from the bindings, unless `keep_units` is set.
    """
    facts = Analyzer()
    units: set[Var] = set()
    for loop in around:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        if is_one(loop.extent):
            units.add(loop.loop_var)
    rewriter = _KeepUnits(facts, around, units) if keep_units else _Simplify(facts)
    rewriter.may_be_empty.update([loop.loop_var for loop in around if _may_be_empty(loop)])
    result: Stmt = rewriter.visit(substitute(body, values))
    return result


class _Simplify(Rewriter):
    def __init__(self, facts: Analyzer) -> None:
        self.facts = facts
        self.may_be_empty: set[Var] = set()

    def visit_For(self, loop: For) -> Stmt:
        if _may_be_empty(loop):
            self.may_be_empty.add(loop.loop_var)
        low, extent = self.facts.simplify(loop.min), self.facts.simplify(loop.extent)
        with self.facts.bound(loop.loop_var, Range.from_min_extent(low, extent), inline=False):
            return loop.with_(min=low, extent=extent, body=self.visit(loop.body))

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        values = [self.binding(value) for value in realize.iter_values]
        if realize.block.init is not None and self.may_be_empty:
            axes = zip(realize.block.iter_vars, realize.iter_values, values, strict=True)
            values = [self._of_reduction(*item) for item in axes]
        return realize.with_(iter_values=tuple(values), predicate=self.facts.simplify(realize.predicate))

    def _of_reduction(self, axis: IterVar, value: Expr, simple: Expr) -> Expr:
        """What a reduction axis is bound to: a loop that may have no iterations is seen to be of the reduction."""
        if axis.iter_type != IterType.CommReduce:
            return simple
        gone = {var for var in self.may_be_empty if uses_var(value, {var}.__contains__)}
        return simple if all([uses_var(simple, {var}.__contains__) for var in gone]) else value

    def binding(self, value: Expr) -> Expr:
        return self.facts.simplify(value)


class _KeepUnits(_Simplify):
    """Leaves loops of one iteration in bindings: there, nothing is known of their variables."""

    def __init__(self, facts: Analyzer, around: Sequence[For], units: set[Var]) -> None:
        super().__init__(facts)
        self.units = units
        self.others = Analyzer()
        for loop in around:
            if loop.loop_var not in units:
                self.others.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def visit_For(self, loop: For) -> Stmt:
        if is_one(loop.extent):
            self.units.add(loop.loop_var)
            return super().visit_For(loop)
        with self.others.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), inline=False):
            return super().visit_For(loop)

    def binding(self, value: Expr) -> Expr:
        has_units = uses_var(value, self.units.__contains__)
        return self.others.simplify(value) if has_units else self.facts.simplify(value)


@deep
def guard_blocks(body: Stmt, condition: Expr) -> Stmt:
    """`body` with every outermost block (and every plain statement) run only where `condition` holds."""
    if isinstance(condition, IntImm) and condition.value:
        return body
    result: Stmt = _Guard(condition).visit(body)
    return result


class _Guard(Rewriter):
    def __init__(self, condition: Expr) -> None:
        self.condition = condition

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        both = (realize.predicate, self.condition)
        if _may_fail(realize.predicate):  # what it loads is only there for iterations that run
            both = (self.condition, realize.predicate)
        return realize.with_(predicate=logical_and(*both))

    def visit_For(self, loop: For) -> Stmt:
        if _may_fail(loop.min) or _may_fail(loop.extent):
            return IfThenElse(self.condition, loop)
        return loop.with_(body=self.visit(loop.body))

    def visit_SeqStmt(self, statements: SeqStmt) -> Stmt:
        return seq([self.visit(statement) for statement in statements.seq])

    def visit_Stmt(self, statement: Stmt) -> Stmt:
        return IfThenElse(self.condition, statement)


def _may_be_empty(loop: For) -> bool:
    return not (isinstance(loop.extent, IntImm) and loop.extent.value > 0)


def _may_fail(expr: Expr) -> bool:
    """Whether an expression loads memory, calls or divides: outside of its loop it may have no value."""
    found = False

    def look(node: Node) -> None:
        nonlocal found
        divides = isinstance(node, (FloorDiv, FloorMod, Div, Mod)) and not isinstance(node.b, IntImm)
        found = found or divides or isinstance(node, (BufferLoad, Call))

    pre_order_visit(expr, look)
    return found


def is_true(predicate: Expr) -> bool:
    """Whether a predicate is the literal True."""
    return isinstance(predicate, IntImm) and bool(predicate.value)


TRUE = const(True)
