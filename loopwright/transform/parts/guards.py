"""guards: the comparisons inside a loop that its variable decides, and the iterations for which each holds.

    for i in range(3):
        for j in range(4):
            if i * 4 + j < 10: ...            holds for every j while i < 2

A guard compares `c * i + rest` with 0, for a literal `c`. `rest` may use what is known before the loop, and inner loop
variables of known range: the comparison then holds surely for those `i` for which it holds throughout the inner loops,
and fails surely for those for which it holds nowhere in them. It reads no memory, which may change in the loop, and
divides by literals only: it is asked for before the loop, whatever the program asks first.
"""

from __future__ import annotations

from typing import NamedTuple

from loopwright.arith import Analyzer, interval_of, linear_coefficients
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LT,
    NE,
    And,
    Call,
    CompareExpr,
    Expr,
    For,
    IfThenElse,
    IntImm,
    Let,
    LetStmt,
    Node,
    Not,
    Or,
    Range,
    Sub,
    Var,
    Visitor,
    const,
    uses_var,
)
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, LIKELY
from loopwright.transform.parts.purity import can_fail


class Guard(NamedTuple):
    """The comparison `node` holds where low <= i < high, and fails where i < fails_below or fails_from <= i."""

    node: CompareExpr
    low: Expr | None
    high: Expr | None
    fails_below: Expr | None
    fails_from: Expr | None
    is_reversed: bool  # `node` is the opposite of all that
    is_statement: bool  # it guards a statement, not just a value
    is_inside: bool  # it is asked many times an iteration: it stands inside an inner loop

    def truth(self, start: Expr, end: Expr) -> bool | None:
        """Whether `node` holds in all iterations start <= i < end; None when that depends or is not known."""
        if (self.low is None or reaches(start, self.low)) and (self.high is None or reaches(self.high, end)):
            return not self.is_reversed
        before = self.fails_below is not None and reaches(self.fails_below, end)
        after = self.fails_from is not None and reaches(start, self.fails_from)
        return self.is_reversed if before or after else None


def reaches(a: Expr, b: Expr) -> bool:
    """Whether a >= b is plain to see."""
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value >= b.value)


class Conditions:
    """Which nodes hold a condition that could be a guard: each is asked once, however many loops are around it."""

    def __init__(self) -> None:
        self._known: dict[Node, bool] = {}

    def are_in(self, node: Node) -> bool:
        found = self._known.get(node)
        if found is None:
            inside = [self.are_in(child) for child in node.children()]
            found = self._known[node] = any(inside) or is_condition(node)
        return found


def is_condition(node: Node) -> bool:
    """Whether it chooses between statements or values."""
    return isinstance(node, IfThenElse) or (isinstance(node, Call) and node.op is IF_THEN_ELSE)


