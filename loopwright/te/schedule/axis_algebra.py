"""Axes as arithmetic: how often each runs, and each in terms of the others, through splits and fuses.

s[C].split(i, factor=4)         i.outer = i // 4,  i.inner = i % 4;        i = i.outer * 4 + i.inner
s[C].fuse(i, j)                 i.j.fused = i * n + j;                     i = i.j.fused // n,  j = i.j.fused % n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IterVar, const
from loopwright.ir.intrinsics import ceildiv
from loopwright.ir.operators import cast
from loopwright.te.schedule.relations import Fuse, IterVarRelation, Rebase, Singleton, Split, Transform

Values = dict[IterVar, Expr]


def split_sizes(extent: Expr, factor: Expr | None, nparts: Expr | None, keep: bool = False) -> tuple[Expr, Expr]:
    """How often the outer and the inner loop run; no more often than needed, unless `keep` holds them to what was said.

    A loop that is provably shorter than the factor becomes one inner loop of its own length.
    """
    facts = Analyzer()
    given = cast(factor if factor is not None else nparts, extent.dtype)  # type: ignore[arg-type]
    if not keep and facts.can_prove(extent < given) and facts.can_prove(extent >= 1):
        given = extent
    other = facts.simplify(ceildiv(extent, given))
    return (other, given) if factor is not None else (given, other)


def extents(roots: Iterable[IterVar], relations: Sequence[IterVarRelation], bound: Iterable[IterVar] = ()) -> Values:
    """How often each axis runs, from the domains of `roots` down; axes `bound` to threads keep the size given."""
    held = _ancestors(bound, relations)
    result: Values = {axis: axis.dom.extent for axis in roots if axis.dom is not None}
    facts = Analyzer()
    for relation in relations:
        if isinstance(relation, Split):
            keep = relation.outer in held or relation.inner in held
            outer, inner = split_sizes(result[relation.parent], relation.factor, relation.nparts, keep)
            result[relation.outer], result[relation.inner] = outer, inner
        elif isinstance(relation, Fuse):
            result[relation.fused] = facts.simplify(result[relation.outer] * result[relation.inner])
        elif isinstance(relation, Singleton):
            result[relation.iter] = const(1)
        elif isinstance(relation, Rebase):
            result[relation.rebased] = result[relation.parent]
        elif isinstance(relation, Transform):
            result.update({axis: axis.dom.extent for axis in relation.transformed_variables if axis.dom is not None})
    return result


def _ancestors(axes: Iterable[IterVar], relations: Sequence[IterVarRelation]) -> set[IterVar]:
    """The axes given, and those they come from."""
    result = set(axes)
    for relation in reversed(relations):
        if isinstance(relation, Split) and (relation.outer in result or relation.inner in result):
            result.add(relation.parent)
        elif isinstance(relation, Fuse) and relation.fused in result:
            result.update([relation.outer, relation.inner])
    return result


def roots_from_leaves(
    leaves: Mapping[IterVar, Expr], relations: Sequence[IterVarRelation], sizes: Mapping[IterVar, Expr]
) -> tuple[Values, list[Expr]]:
    """Every axis in terms of the leaves' values, and the conditions under which they stand for an iteration."""
    result: Values = dict(leaves)
    conditions: list[Expr] = []
    facts = Analyzer()
    for relation in reversed(relations):
        if isinstance(relation, Split) and relation.outer in result and relation.inner in result:
            inner = sizes[relation.inner]
            value = result[relation.outer] * inner + result[relation.inner]
            result[relation.parent] = value
            whole = facts.simplify(sizes[relation.outer] * inner)
            if not facts.can_prove_equal(whole, sizes[relation.parent]):
                conditions.append(value < sizes[relation.parent])
        elif isinstance(relation, Fuse) and relation.fused in result:
            inner = sizes[relation.inner]
            result[relation.outer] = result[relation.fused] // inner
            result[relation.inner] = result[relation.fused] % inner
    return result, conditions


def leaves_from_roots(
    roots: Mapping[IterVar, Expr], relations: Sequence[IterVarRelation], sizes: Mapping[IterVar, Expr]
) -> Values:
    """Every axis in terms of the roots' values."""
    result: Values = dict(roots)
    for relation in relations:
        if isinstance(relation, Split) and relation.parent in result:
            inner = sizes[relation.inner]
            result[relation.outer] = result[relation.parent] // inner
            result[relation.inner] = result[relation.parent] % inner
        elif isinstance(relation, Fuse) and relation.outer in result and relation.inner in result:
            result[relation.fused] = result[relation.outer] * sizes[relation.inner] + result[relation.inner]
        elif isinstance(relation, Singleton):
            result[relation.iter] = const(0)
    return result
