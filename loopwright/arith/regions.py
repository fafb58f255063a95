"""Regions over loops: the box of indices that an access touches while its loops run.

    A[i * 4 : i * 4 + 6], i in 0..4      upper: [0, 17]; and every one of them is touched, so strict and lower, too

`upper` holds at least all that is touched, `lower` at most that, `strict` exactly that; where no box can say it,
`lower` and `strict` are None. `hull_while_running` puts one interval around two accesses:

    P[i + d] and P[i + 2], d in 0..5     [i, i + 4]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.int_set import NEG_INF, POS_INF, IntervalSet, int_set
from loopwright.arith.iter_map import detect_iter_map
from loopwright.ir import Expr, IntImm, IterType, IterVar, Range, Var, as_expr, deep, uses_var


@deep
def estimate_region_strict_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Expr | bool = True
) -> list[IntervalSet] | None:
    """The box that is touched, all of it and nothing else; None when that is not proved to be a box."""
    condition = as_expr(predicate)
    if not (isinstance(condition, IntImm) and condition.value):
        return _fused(region, var_dom, condition)  # which sees to it that what the predicate cuts off is at an end
    answer = detect_iter_map([part.min for part in region], var_dom, True, "nocheck")
    if len(answer.indices) != len(region):
        return None
    facts = Analyzer()
    # Dimensions must run independently, else the box has corners that nobody touches.
    digits = [arg for index in answer.indices for arg in index.args]
    sources = [arg.source for arg in digits]
    if len(set(sources)) != len(sources) or any(len(index.args) > 1 for index in answer.indices):
        return _fused(region, var_dom, predicate)
    result = []
    for part, index in zip(region, answer.indices, strict=True):
        low, extent = index.base, part.extent
        reach: Expr = extent - 1
        for arg in index.args:
            # Steps larger than what each touches leave gaps.
            if not facts.can_prove(arg.scale >= 0) or not facts.can_prove(extent >= arg.scale):
                return None
            reach = reach + (arg.extent - 1) * arg.scale
        result.append(IntervalSet(facts.simplify(low), facts.simplify(low + reach)))
    return result


def _fused(region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Expr | bool) -> list[IntervalSet] | None:
    """The same where dimensions fuse or split loops: they must form a map that reaches every point."""
    answer = detect_iter_map([part.min for part in region], var_dom, predicate, "onto")
    if len(answer.indices) != len(region):
        return None
    facts = Analyzer()
    result = []
    for part, index in zip(region, answer.indices, strict=True):
        reach: Expr = part.extent - 1
        for arg in index.args:
            reach = reach + (arg.extent - 1) * arg.scale
        result.append(IntervalSet(facts.simplify(index.base), facts.simplify(index.base + reach)))
    return result


def estimate_region_lower_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Expr | bool = True
) -> list[IntervalSet] | None:
    """A box all of which is touched; None when none is found."""
    return estimate_region_strict_bound(region, var_dom, predicate)


@deep
def estimate_region_upper_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Expr | bool = True
) -> list[IntervalSet]:
    """A box outside which nothing is touched; an end without a bound is infinite."""
    strict = estimate_region_strict_bound(region, var_dom, predicate)
    if strict is not None:
        return strict
    facts = Analyzer()
    result = []
    with facts.constraint_scope(as_expr(predicate)):
        for part in region:
            # Both ends move with the loops: the last index of each touch is what reaches furthest.
            low = int_set(part.min, var_dom, facts)
            high = int_set(part.min + part.extent - 1, var_dom, facts)
            result.append(IntervalSet(low.min_value, high.max_value))
    return result


@deep
def hull_while_running(
    one: IntervalSet, other: IntervalSet, running: Mapping[Var, Range], facts: Analyzer
) -> IntervalSet | None:
    """The interval around both; what moves the two apart among `running` goes through its whole range.

    None where the ends are no known distance apart even then: no expression says which of them is the first.
    """
    gaps = [facts.simplify(second - first) for first, second in zip(one, other, strict=True)]
    apart = {
        var: domain
        for var, domain in running.items()
        if any(uses_var(gap, lambda used, var=var: used is var) for gap in gaps)  # type: ignore[misc]
    }
    if apart:
        ends = [[int_set(end, apart, facts) for end in part] for part in (one, other)]
        one, other = [IntervalSet(low.min_value, high.max_value) for low, high in ends]
        if any(end is NEG_INF or end is POS_INF for end in (*one, *other)):
            return None
        gaps = [facts.simplify(second - first) for first, second in zip(one, other, strict=True)]
    lows, highs = gaps
    if not isinstance(lows, IntImm) or not isinstance(highs, IntImm):
        return None
    return IntervalSet(
        one.min_value if lows.value >= 0 else other.min_value, one.max_value if highs.value <= 0 else other.max_value
    )


def reduced_ranges(axes: Sequence[IterVar]) -> dict[Var, Range]:
    """The axes of a block that it reduces over, with their ranges, where these are known numbers."""
    ranges = {axis.var: axis.dom for axis in axes if axis.iter_type is IterType.CommReduce}
    return {
        var: domain
        for var, domain in ranges.items()
        if domain is not None and isinstance(domain.min, IntImm) and isinstance(domain.extent, IntImm)
        if domain.extent.value > 0
    }
