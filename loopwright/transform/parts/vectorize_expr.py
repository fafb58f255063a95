"""vectorize_expr: an expression of one lane becomes the expression of all lanes.

    A[i * 4] + x  for lanes i = 0 … 3   →   A[T.Ramp(0, 4, 4)] + T.Broadcast(x, 4)

What does not depend on the lane stays scalar until something needs it as a vector. `NeedsLanes` is raised where only
running lane by lane is right: a load that a lane's condition guards, a call the machine has no vector form of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import gcd

from loopwright.analysis.effects import is_pure_call
from loopwright.arith import Analyzer
from loopwright.ir import (
    Add,
    And,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Mul,
    Not,
    Or,
    Ramp,
    Rewriter,
    Select,
    Shuffle,
    Sub,
    Var,
    Visitor,
    const,
    uses_var,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.runtime.dtype import INT32, INT64
from loopwright.transform.parts.flat_index import add_index, mul_index, sub_index
from loopwright.transform.parts.known_ops import IF_THEN_ELSE, LANE_WISE, LIKELY
from loopwright.transform.parts.proved_in_bounds import ProvedInBounds
from loopwright.transform.parts.purity import can_fail, can_fail_beyond, has_data


class NeedsLanes(Exception):
    """Internal to vectorization: this statement runs lane by lane."""


class _SureLoads(Visitor):
    """Collects the loads that happen whenever an expression is evaluated."""

    def __init__(self) -> None:
        self.found: list[BufferLoad] = []

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.found.append(load)
        self.visit_children(load)

    def visit_And(self, expr: And | Or) -> None:
        self.visit(expr.a)

    visit_Or = visit_And

    def visit_Let(self, expr: Let) -> None:
        self.visit(expr.value)

    def visit_Call(self, call: Call) -> None:
        if call.op is IF_THEN_ELSE:
            self.visit(call.args[0])
        else:
            self.visit_children(call)


def sure_loads(expr: Expr) -> list[BufferLoad]:
    """The loads that happen whenever `expr` is evaluated; both values of a Select are."""
    look = _SureLoads()
    look.visit(expr)
    return look.found


class VectorizeExpr(Rewriter):
    """Rewrites expressions for `lanes` lanes, the variable `lane` counting them."""

    def __init__(self, lane: Var, lanes: int, memory: ProvedInBounds) -> None:
        self.lanes = lanes
        self.facts = Analyzer()
        self.memory = memory
        self.sure: list[BufferLoad] = []  # loads that happen in any case, where the part being looked at is evaluated
        self.values: dict[Var, Expr] = {lane: Ramp(const(0, lane.dtype), const(1, lane.dtype), lanes)}

    @contextmanager
    def after(self, expr: Expr) -> Iterator[None]:
        """What is visited here is evaluated only where `expr` is too."""
        known = len(self.sure)
        self.sure += sure_loads(expr)
        try:
            yield
        finally:
            del self.sure[known:]

    def vector(self, expr: Expr) -> Expr:
        """`expr` with all lanes."""
        return Broadcast(expr, self.lanes) if expr.dtype.lanes == 1 else expr

    def depends(self, expr: Expr) -> bool:
        """Whether the lanes differ."""
        return uses_var(expr, self.values.__contains__)

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_Expr(self, expr: Expr) -> Expr:
        # What has no rule here keeps its meaning only where the lanes agree.
        if self.depends(expr):
            raise NeedsLanes
        return expr

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        if expr.a.dtype.lanes > 1:
            return self.visit_Expr(expr)
        a, b = self.visit(expr.a), self.visit(expr.b)
        return self._binary(expr, a, b)

    def _binary(self, expr: BinaryExpr, a: Expr, b: Expr) -> Expr:
        if a is expr.a and b is expr.b:
            return expr
        if a.dtype.lanes != b.dtype.lanes:
            a, b = self.vector(a), self.vector(b)
        return expr.with_(a=a, b=b)

    def _index(self, expr: BinaryExpr) -> Expr:
        if expr.dtype.lanes > 1:
            return self.visit_Expr(expr)
        a, b = self.visit(expr.a), self.visit(expr.b)
        if expr.dtype.is_int and (isinstance(a, Ramp) or isinstance(b, Ramp)):
            build = add_index if isinstance(expr, Add) else sub_index if isinstance(expr, Sub) else mul_index
            if not (isinstance(expr, Mul) and isinstance(a, Ramp) and isinstance(b, Ramp)):
                return build(a, b)
        return self._binary(expr, a, b)

    visit_Add = visit_Sub = visit_Mul = _index

    def _quotient(self, expr: FloorDiv | FloorMod) -> Expr:
        if expr.dtype.lanes > 1:
            return self.visit_Expr(expr)
        a, b = self.visit(expr.a), self.visit(expr.b)
        is_exact = self.memory.numbers.is_index(expr)  # lanes that wrap around take no even steps
        if is_exact and isinstance(a, Ramp) and isinstance(b, IntImm) and isinstance(a.stride, IntImm) and b.value > 0:
            folded = self._ramp_quotient(a, b, a.stride.value, isinstance(expr, FloorDiv))
            if folded is not None:
                return folded
        if is_exact and a.dtype.lanes > 1 and not has_data(expr):
            # The loops around may leave nothing of it: (i * 30 + j * 4 + lane) // 30 is i.
            simple = self.memory.facts.simplify(expr)
            if not isinstance(simple, (FloorDiv, FloorMod)):
                result: Expr = self.visit(simple)
                return result
        return self._binary(expr, a, b)

    visit_FloorDiv = visit_FloorMod = _quotient

    def _ramp_quotient(self, ramp: Ramp, divisor: IntImm, stride: int, wants_quotient: bool) -> Expr | None:
        """ramp // divisor (or %) where all lanes stay within one multiple of the divisor, or step by whole ones."""
        base = ramp.base
        if stride % divisor.value == 0:
            if wants_quotient:
                return Ramp(base // divisor, const(stride // divisor.value, base.dtype), ramp.lanes)
            return base % divisor  # the same on all lanes: what is added to a Ramp leaves it one
        facts = self.facts.modular_set(base)
        step = gcd(int(facts.coeff), divisor.value)
        if step == 0 or stride < 0:
            return None
        first = int(facts.base) % step
        if first + stride * (ramp.lanes - 1) >= step:
            return None
        return base // divisor if wants_quotient else Ramp(base % divisor, ramp.stride, ramp.lanes)

    def _logic(self, expr: And | Or) -> Expr:
        if expr.dtype.lanes > 1:
            return self.visit_Expr(expr)
        a = self.visit(expr.a)
        with self.after(expr.a):
            b = self.visit(expr.b)
            # `b` may be evaluated only on the lanes that need it, and on none where all lanes agree that they do not.
            if (a.dtype.lanes > 1 or b.dtype.lanes > 1) and can_fail(expr.b):
                if can_fail_beyond(expr.b, self.sure, self.memory.holds):
                    raise NeedsLanes
                # All that it loads is loaded anyway, or is there to be loaded; a Select says that it may be evaluated.
                a, b = self.vector(a), self.vector(b)
                known = self.vector(const(isinstance(expr, Or)))
                return Select(a, known, b) if isinstance(expr, Or) else Select(a, b, known)
        return self._binary(expr, a, b)

    visit_And = visit_Or = _logic

    def visit_Not(self, expr: Not) -> Expr:
        return self.visit_Expr(expr) if expr.dtype.lanes > 1 else self.rebuild(expr)

    def visit_Select(self, expr: Select) -> Expr:
        if expr.dtype.lanes > 1:
            return self.visit_Expr(expr)
        with self.after(expr):
            parts = [self.visit(part) for part in (expr.condition, expr.true_value, expr.false_value)]
        if any(part.dtype.lanes > 1 for part in parts):
            parts = [self.vector(part) for part in parts]
        return expr.with_(condition=parts[0], true_value=parts[1], false_value=parts[2])

    def visit_Cast(self, expr: Cast) -> Expr:
        if expr.dtype.lanes > 1:
            return self.visit_Expr(expr)
        value = self.visit(expr.value)
        if isinstance(value, Ramp) and expr.dtype is INT64 and value.dtype.element is INT32 and self._fits(expr.value):
            return Ramp(value.base.astype(expr.dtype), value.stride.astype(expr.dtype), value.lanes)
        return expr.with_(dtype=expr.dtype.with_lanes(value.dtype.lanes), value=value)

    def _fits(self, index: Expr) -> bool:
        """Whether every lane of an index stays within its type, so that converting base and stride converts it."""
        low, high = self.memory.facts.interval(index)
        return not self.memory.numbers.is_data(index) and index.dtype.lowest <= low and high <= index.dtype.highest

    def visit_Let(self, expr: Let) -> Expr:
        self.memory.numbers.let(expr.var, expr.value)
        value = self.visit(expr.value)
        if value.dtype.lanes > expr.value.dtype.lanes:
            var = Var(expr.var.name, value.dtype)
            self.values[expr.var] = var
        else:
            var = expr.var
        return expr.with_(var=var, value=value, body=self.visit(expr.body))

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.dtype.lanes > 1:
            return self.visit_Expr(load)
        indices = rewrite_tuple(load.indices, self.visit)
        if len(indices) > 1 and any(index.dtype.lanes > 1 for index in indices):
            raise NeedsLanes  # flat buffers have one index; others are not for vectors
        return load.with_(indices=indices)

    def visit_Ramp(self, expr: Ramp) -> Expr:
        return self.visit_Expr(expr)

    def visit_Broadcast(self, expr: Broadcast) -> Expr:
        return self.visit_Expr(expr)

    def visit_Shuffle(self, expr: Shuffle) -> Expr:
        return self.visit_Expr(expr)

    def visit_Call(self, call: Call) -> Expr:
        if call.dtype.lanes > 1:
            return self.visit_Expr(call)
        if call.op is IF_THEN_ELSE:
            return self._if_then_else(call)
        if call.op is LIKELY:
            condition = self.visit(call.args[0])
            return condition if condition.dtype.lanes > 1 else call.with_(args=(condition,))
        if call.op not in LANE_WISE:
            # A call with an effect happens once a lane even if all lanes are alike.
            if not is_pure_call(call):
                raise NeedsLanes
            return self.visit_Expr(call)
        args = rewrite_tuple(call.args, self.visit)
        if args is call.args:
            return call
        if any(arg.dtype.lanes > 1 for arg in args):
            args = tuple([self.vector(arg) for arg in args])
            return Call._make(call.dtype.with_lanes(self.lanes), call.op, args, span=call.span)
        return call.with_(args=args)

    def _if_then_else(self, call: Call) -> Expr:
        condition = self.visit(call.args[0])
        if condition.dtype.lanes > 1 and (can_fail(call.args[1]) or can_fail(call.args[2])):
            with self.after(call.args[0]):
                if any(can_fail_beyond(side, self.sure, self.memory.holds) for side in call.args[1:]):
                    raise NeedsLanes  # a guarded load stays guarded
        chosen, other = self.visit(call.args[1]), self.visit(call.args[2])
        if condition.dtype.lanes > 1:
            return Select._make(condition, self.vector(chosen), self.vector(other), span=call.span)
        if chosen.dtype.lanes != other.dtype.lanes:
            chosen, other = self.vector(chosen), self.vector(other)
        if condition is call.args[0] and chosen is call.args[1] and other is call.args[2]:
            return call
        return Call._make(chosen.dtype, call.op, (condition, chosen, other), span=call.span)
