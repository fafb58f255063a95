"""solve_linear_inequalities: a range for each variable, in terms of those after it.

    x + y <= 7, x >= 0, y >= 0, [x, y]     →     x in 0..8 - y,  y in 0..8

Variables are eliminated one after the other (Fourier and Motzkin): the inequalities that bound the first become its
range, and each lower bound with each upper bound says something about the others. A range is exact for its variable;
the last ones may be wider than what has solutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.int_constraints import (
    IntConstraints,
    IntConstraintsTransform,
    NotLinear,
    as_system,
    ends_of,
    integer_row,
)
from loopwright.arith.linear import imm
from loopwright.ir import EQ, GE, GT, LE, LT, Expr, IntImm, Range, Var, const, deep, is_one, substitute
from loopwright.ir.operators import floordiv

Inequality = tuple[tuple[int, ...], Expr]  # sum(coefficients * variables) + rest >= 0


@deep
def solve_linear_inequalities(
    equations: object, variables: Sequence[Var] | None = None, ranges: object = None, deskew_range: bool = False
) -> IntConstraints | IntConstraintsTransform:
    """The variables with ranges that say what the inequalities say; what is about no variable stays a relation.

    With `deskew_range`, new variables whose ranges start at 0, and the transform to them.
    """
    system = as_system(equations, variables, ranges)
    solved = _Eliminate(system.unknowns).run(system.relations, system.domains)
    return _deskewed(system.source, solved) if deskew_range else solved


class _Eliminate:
    def __init__(self, unknowns: list[Var]) -> None:
        self.unknowns = unknowns
        self.dtype = unknowns[0].dtype if unknowns else const(0).dtype
        self.facts = Analyzer()

    def run(self, relations: Sequence[Expr], domains: dict[Var, Range]) -> IntConstraints:
        system: list[Inequality] = []
        kept: list[Expr] = []
        for relation in relations:
            self._read(relation, system, kept)
        for var, domain in domains.items():
            self._read(var >= domain.min, system, kept)
            self._read(var < domain.min + domain.extent, system, kept)
        ranges: dict[Var, Range] = {}
        for index, var in enumerate(self.unknowns):
            system = _without_repeats(system, self.facts)
            lows = [one for one in system if one[0][index] > 0]
            highs = [one for one in system if one[0][index] < 0]
            left = [one for one in system if one[0][index] == 0]
            if lows and highs:
                ranges[var] = self._range(index, lows, highs)
                left += [self._meet(index, low, high) for low in lows for high in highs]
            else:
                # One side is open: no range can say it, and nothing follows for the others.
                kept += [self._relation(one) for one in (*lows, *highs)]
            system = left
        facts = self.facts
        for _, rest in _without_repeats(system, facts):
            kept.append(facts.simplify(rest >= 0))
        needed = [relation for relation in kept if not (isinstance(relation, IntImm) and relation.value)]
        if any(isinstance(relation, IntImm) for relation in needed):
            needed = [const(False)]
        return IntConstraints(tuple(self.unknowns), ranges, tuple(needed))

    def _read(self, relation: Expr, system: list[Inequality], kept: list[Expr]) -> None:
        if isinstance(relation, IntImm):
            kept.append(relation)
            return
        if not isinstance(relation, (LT, LE, GT, GE, EQ)) or not relation.a.dtype.is_int:
            raise NotLinear("solve_linear_inequalities", relation, "an inequality")
        row, rest = integer_row("solve_linear_inequalities", relation, relation.a - relation.b, self.unknowns)
        if isinstance(relation, (GT, GE, EQ)):
            system.append((tuple(row), rest - int(isinstance(relation, GT))))
        if isinstance(relation, (LT, LE, EQ)):
            system.append((tuple([-k for k in row]), -rest - int(isinstance(relation, LT))))

    def _range(self, index: int, lows: Sequence[Inequality], highs: Sequence[Inequality]) -> Range:
        bottom = [-floordiv(self._others(index, one), imm(one[0][index], self.dtype)) for one in lows]
        top = [floordiv(self._others(index, one), imm(-one[0][index], self.dtype)) for one in highs]
        ends = ends_of(
            self.facts, [self.facts.simplify(end) for end in bottom], [self.facts.simplify(end) for end in top]
        )
        return Range.from_min_extent(ends.min_value, self.facts.simplify(ends.max_value - ends.min_value + 1))

    def _others(self, index: int, one: Inequality) -> Expr:
        """All of the sum but the variable's own term."""
        total = one[1]
        for other, factor in enumerate(one[0]):
            if factor and other != index:
                total = total + self.unknowns[other] * imm(factor, self.dtype)
        return self.facts.simplify(total)

    def _meet(self, index: int, low: Inequality, high: Inequality) -> Inequality:
        """A lower and an upper bound, multiplied so that the variable goes."""
        a, b = low[0][index], -high[0][index]
        common = gcd(a, b)
        up, down = b // common, a // common
        row = tuple([x * up + y * down for x, y in zip(low[0], high[0], strict=True)])
        return row, self.facts.simplify(low[1] * imm(up, self.dtype) + high[1] * imm(down, self.dtype))

    def _relation(self, one: Inequality) -> Expr:
        return self.facts.simplify(self._others(-1, one) >= imm(0, self.dtype))


def _without_repeats(system: Sequence[Inequality], facts: Analyzer) -> list[Inequality]:
    """One inequality for each row of coefficients where the rests compare: the stronger one."""
    best: dict[tuple[int, ...], list[Expr]] = {}
    for row, rest in system:
        kept = best.setdefault(row, [])
        if any(facts.can_prove(other <= rest) for other in kept):
            continue
        kept[:] = [other for other in kept if not facts.can_prove(rest <= other)]
        kept.append(rest)
    return [(row, rest) for row, rests in best.items() for rest in rests]


def _deskewed(source: IntConstraints, solved: IntConstraints) -> IntConstraintsTransform:
    """Each variable with a range becomes its distance from the range's start."""
    facts = Analyzer()
    news, domains = [], {}
    back: dict[Var, Expr] = {}
    forth: dict[Var, Expr] = {}
    # The last ranges use no variables, so their variables are known first.
    for var in reversed(solved.variables):
        domain = solved.ranges.get(var)
        if domain is None:
            new = Var(var.name, var.dtype)
            back[var], forth[new] = new, var
        else:
            extent = facts.simplify(substitute(domain.extent, back))
            low = facts.simplify(substitute(domain.min, back))
            if is_one(extent):
                back[var] = low
                continue
            new = Var(var.name, var.dtype)
            back[var] = facts.simplify(new + low)
            forth[new] = facts.simplify(var - domain.min)
            domains[new] = Range.from_min_extent(imm(0, var.dtype), extent)
        news.append(new)
    relations = [facts.simplify(substitute(relation, back)) for relation in solved.relations]
    target = IntConstraints(tuple(news[::-1]), domains, tuple(relations))
    return IntConstraintsTransform(source, target, back, forth)