class _FindGuards(Visitor):
    def __init__(self, loop: For, facts: Analyzer, conditions: Conditions) -> None:
        self.var, self.facts, self.conditions = loop.loop_var, facts, conditions
        self.inner: dict[Var, Range | None] = {}  # variables bound inside, outermost first → their range, if known
        self.found: dict[CompareExpr, Guard | None] = {}
        self.depth = 0

    def visit_children(self, node: Node) -> None:
        for child in node.children():
            if self.conditions.are_in(child):
                self.visit(child)

    def visit_For(self, inner: For) -> None:
        self.inner[inner.loop_var] = Range.from_min_extent(inner.min, inner.extent)
        self.depth += 1
        self.visit(inner.body)
        self.depth -= 1

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.inner[let.var] = None
        self.visit_children(let)

    def visit_Let(self, let: Let) -> None:
        self.inner[let.var] = None
        self.visit_children(let)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self._condition(node.condition, True)
        self.visit_children(node)

    def visit_Call(self, call: Call) -> None:
        if call.op is IF_THEN_ELSE:
            self._condition(call.args[0], False)
        self.visit_children(call)

    def _condition(self, expr: Expr, is_statement: bool) -> None:
        if isinstance(expr, (And, Or)):
            self._condition(expr.a, is_statement)
            self._condition(expr.b, is_statement)
        elif isinstance(expr, Not):
            self._condition(expr.a, is_statement)
        elif isinstance(expr, Call) and expr.op is LIKELY:
            self._condition(expr.args[0], is_statement)
        elif isinstance(expr, CompareExpr) and expr.a.dtype is self.var.dtype and expr not in self.found:
            self.found[expr] = self._guard(expr, is_statement)

    def _guard(self, node: CompareExpr, is_statement: bool) -> Guard | None:
        var, kind = self.var, type(node)
        if not uses_var(node, lambda used: used is var) or can_fail(node):
            return None
        # The comparison reads step * var + rest < 0, <= 0 or == 0.
        linear = linear_coefficients(_difference(node), [var], self.facts)
        if linear is None:
            short = self.facts.simplify(node)  # the quotient of a fused variable: i // 3 < 5 is i < 15
            if isinstance(short, CompareExpr) and short.a.dtype is var.dtype:
                kind = type(short)
                linear = linear_coefficients(_difference(short), [var], self.facts)
        if linear is None or not isinstance(linear[0][0], IntImm) or linear[0][0].value == 0:
            return None
        step, rest = linear[0][0].value, linear[1]
        if abs(step) > var.dtype.highest:
            return None  # no number of the loop's type says where
        is_exact = not uses_var(rest, self.inner.__contains__)
        least, greatest = (rest, rest) if is_exact else self._range(rest)
        if greatest is None:
            return None
        if kind in (EQ, NE):
            if abs(step) != 1 or not is_exact:
                return None
            at = self.facts.simplify(rest * const(-step, var.dtype))
            after = self.facts.simplify(at + 1)
            return Guard(node, at, after, at, after, kind is NE, is_statement, self.depth > 0)
        strict = kind in (LT, GT)
        holds = self._border(step, greatest, strict)
        fails = holds if is_exact else None if least is None else self._border(step, least, strict)
        if step > 0:
            return Guard(node, None, holds, None, fails, False, is_statement, self.depth > 0)
        return Guard(node, holds, None, fails, None, False, is_statement, self.depth > 0)

    def _border(self, step: int, rest: Expr, strict: bool) -> Expr:
        """The first iteration for which step * i + rest <= 0 (< 0 if strict) no longer holds; or holds, if step < 0."""
        rest = rest + 1 if strict else rest
        if step > 0:
            return self.facts.simplify((const(0, self.var.dtype) - rest) // const(step, self.var.dtype) + 1)
        return self.facts.simplify((rest + (-step - 1)) // const(-step, self.var.dtype))

    def _range(self, rest: Expr) -> tuple[Expr | None, Expr | None]:
        """The least and greatest value of `rest` over the inner loops, in terms of what is known before the loop."""
        domains = {}
        for var, domain in self.inner.items():
            if domain is not None:
                domains[var] = domain
            elif uses_var(rest, lambda used, unknown=var: used is unknown):  # type: ignore[misc]
                return None, None
        interval = interval_of(rest, domains, self.facts)
        if interval is None:
            return None, None
        # How far an inner loop runs may depend on this one, and then so does what it does to `rest`.
        least, greatest = [
            None if uses_var(end, lambda used: used is self.var or used in self.inner) or can_fail(end) else end
            for end in interval
        ]
        return least, greatest


def _difference(node: CompareExpr) -> Expr:
    return Sub(node.b, node.a) if isinstance(node, (GT, GE)) else Sub(node.a, node.b)


def find_guards(loop: For, facts: Analyzer, conditions: Conditions | None = None) -> list[Guard]:
    """The guards inside `loop` that its variable decides; who asks for many loops keeps `conditions`."""
    finder = _FindGuards(loop, facts, conditions or Conditions())
    if finder.conditions.are_in(loop.body):
        finder.visit(loop.body)
    return [guard for guard in finder.found.values() if guard is not None]
