"""subspace_divide: index bindings as outer parts over some loops and inner parts over the others.

    [i * 32 + j * 4 + k]  over  i in 0..8, j in 0..8, k in 0..4,  divided by the inner loops [j, k]
        outer: i,  extent 8        inner: j * 4 + k,  extent 32        binding = outer * 32 + inner

This is what blockize asks: whether the loops inside run over a whole tile of each index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.iter_map import detect_iter_map, normalize_to_iter_sum
from loopwright.arith.iter_nodes import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, plain_expr
from loopwright.arith.linear import imm
from loopwright.ir import Expr, Range, Var, as_expr, conjuncts, const, deep, is_zero, logical_and, uses_var


@deep
def subspace_divide(
    bindings: Sequence[Expr],
    input_iters: Mapping[Var, Range],
    sub_iters: Sequence[Var],
    predicate: Expr | bool = True,
    check_level: int | str | IterMapLevel = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[IterMark]]:
    """[outer, inner] for each binding, and last a pair whose extents are the outer and the inner predicate.

    Empty when a binding does not divide so, or when the bindings are no iteration map of the asked level.
    """
    given = [as_expr(binding) for binding in bindings]
    answer = detect_iter_map(given, input_iters, predicate, check_level, simplify_trivial_iterators)
    if len(answer.indices) != len(given):
        return []
    inner = set(sub_iters)
    inner_base = IterMapLevel.of(check_level) is IterMapLevel.Surjective  # what is added belongs to the inner part
    conditions = _divide_predicate(as_expr(predicate), inner, input_iters)
    if conditions is None:
        return []
    result = []
    for binding in given:
        parts = _divide(normalize_to_iter_sum(binding, input_iters), inner, inner_base)
        if parts is None:
            return []
        result.append(list(parts))
    none = IterSumExpr((), const(0))
    result.append([IterMark(none, condition) for condition in conditions])
    return result


def _divide_predicate(predicate: Expr, inner: set[Var], loops: Mapping[Var, Range]) -> tuple[Expr, Expr] | None:
    """The conditions on outer loops, and those on inner ones; None when one relates both."""
    outside: Expr = const(True)
    inside: Expr = const(True)
    for condition in conjuncts(predicate):
        uses_inner = uses_var(condition, inner.__contains__)
        if uses_inner and uses_var(condition, lambda var: var in loops and var not in inner):
            return None
        if uses_inner:
            inside = logical_and(inside, condition)
        else:
            outside = logical_and(outside, condition)
    return outside, inside


def _divide(total: IterSumExpr, inner: set[Var], inner_base: bool) -> tuple[IterMark, IterMark] | None:
    facts = Analyzer()
    dtype = total.dtype
    one, zero = imm(1, dtype), imm(0, dtype)
    low = [arg for arg in total.args if uses_var(plain_expr(arg), inner.__contains__)]
    high = [arg for arg in total.args if not any(arg is other for other in low)]
    if inner_base and low and not is_zero(total.base):
        parts = _divide(IterSumExpr(total.args, zero), inner, inner_base)
        if parts is None:
            return None
        outside, inside = parts
        assert isinstance(inside.source, IterSumExpr)
        return outside, IterMark(IterSumExpr(inside.source.args, total.base), inside.extent)
    if not low:
        return IterMark(total, _extent(facts, total.args, one)), IterMark(IterSumExpr((), zero), one)
    if not high:
        # What is added stays outside: an inner part starts at 0.
        mark = IterMark(IterSumExpr(tuple(low), zero), _extent(facts, low, one))
        if is_zero(total.base):
            return IterMark(IterSumExpr((), zero), one), mark
        return IterMark(IterSumExpr((), total.base), one), mark
    tile = _extent(facts, low, one)
    scales = []
    for arg in high:
        if not facts.can_prove_equal(arg.scale % tile, zero):
            return None  # an inner loop reaches across the tiles of an outer one
        scales.append(facts.simplify(arg.scale // tile))
    if not facts.can_prove_equal(total.base % tile, zero):
        return None
    outer = [
        IterSplitExpr(arg.source, arg.lower_factor, arg.extent, scale) for arg, scale in zip(high, scales, strict=True)
    ]
    base = facts.simplify(total.base // tile)
    return (
        IterMark(IterSumExpr(tuple(outer), base), _extent(facts, outer, one)),
        IterMark(IterSumExpr(tuple(low), zero), tile),
    )


def _extent(facts: Analyzer, args: Sequence[IterSplitExpr], one: Expr) -> Expr:
    """How many values a sum of splits that continue each other takes."""
    total = one
    for arg in args:
        total = total + (arg.extent - 1) * arg.scale
    return facts.simplify(total)
