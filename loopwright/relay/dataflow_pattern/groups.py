"""The places of a graph where a pattern matches, no two of them overlapping.

A place is a root and, inside it, what the pattern's parts matched. What is used outside of it cannot lie inside: it
would be computed twice, or be gone. Places near the end of the graph are taken first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.ir.expr import GlobalVar
from loopwright.relay.dataflow_pattern.matcher import REORDERED, Found, Matcher
from loopwright.relay.dataflow_pattern.patterns import (
    ConstantPattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    all_patterns,
)
from loopwright.relay.expr import Constant, Expr, Function, Var
from loopwright.relay.op.registry import Op
from loopwright.relay.visitor import post_order


@dataclass
class Group:
    """One place: the matched expression, what each pattern matched, and the values that it holds."""

    root: Expr
    found: Found
    inside: set[Expr]  # the values that belong to the place, its root among them
    embedded: set[Constant]  # the constants that the pattern itself asks for


def find_groups(pattern: DFPattern, root: Expr, check: Callable[[Expr], bool] = lambda result: True) -> list[Group]:
    """Every place that matches and passes `check`, outermost first."""
    matcher = Matcher(root)
    patterns = list(all_patterns(pattern))
    paths = [part.path for part in patterns if isinstance(part, DominatorPattern)]
    groups: list[Group] = []
    used: set[Expr] = set()
    for expression in reversed(list(post_order(root))):
        if expression in used:
            continue
        result = matcher.first(pattern, expression)
        if result is None or not check(expression):
            continue
        group = _group(expression, result, paths)
        if group.inside & used or not _closed(group, matcher):
            continue
        used |= group.inside
        groups.append(group)
    return groups


def _group(expression: Expr, result: Found, paths: Sequence[DFPattern]) -> Group:
    inside: set[Expr] = {expression}
    embedded: set[Constant] = set()
    for pattern, matched in result.items():
        is_inner = bool(pattern.parts()) or pattern is REORDERED or pattern in paths
        for value in matched:
            if isinstance(pattern, (ConstantPattern, ExprPattern)) and isinstance(value, Constant):
                embedded.add(value)
            if is_inner and not isinstance(value, (Var, Constant, Op, GlobalVar, Function)):
                inside.add(value)
    return Group(expression, result, inside, embedded)


def _closed(group: Group, matcher: Matcher) -> bool:
    """Whether what lies inside, but for the root, is used nowhere else."""
    inner = group.inside - {group.root}
    return all(user in group.inside for value in inner for user in matcher.users(value))
