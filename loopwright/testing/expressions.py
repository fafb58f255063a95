"""Comparing index expressions, and trying them on every value their variables can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loopwright.arith import Analyzer
from loopwright.arith.int_constraints import IntConstraints, IntConstraintsTransform
from loopwright.evaluator import evaluate
from loopwright.ir import (
    BufferStore,
    Expr,
    ExprLike,
    For,
    ForKind,
    PrimFunc,
    Range,
    Stmt,
    Var,
    as_expr,
    cast,
    const,
    decl_buffer,
    logical_and,
    logical_not,
    logical_or,
    substitute,
)

_MOST = 1 << 22  # points that are tried; more would look like a test that hangs

Ranges = Mapping[Var, Range]


def assert_prim_expr_equal(lhs: ExprLike, rhs: ExprLike) -> None:
    """Fail unless the two expressions can be proved equal."""
    if not Analyzer().can_prove_equal(as_expr(lhs), as_expr(rhs)):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def check_bool_expr_is_true(bool_expr: ExprLike, vranges: Ranges, cond: ExprLike | None = None) -> None:
    """Fail unless `bool_expr` holds wherever `cond` does, for all values of the variables; the failure names one."""
    claim = as_expr(bool_expr)
    if cond is not None:
        claim = logical_or(logical_not(as_expr(cond)), claim)
    held, starts = _tried(claim, vranges)
    if held.all():
        return
    where = [int(i) for i in np.argwhere(held == 0)[0]]
    values = {var: start + index for var, start, index in zip(vranges, starts, where)}
    at = ", ".join(f"{var.name} = {value}" for var, value in values.items()) or "no variables"
    raise AssertionError(f"{bool_expr} does not hold at {at}" + (f", where {cond} does" if cond is not None else ""))


def check_int_constraints_trans_consistency(
    constraints_trans: IntConstraintsTransform, vranges: Ranges | None = None
) -> None:
    """Fail unless a change of variables is one: both ways lead back, and what holds before holds after.

    `constraints_trans` has `src` and `dst` (variables, ranges, relations) and the substitutions `src_to_dst` and
    `dst_to_src`; `vranges` gives the ranges of variables that neither side has.
    """
    outer = dict(vranges or {})
    trans = constraints_trans

    def forth_and_back(
        one: IntConstraints, there: Mapping[Var, Expr], other: IntConstraints, back: Mapping[Var, Expr]
    ) -> None:
        """`one`'s variables, written in `other`'s and back again, are themselves wherever `one` holds."""
        ranges = {**outer, **{var: dom for var, dom in one.ranges.items() if var in one.variables}}
        inside = _all([*one.relations, *_within(one)])
        here = dict(back)  # the other's variables in terms of one's
        for var in one.variables:
            check_bool_expr_is_true(substitute(as_expr(there[var]), here).equal(var), ranges, inside)
        claims = [substitute(as_expr(claim), here) for claim in [*other.relations, *_within(other)]]
        check_bool_expr_is_true(_all(claims), ranges, inside)

    # src_to_dst writes each variable of src in those of dst; dst_to_src is its inverse.
    forth_and_back(trans.src, trans.src_to_dst, trans.dst, trans.dst_to_src)
    forth_and_back(trans.dst, trans.dst_to_src, trans.src, trans.src_to_dst)


def _within(constraints: IntConstraints) -> list[Expr]:
    """The ranges of the variables, as conditions."""
    conditions: list[Expr] = []
    for var in constraints.variables:
        dom = constraints.ranges.get(var)
        if dom is not None:
            conditions += [var >= dom.min, var < dom.min + dom.extent]
    return conditions


def _all(conditions: Sequence[ExprLike]) -> Expr:
    claim: Expr = as_expr(True)
    for condition in conditions:
        claim = logical_and(claim, as_expr(condition))
    return claim


def _tried(claim: Expr, vranges: Ranges) -> tuple[np.ndarray, list[int]]:
    """Whether `claim` holds at every point of the box around the ranges, and where the box starts."""
    box = _box(vranges)
    starts, sizes = [low for low, _ in box], [max(0, high - low + 1) for low, high in box]
    points = float(np.prod(sizes, dtype="float64"))
    if points > _MOST:
        raise ValueError(f"{points:.3g} points are too many to try; make the ranges smaller, and constant")
    held = np.ones(sizes or (1,), "int8")
    if held.size == 0:
        return held, starts
    out = decl_buffer(held.shape, "int8", "held")
    indices: list[Expr] = [var - start for var, start in zip(vranges, starts)] or [const(0)]
    body: Stmt = BufferStore(out, cast(claim, out.dtype), indices)
    for var, start, size in reversed(list(zip(vranges, starts, sizes))):
        body = For(var, const(start, var.dtype), const(size, var.dtype), ForKind.SERIAL, body)
    evaluate(PrimFunc([out], body), held)
    return held, starts


def _box(vranges: Ranges) -> list[tuple[int, int]]:
    """First and last value of each variable; a range may depend on variables before it, and is widened then."""
    analyzer = Analyzer()
    box = []
    for var, dom in vranges.items():
        low = analyzer.const_int_bound(as_expr(dom.min)).min_value
        high = analyzer.const_int_bound(dom.min + dom.extent - 1).max_value
        analyzer.bind(var, Range(low, high + 1))
        box.append((low, high))
    return box
