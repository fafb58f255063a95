"""The walk of `rewrite_simplify`: operands first, then the first row that matches, until none does.

    x * y + x * 10      →   x * (y + 10)            terms with a common factor
    x < y - 10          →   x + 10 < y              literals right, and positive
    a >= b              →   b <= a                  no greater-than
    (x // 8) * 8 + x % 8   →   x

Facts are those of the analyzer: what it decides (a literal, a comparison, the smaller of two operands) needs no row.
Floats, narrow integers and what comes from memory are simplified as by `simplify`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from loopwright.arith.bounds import expr_range
from loopwright.arith.constraints import assume_condition, narrow
from loopwright.arith.data import is_data
from loopwright.arith.linear import TooWide, imm, is_index
from loopwright.arith.rewrite.comparisons import CONDITIONS
from loopwright.arith.rewrite.divisions import DIVISIONS
from loopwright.arith.rewrite.extrema import EXTREMA
from loopwright.arith.rewrite.pattern import LITERALS, Env, Rule, Table, build, computed, is_literal, match
from loopwright.arith.rewrite.sums import SUMS
from loopwright.arith.rewrite.vectors import rewrite_vector
from loopwright.arith.simplify import Simplifier
from loopwright.arith.wrapping import fold
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Any_,
    BinaryExpr,
    Call,
    CallEffect,
    Cast,
    CompareExpr,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Op,
    Or,
    Reduce,
    Select,
    Sub,
    Var,
    any_node,
    structural_equal,
)
from loopwright.ir.operators import DivisionByZero

ROWS: Final[list[Rule]] = [*SUMS, *DIVISIONS, *EXTREMA, *CONDITIONS]
STEPS: Final = 2_000  # rewrites for one question: rows that undo each other must have an end

_OPPOSITE: Final[dict[type[Any], type[Any]]] = {LT: GE, LE: GT, GT: LE, GE: LT, EQ: NE, NE: EQ}
_SIGNS: Final[dict[type[Any], str]] = {Div: "/", Mod: "%", FloorDiv: "//", FloorMod: "%"}


@cache
def _table() -> Table:
    return Table(ROWS)


def rewrite(engine: Simplifier, e: Expr) -> Expr:
    """`e` rewritten under the facts of `engine`."""
    if any_node(e, has_effect):
        return engine.simplify(e)
    return Rewriter(engine).visit(e)


def has_effect(node: object) -> bool:
    return isinstance(node, Call) and (not isinstance(node.op, Op) or node.op.effect > CallEffect.READ_STATE)


class Rewriter:
    """One question to the tables."""

    def __init__(self, engine: Simplifier) -> None:
        self.engine = engine
        self.left = STEPS
        self.done: dict[Expr, Expr] = {}

    def visit(self, e: Any) -> Any:
        result = self.done.get(e)
        if result is None:
            result = self._visit(e)
            self.done[e] = result
            self.done[result] = result
        return result

    def _visit(self, e: Expr) -> Expr:
        if isinstance(e, (IntImm, FloatImm)):
            return e
        if isinstance(e, Var):
            return self.engine.facts.values.get(e, e)
        if isinstance(e, (GT, GE)):
            return self.visit((LT if type(e) is GT else LE)(e.b, e.a))
        if isinstance(e, (LE, NE)):
            return self._opposite(e)
        if isinstance(e, Not):
            return self._not(self.visit(e.a))
        if isinstance(e, (And, Or)):
            return self._logic(e)
        if isinstance(e, Select):
            return self._select(e)
        if isinstance(e, Call) and e.op.name == "tir.if_then_else":
            return self._if_then_else(e)
        if isinstance(e, BinaryExpr):
            return self._binary(e)
        if isinstance(e, Reduce):
            return self._reduce(e)
        e = e.rebuild(self._visit_child)
        if isinstance(e, (Cast, Call, Let)):
            result = self.engine.simplify(e)
            if type(result) is not type(e):
                return self.visit(result)
        return e

    def _visit_child(self, child: Any) -> Any:
        return self.visit(child) if isinstance(child, Expr) else child

    # --- arithmetic and comparisons ----------------------------------------------------------------------------

    def _binary(self, e: BinaryExpr) -> Expr:
        a, b = self.visit(e.a), self.visit(e.b)
        if a is not e.a or b is not e.b:
            e = type(e)(a, b, span=e.span)  # type: ignore[call-arg]
        if isinstance(e, (Div, Mod, FloorDiv, FloorMod)) and _is_zero(b):
            raise DivisionByZero(_SIGNS[type(e)])
        if a.dtype.is_vector:
            result = rewrite_vector(self.engine, e, self.proves)
            return self.visit(result) if result is not None else e
        folded = fold(e) or _fold_half(e)
        if folded is not None:
            return folded
        if not is_index(a.dtype) or is_data(self.engine, a) or is_data(self.engine, b):
            return self.engine.simplify(e) if not a.dtype.is_bool else self._by_row(e)
        known = self.engine.simplify(e)
        if isinstance(known, IntImm):
            return known
        if isinstance(e, (Min, Max)):
            chosen = self._smaller(e)
            if chosen is not None:
                return chosen
        return self._by_row(e)

    def _smaller(self, e: Any) -> Expr | None:
        """The operand that a minimum or maximum is, where the facts or its form say which."""
        cls = type(e)
        for one, other in ((e.a, e.b), (e.b, e.a)):
            if self.proves(LE(one, other) if cls is Min else GE(one, other)):
                return one
        for chain, other in ((e.a, e.b), (e.b, e.a)):
            inner = chain
            while type(inner) is cls:  # min(min(…, y …), y)
                if self.same(inner.b, other) or self.same(inner.a, other):
                    return chain
                inner = inner.a
        return None

    def _by_row(self, e: Expr) -> Expr:
        self.engine.attempted += 1
        for row in _table().candidates(e):
            env: Env = {}
            if not match(row.left, e, env, self.same):
                continue
            dtype = self._index_type(env)
            if dtype is None:
                continue
            try:
                if not all([self._holds(condition, env, dtype) for condition in row.when]):
                    continue
                result = build(row.right, env, dtype)
            except (TooWide, ZeroDivisionError):
                continue
            if self.left <= 0:
                return e
            self.left -= 1
            self.engine.performed += 1
            return self.visit(result)
        return e

    def _index_type(self, env: Env) -> Any:
        """The type of the indices among the operands; None where the rows do not hold for them."""
        found: Any = ()
        for variable, value in env.items():
            if variable in LITERALS:
                continue
            if variable.dtype.is_bool:
                if value.dtype.is_vector or not value.dtype.is_bool:
                    return None
            elif not is_index(value.dtype) or is_data(self.engine, value):
                return None
            else:
                found = value.dtype
        return found

    def _holds(self, condition: Expr, env: Env, dtype: Any) -> bool:
        return bool(computed(condition, env)) if is_literal(condition) else self.proves(build(condition, env, dtype))

    def proves(self, condition: Expr) -> bool:
        known = self.engine.simplify(condition)
        return isinstance(known, IntImm) and bool(known.value)

    def same(self, a: Expr, b: Expr) -> bool:
        if a is b:
            return True
        if type(a) is not type(b) or isinstance(a, Var):
            return False
        if isinstance(a, Any_):
            return False  # each stands for a size of its own
        if isinstance(a, BinaryExpr):
            return self.same(a.a, b.a) and self.same(a.b, b.b)  # type: ignore[attr-defined]
        return structural_equal(a, b)

    def _opposite(self, e: Any) -> Expr:
        """a <= b as the opposite of b < a, a != b as that of a == b: each kind of comparison has its rows once."""
        if is_index(e.a.dtype):
            result = self._not(self.visit(LT(e.b, e.a) if type(e) is LE else EQ(e.a, e.b)))
            if type(result) is LE and type(result.b) is IntImm and not is_data(self.engine, result.a):
                if expr_range(self.engine, result.a)[0] == result.b.value:
                    return EQ(result.a, result.b)
            return result
        return self._binary(e)

    def _not(self, e: Any) -> Expr:
        """The opposite of a rewritten condition."""
        if isinstance(e, IntImm):
            return imm(1 - e.value, e.dtype)
        if isinstance(e, CompareExpr) and e.a.dtype.is_int:
            cls = _OPPOSITE[type(e)]
            return (LE if cls is GE else LT)(e.b, e.a) if cls in (GT, GE) else cls(e.a, e.b)
        if isinstance(e, Not):
            return e.a
        if isinstance(e, (And, Or)) and not e.dtype.is_vector:
            return (Or if type(e) is And else And)(self._not(e.a), self._not(e.b))
        return Not(e)

    # --- conditions --------------------------------------------------------------------------------------------

    def _under(self, condition: Expr, holds: bool, e: Expr) -> Expr:
        """`e` rewritten where the condition holds, or does not."""
        engine, done = self.engine, self.done
        saved = engine.enter()
        self.done = {}
        try:
            assume_condition(engine, engine.simplify(condition), holds)
            return self.visit(e)
        finally:
            self.done = done
            engine.leave(saved)

    def _logic(self, e: Any) -> Expr:
        a, b = self.visit(e.a), self.visit(e.b)
        is_and = type(e) is And
        e = e if a is e.a and b is e.b else type(e)(a, b)
        if e.dtype.is_vector:
            result = rewrite_vector(self.engine, e, self.proves)
            return self.visit(result) if result is not None else e
        for one, other in ((a, b), (b, a)):
            if isinstance(one, IntImm):
                return other if bool(one.value) == is_and else one
        # The second operand matters only where the first does not decide.
        known = self._under(a, is_and, b)
        if isinstance(known, IntImm):
            return a if bool(known.value) == is_and else known
        known = self.engine.simplify(e)
        return known if isinstance(known, IntImm) else self._by_row(e)

    def _select(self, e: Select) -> Expr:
        condition = self.visit(e.condition)
        if isinstance(condition, IntImm):
            return self.visit(e.true_value if condition.value else e.false_value)
        if condition.dtype.is_vector:
            one, other = self.visit(e.true_value), self.visit(e.false_value)
        else:
            one, other = self._under(condition, True, e.true_value), self._under(condition, False, e.false_value)
        if self.same(one, other):
            return one
        return self._by_row(e.with_(condition=condition, true_value=one, false_value=other))

    def _if_then_else(self, e: Call) -> Expr:
        condition = self.visit(e.args[0])
        if isinstance(condition, IntImm):
            return self.visit(e.args[1] if condition.value else e.args[2])
        one, other = self._under(condition, True, e.args[1]), self._under(condition, False, e.args[2])
        if self.same(one, other):
            return one
        if isinstance(one, Call) and one.op is e.op and self.same(one.args[2], other):
            # `And` stops early: the inner condition, which may be a load, is still asked under the outer one only.
            return e.with_(args=(self.visit(And(condition, one.args[0])), one.args[1], other))
        return e.with_(args=(condition, one, other))

    def _reduce(self, e: Reduce) -> Expr:
        """The operands where the axes run; a reduction over nothing is its operand, or what it starts with."""
        engine, done = self.engine, self.done
        saved = engine.enter()
        self.done = {}
        try:
            for axis in e.axis:
                if axis.dom is not None:
                    low, end = expr_range(engine, axis.dom.min), expr_range(engine, axis.dom.min + axis.dom.extent)
                    narrow(engine, axis.var, low[0], end[1] - 1)
            engine.forget()
            condition, source = self.visit(e.condition), tuple([self.visit(part) for part in e.source])
        finally:
            self.done = done
            engine.leave(saved)
        first = [self.visit(part) for part in (e.init or e.combiner.identity_element)]
        if isinstance(condition, IntImm) and not condition.value:
            return first[e.value_index]
        result = e.with_(condition=condition, source=source)
        if not e.axis and not e.init and isinstance(condition, IntImm):
            return source[e.value_index]
        return result


_HALF: Final[dict[type[Any], Any]] = {Add: np.add, Sub: np.subtract, Mul: np.multiply, Div: np.divide}


def _fold_half(e: Any) -> Expr | None:
    """An operation on two float16 literals, rounded once: float32 has digits enough for that."""
    if type(e.a) is not FloatImm or type(e.b) is not FloatImm or e.a.dtype != "float16" or type(e) not in _HALF:
        return None
    with np.errstate(all="ignore"):
        return FloatImm(e.dtype, float(_HALF[type(e)](np.float16(e.a.value), np.float16(e.b.value))))


def _is_zero(e: Any) -> bool:
    value = getattr(e, "value", None) if not isinstance(e, IntImm) else e
    return isinstance(value, IntImm) and value.value == 0


