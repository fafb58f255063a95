"""and_of_ors: a condition as a conjunction of clauses, shortened clause by clause.

    (k == 20) and ((i == 0 or j == 10) and k != 30)    →    (i == 0 or j == 10) and k == 20

A clause that another implies goes; of two clauses that differ in one part, those parts become one where they can.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import And, Expr, IntImm, Not, Or, const, logical_and, logical_not, logical_or, structural_equal
from loopwright.transform.parts.purity import has_data

MOST_CLAUSES: Final = 32  # the clauses of an or of ands multiply

Clause = list[Expr]


def and_of_ors(condition: Expr, facts: Analyzer) -> Expr:
    """The condition as an and of ors; itself where that has too many clauses."""
    clauses = _clauses(condition)
    if clauses is None:
        return condition
    clauses = [_shortened(clause, facts) for clause in clauses]
    if any([not clause for clause in clauses]):
        return const(False)
    clauses = _merged([clause for clause in clauses if not _is_true(clause)], facts)
    if not clauses:
        return const(True)
    return reduce(logical_and, [reduce(logical_or, clause) for clause in clauses])


def _is_true(clause: Clause) -> bool:
    return any([isinstance(part, IntImm) and bool(part.value) for part in clause])


def _clauses(e: Expr, negated: bool = False) -> list[Clause] | None:
    if isinstance(e, Not):
        return _clauses(e.a, not negated)
    if not isinstance(e, (And, Or)):
        return [[logical_not(e) if negated else e]]
    left, right = _clauses(e.a, negated), _clauses(e.b, negated)
    if left is None or right is None:
        return None
    if isinstance(e, And) != negated:
        return [*left, *right]
    return None if len(left) * len(right) > MOST_CLAUSES else [[*a, *b] for a in left for b in right]


def _implies(a: Expr, b: Expr, facts: Analyzer) -> bool:
    if structural_equal(a, b):
        return True
    if has_data(a) or has_data(b):
        return False
    with facts.constraint_scope(a):
        return facts.can_prove(b)


def _shortened(clause: Clause, facts: Analyzer) -> Clause:
    """Without parts that another part follows from; the later of two stays."""
    kept: Clause = []
    for part in clause:
        if isinstance(part, IntImm) and not part.value:
            continue
        for k, other in enumerate(kept):
            if _implies(other, part, facts):
                del kept[k]
                kept.append(part)
                break
            if _implies(part, other, facts):
                break
            if _implies(logical_not(other), part, facts):
                return [const(True)]
        else:
            kept.append(part)
    return kept


def _within(a: Clause, b: Clause) -> bool:
    return all([any([structural_equal(part, other) for other in b]) for part in a])


def _merged(clauses: list[Clause], facts: Analyzer) -> list[Clause]:
    kept: list[Clause] = []
    for clause in clauses:
        if any([_within(other, clause) for other in kept]):
            continue
        for k, other in enumerate(kept):
            joined = _joined(other, clause, facts)
            if joined is not None:
                del kept[k]
                clause = joined
                break
        kept.append(clause)
    return kept


def _joined(a: Clause, b: Clause, facts: Analyzer) -> Clause | None:
    """One clause for both, in the order of `b`: they differ in one part, and one of the two parts implies the other."""
    only_a = [part for part in a if not _within([part], b)]
    only_b = [k for k, part in enumerate(b) if not _within([part], a)]
    if len(only_a) != 1 or len(only_b) != 1 or len(a) != len(b):
        return None
    first, second = only_a[0], b[only_b[0]]
    if _implies(first, second, facts):
        return [*b[: only_b[0]], first, *b[only_b[0] + 1 :]]
    return b if _implies(second, first, facts) else None
