"""Bindings: what loop transformations do to the blocks below: substitute loop variables, simplify, add guards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.analysis.may_fail import could_fail
from loopwright.analysis.reduction_init import reducing_variables, variables_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    GE,
    GT,
    And,
    BlockRealize,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IfThenElse,
    IntImm,
    IterType,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    collect,
    conjuncts,
    const,
    deep,
    is_one,
    logical_and,
    seq,
    substitute,
    uses_var,
)


@deep
def rebind(body: Stmt, values: Mapping[Var, Expr], around: Sequence[For], keep_units: bool = False) -> Stmt:
    """`body` with loop variables replaced; bindings and predicates simplified under the loops `around` it.

    A loop of one iteration is a number, and goes from the bindings, unless `keep_units` is set.
    """
    rewriter = (_KeepUnits if keep_units else _Simplify)(around)
    result: Stmt = rewriter.visit(substitute(body, values))
    return result


class _Simplify(Rewriter):
    def __init__(self, around: Sequence[For]) -> None:
        self.facts = Analyzer()
        self.loops: list[For] = []
        self.may_be_empty: set[Var] = set()
        for loop in around:
            self.facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
            self.enter(loop)

    def enter(self, loop: For) -> None:
        self.loops.append(loop)
        if _may_be_empty(loop):
            self.may_be_empty.add(loop.loop_var)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.facts.simplify(loop.min), self.facts.simplify(loop.extent)
        with self.facts.bound(loop.loop_var, Range.from_min_extent(low, extent), inline=False):
            self.enter(loop)
            body = self.visit(loop.body)
            self.loops.pop()
            return loop.with_(min=low, extent=extent, body=body)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        empty = self._empty_reductions(realize) if self.may_be_empty and realize.block.init is not None else None
        if empty:
            return self._with_init_of_nothing(realize, empty)
        predicate = self._predicate(realize)
        values = [self.binding(value) for value in realize.iter_values]
        if realize.block.init is not None and not is_true(predicate):
            named = set(collect(predicate, Var))  # of these, loops of the reduction are still seen to be that
            for position, axis in enumerate(realize.block.iter_vars):
                old = realize.iter_values[position]
                lost = named & (set(collect(old, Var)) - set(collect(values[position], Var)))
                if axis.iter_type == IterType.CommReduce and lost:
                    values[position] = old
        return realize.with_(iter_values=tuple(values), predicate=predicate)

    def _predicate(self, realize: BlockRealize) -> Expr:
        """The predicate as it was written, without what always holds; that of a reduction still speaks of its loops.

        A condition on loops of the reduction alone says which updates happen, and one that ties them to others for
        which cells there are any (`analysis/reduction_init.py`): neither may come to speak of nothing.
        """
        reduced = reducing_variables(realize) if realize.block.init is not None else set()
        conditions = []
        for condition in conjuncts(realize.predicate):
            simple = self.facts.simplify(condition)
            is_decided = isinstance(simple, IntImm) and _is_same_kind(condition, simple, reduced)
            conditions.append(simple if is_decided else condition)
        return logical_and(TRUE, *conditions)

    def binding(self, value: Expr) -> Expr:
        return as_digits(self.facts.simplify(value))

    # --- a reduction of nothing still writes its init --------------------------------------------------------------

    def _empty_reductions(self, realize: BlockRealize) -> set[Var]:
        """The loops of a reduction that may have no iterations."""
        axes = zip(realize.block.iter_vars, realize.iter_values, strict=True)
        reduced = [value for axis, value in axes if axis.iter_type == IterType.CommReduce]
        return {var for var in self.may_be_empty if any([uses_var(value, {var}.__contains__) for value in reduced])}

    def _with_init_of_nothing(self, realize: BlockRealize, empty: set[Var]) -> Stmt:
        """The init runs where the reduction has no iterations: what holds in those says nothing about the rest."""
        outside = type(self)([loop for loop in self.loops if loop.loop_var not in empty])
        values = []
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            if axis.iter_type == IterType.CommReduce:
                simple = self.binding(value)  # must still be seen to be bound to the loops of the reduction
                gone = [var for var in empty if uses_var(value, {var}.__contains__)]
                values.append(simple if all([uses_var(simple, {var}.__contains__) for var in gone]) else value)
            else:
                values.append(outside.binding(value))
        reduced = reducing_variables(realize)
        if not uses_var(realize.predicate, empty.__contains__):
            return realize.with_(iter_values=tuple(values), predicate=outside.facts.simplify(realize.predicate))
        conditions = []
        for condition in conjuncts(realize.predicate):
            if uses_var(condition, empty.__contains__):
                simple = self.facts.simplify(condition)
                keeps = uses_var(simple, empty.__contains__) or is_true(simple)
                keeps = keeps and _is_same_kind(condition, simple, reduced)
                conditions.append(simple if keeps else condition)
            else:
                conditions.append(outside.facts.simplify(condition))
        return realize.with_(iter_values=tuple(values), predicate=logical_and(TRUE, *conditions))


def _is_same_kind(condition: Expr, simple: Expr, reduced: set[Var]) -> bool:
    """Whether a condition, simplified, still is one on updates, or still ties the loops of the reduction to others."""
    before, after = variables_of(condition), variables_of(simple)
    if before <= reduced:
        return bool(after) or is_true(simple)
    return before & reduced == after & reduced and (after <= reduced) == (before <= reduced)


class _KeepUnits(_Simplify):
    """Leaves loops of one iteration in bindings: there, nothing is known of their variables."""

    def binding(self, value: Expr) -> Expr:
        units = {loop.loop_var for loop in self.loops if is_one(loop.extent)}
        if not units or not uses_var(value, units.__contains__):
            return as_digits(self.facts.simplify(value))
        others = Analyzer()
        for loop in self.loops:
            if loop.loop_var not in units:
                others.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        return as_digits(others.simplify(value))


class _AsDigits(Rewriter):
    def visit_FloorMod(self, node: FloorMod) -> Expr:
        a, b = self.visit(node.a), self.visit(node.b)
        if isinstance(a, FloorDiv) and not isinstance(a.a, (FloorDiv, FloorMod)) and _is_constant_pair(a.b, b):
            return a.a % (a.b * b) // a.b
        return node.with_(a=a, b=b)


def _is_constant_pair(a: Expr, b: Expr) -> bool:
    return isinstance(b, IntImm) and b.value > 0 and isinstance(a, IntImm) and a.value > 0


def as_digits(value: Expr) -> Expr:
    """A binding with the digits of a loop written as maps of iterations write them: `f % 48 // 8`, not `f // 8 % 6`."""
    if not any_node(value, lambda node: isinstance(node, FloorMod)):
        return value
    result: Expr = _AsDigits().visit(value)
    return result


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
        if could_fail(realize.predicate):  # what it loads is only there for iterations that run
            both = (self.condition, realize.predicate)
        return realize.with_(predicate=logical_and(*both))

    def visit_For(self, loop: For) -> Stmt:
        if could_fail(loop.min) or could_fail(loop.extent):
            return IfThenElse(self.condition, loop)
        return loop.with_(body=self.visit(loop.body))

    def visit_SeqStmt(self, statements: SeqStmt) -> Stmt:
        return seq([self.visit(statement) for statement in statements.seq])

    def visit_Stmt(self, statement: Stmt) -> Stmt:
        return IfThenElse(self.condition, statement)


def _may_be_empty(loop: For) -> bool:
    return not (isinstance(loop.extent, IntImm) and loop.extent.value > 0)


def bound_first(condition: Expr) -> Expr:
    """A condition as predicates are written: `16 <= i`, not `i >= 16`."""
    if isinstance(condition, GE):
        return condition.b <= condition.a
    if isinstance(condition, GT):
        return condition.b < condition.a
    if isinstance(condition, And):
        return logical_and(bound_first(condition.a), bound_first(condition.b))
    return condition


def is_true(predicate: Expr) -> bool:
    """Whether a predicate is the literal True."""
    return isinstance(predicate, IntImm) and bool(predicate.value)


TRUE = const(True)
