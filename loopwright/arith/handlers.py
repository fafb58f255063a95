"""What simplify does at each class of node that is not plain arithmetic: choices, calls, casts, lets, logic."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from loopwright.arith.bounds import expr_range, form_range
from loopwright.arith.compare import compare
from loopwright.arith.constraints import assume_condition
from loopwright.arith.data import is_data
from loopwright.arith.engine import Engine
from loopwright.arith.linear import imm, is_index
from loopwright.ir import (
    And,
    Call,
    CallEffect,
    Cast,
    CompareExpr,
    Expr,
    FloatImm,
    FloorDiv,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Op,
    Or,
    Select,
    Sub,
    Var,
    cast,
)

A_BRANCH: Final = 10  # expressions that take as long as assuming a condition


def _min_max(s: Engine, e: Any) -> Expr:
    a, b = s.simplify(e.a), s.simplify(e.b)
    if is_index(e.dtype) and s.are_exact(a, b):
        low, high = form_range(s, s.form(a).plus(s.form(b), -1))
        if high <= 0 or low >= 0:
            return a if (high <= 0) == (type(e) is Min) else b
    return s.by_rules(e if a is e.a and b is e.b else type(e)(a, b, span=e.span))


def _under(s: Engine, condition: Expr, holds: bool, e: Expr) -> Expr:
    """`e` simplified where the condition holds: what is known of it elsewhere does not count, so it is walked again."""
    s.left -= A_BRANCH
    if s.left < 0:
        s.effects += 1
        return e
    saved = s.enter()
    try:
        assume_condition(s, condition, holds)
        return s.simplify(e)
    finally:
        s.leave(saved)


def _select(s: Engine, e: Select) -> Expr:
    condition = s.simplify(e.condition)
    if type(condition) is IntImm:
        return s.simplify(e.true_value if condition.value else e.false_value)
    scalar = not condition.dtype.is_vector
    one = _under(s, condition, True, e.true_value) if scalar else s.simplify(e.true_value)
    other = _under(s, condition, False, e.false_value) if scalar else s.simplify(e.false_value)
    if s.alike(one, other):
        return one
    return s.by_rules(e.with_(condition=condition, true_value=one, false_value=other))


def _call(s: Engine, e: Call) -> Expr:
    op = e.op
    if not isinstance(op, Op) or op.effect > CallEffect.READ_STATE:
        s.effects += 1
        return e
    if op.name == "tir.if_then_else":
        condition = s.simplify(e.args[0])
        if type(condition) is IntImm:
            return s.simplify(e.args[1] if condition.value else e.args[2])
        one = _under(s, condition, True, e.args[1])
        other = _under(s, condition, False, e.args[2])
        if s.alike(one, other):
            return one
        if condition is e.args[0] and one is e.args[1] and other is e.args[2]:
            return e
        return e.with_(args=(condition, one, other))
    result = e.rebuild(s.simplify_child)
    if op.name == "tir.likely" and type(result.args[0]) is IntImm:
        return result.args[0]
    return _fold_call(s, result)


def _fold_call(s: Engine, e: Call) -> Expr:
    """Bit operations that are arithmetic, and folds of literals."""
    if e.op.name in ("tir.shift_left", "tir.shift_right") and is_index(e.dtype) and type(e.args[1]) is IntImm:
        locations = e.args[1].value
        if 0 <= locations < e.dtype.bits - 1:
            power = imm(1 << locations, e.dtype)
            result = Mul(e.args[0], power) if e.op.name == "tir.shift_left" else FloorDiv(e.args[0], power)
            # A call works on the low bits of an index, and gives a value of its type: arithmetic does neither.
            if is_data(s, e) or (s.is_within(e.args[0]) and s.is_within(result)):
                return s.simplify(result)
    if e.op.name == "tir.abs" and is_index(e.dtype) and s.is_within(e.args[0]):
        low, high = expr_range(s, e.args[0])
        if low >= 0:
            return e.args[0]
        if high <= 0 and low > e.dtype.min_value():
            return s.simplify(Sub(imm(0, e.dtype), e.args[0]))
    return e


def _cast(s: Engine, e: Cast) -> Expr:
    value = s.simplify(e.value)
    if value.dtype is e.dtype:
        return value
    if type(value) in (IntImm, FloatImm):
        folded = cast(value, e.dtype)
        if isinstance(folded, (IntImm, FloatImm)):
            return folded
        if isinstance(value, FloatImm) and (e.dtype.is_int or e.dtype.is_bool) and isfinite(value.value):
            number = int(value.value) if e.dtype.is_int else int(value.value != 0)  # towards zero
            if e.dtype.min_value() <= number <= e.dtype.max_value():
                return imm(number, e.dtype)
    # Widening twice is widening once.
    if isinstance(value, Cast) and is_index(e.dtype) and is_index(value.dtype) and value.dtype.bits < e.dtype.bits:
        if value.value.dtype.is_int and value.value.dtype.bits < value.dtype.bits:
            return s.simplify(Cast(e.dtype, value.value))
    # Narrowing keeps what fits, and widening gives it back.
    if isinstance(value, Cast) and value.value.dtype is e.dtype and is_index(e.dtype) and is_index(value.dtype):
        low, high = expr_range(s, value.value)
        narrow = min(value.dtype, e.dtype, key=lambda dtype: dtype.bits)
        if narrow.lowest <= low and high <= narrow.highest:
            return value.value
    return e if value is e.value else e.with_(value=value)


def _let(s: Engine, e: Let) -> Expr:
    value = s.simplify(e.value)
    # Asked out here, where the value is known: inside, nothing is remembered, and lets in lets would double the work.
    interval = expr_range(s, e.value) if is_index(e.var.dtype) else None
    from_data = is_data(s, e.value)
    saved = s.enter()
    try:
        if isinstance(value, (Var, IntImm, FloatImm)):
            s.facts.put(s.facts.values, e.var, value)
            return s.simplify(e.body)
        elif interval is not None:
            s.facts.narrow(e.var, *interval)
        if from_data:
            s.data_vars.add(e.var)
        body = s.simplify(e.body)
    finally:
        s.leave(saved)
    return e.with_(value=value, body=body)


def _and_or(s: Engine, e: Any) -> Expr:
    a = s.simplify(e.a)
    if type(a) is IntImm:
        return s.simplify(e.b) if bool(a.value) == (type(e) is And) else a
    # The second operand matters only where the first does not decide.
    b = _under(s, a, type(e) is And, e.b) if not a.dtype.is_vector else s.simplify(e.b)
    if type(b) is IntImm:
        return a if bool(b.value) == (type(e) is And) else b
    return s.by_rules(e if a is e.a and b is e.b else type(e)(a, b, span=e.span))


def _compare(s: Engine, e: Any) -> Expr:
    if is_index(e.a.dtype) and s.are_exact(e.a, e.b):
        e = compare(s, e)
        result = s.first_rule(e)
        return e if result is None else s.simplify(result)
    return s.by_rules(e.rebuild(s.simplify_child))


HANDLERS: Final[dict[type[Expr], Callable[[Engine, Any], Expr]]] = {
    Min: _min_max,
    Max: _min_max,
    Select: _select,
    Call: _call,
    Cast: _cast,
    Let: _let,
    And: _and_or,
    Or: _and_or,
    **dict.fromkeys(CompareExpr.__subclasses__(), _compare),
}
