"""solve_linear_inequalities: a range for each variable, in terms of those after it.

    x + y <= 7, x >= y, y >= 0, [x, y]     →     x in y..y + 8,  y in 0..4,  x <= 7 - y

Variables are eliminated one after the other (Fourier and Motzkin): the inequalities that bound the first become its
range, and each lower bound with each upper bound says something about the others. A range starts at its variable's
lower bound; its extent is the greatest one, a number where there is such a number, and upper bounds that say more than
it stay as relations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.bounds import ConstIntBound
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


def solved_as_conditions(
    variables: Sequence[Var], ranges: Mapping[Var, Range], inequalities: Sequence[Expr]
) -> list[Expr]:
    """The solution as conditions: the bounds of each variable in terms of those after it, then what is left."""
    system = as_system(list(inequalities), variables, ranges)
    eliminate = _Eliminate(system.unknowns)
    solved = eliminate.run(system.relations, system.domains)
    no_solution: list[Expr] = [relation for relation in solved.relations if isinstance(relation, IntImm)]
    return no_solution or [*eliminate.conditions, *eliminate.about_symbols]


class _Eliminate:
    def __init__(self, unknowns: list[Var]) -> None:
        self.unknowns = unknowns
        self.dtype = unknowns[0].dtype if unknowns else const(0).dtype
        self.facts = Analyzer()
        self.conditions: list[Expr] = []  # the bounds of each variable
        self.about_symbols: list[Expr] = []  # what is left when all variables are eliminated

    def run(self, relations: Sequence[Expr], domains: dict[Var, Range]) -> IntConstraints:
        system: list[Inequality] = []
        kept: list[Expr] = []
        for relation in relations:
            self._read(relation, system, kept)
        for var, domain in domains.items():
            self._read(var >= domain.min, system, kept)
            self._read(var < domain.min + domain.extent, system, kept)
        bounds: list[tuple[list[Inequality], list[Inequality]]] = []
        for index in range(len(self.unknowns)):
            system = _without_repeats(system, self.facts)
            lows = [one for one in system if one[0][index] > 0]
            highs = [one for one in system if one[0][index] < 0]
            system = [one for one in system if one[0][index] == 0]
            if lows and highs:
                system += [self._meet(index, low, high) for low in lows for high in highs]
            bounds.append((lows, highs))
        kept += [self.facts.simplify(rest >= 0) for _, rest in _without_repeats(system, self.facts)]
        self.about_symbols = [relation for relation in kept if not isinstance(relation, IntImm)]
        # The last variables are bounded by numbers and symbols alone, and what is known of them helps with the others.
        ranges: dict[Var, Range] = {}
        for index in reversed(range(len(self.unknowns))):
            self._bound(index, *bounds[index], ranges, kept)
        relations = self._needed(kept)
        if any(isinstance(relation, IntImm) for relation in relations):
            return IntConstraints((), {}, (const(False),))
        return IntConstraints(tuple(self.unknowns), ranges, tuple(relations))

    def _needed(self, kept: Sequence[Expr]) -> list[Expr]:
        """The relations that the ranges do not imply; one that is false, if there is one."""
        simple = [self.facts.rewrite_simplify(relation) for relation in kept]
        return [relation for relation in simple if not (isinstance(relation, IntImm) and relation.value)]

    def _bound(
        self,
        index: int,
        lows: Sequence[Inequality],
        highs: Sequence[Inequality],
        ranges: dict[Var, Range],
        kept: list[Expr],
    ) -> None:
        """Find the range of a variable, when it is bounded on both sides; what the range does not say is kept."""
        var, facts = self.unknowns[index], self.facts
        bottom = [-floordiv(self._others(index, one), imm(one[0][index], self.dtype)) for one in lows]
        top = [floordiv(self._others(index, one), imm(-one[0][index], self.dtype)) for one in highs]
        conditions = [facts.simplify(var >= facts.simplify(end)) for end in self._strongest(bottom, GE)]
        conditions += [facts.simplify(var <= facts.simplify(end)) for end in self._strongest(top, LE)]
        self.conditions[:0] = conditions
        if not lows or not highs:
            kept += conditions  # no range can say it
            return
        ends = ends_of(facts, [facts.simplify(end) for end in bottom], [facts.simplify(end) for end in top])
        extent = facts.simplify(ends.max_value - ends.min_value + 1)
        if not isinstance(extent, IntImm):
            greatest = facts.const_int_bound(extent).max_value
            if greatest != ConstIntBound.POS_INF:
                extent = imm(max(greatest, 0), self.dtype)
                kept.append(var <= ends.max_value)
        ranges[var] = Range.from_min_extent(ends.min_value, extent)
        if not (isinstance(extent, IntImm) and extent.value <= 0):
            facts.bind(var, ranges[var])

    def _strongest(self, ends: Sequence[Expr], compare: type[GE | LE]) -> list[Expr]:
        """The bounds that another one does not imply."""
        found: list[Expr] = []
        for end in ends:
            if not any(self.facts.can_prove(compare(other, end)) for other in found):
                found = [other for other in found if not self.facts.can_prove(compare(end, other))]
                found.append(end)
        return found

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
    inside = Analyzer.over(domains)
    relations = [inside.rewrite_simplify(substitute(relation, back)) for relation in solved.relations]
    relations = [relation for relation in relations if not (isinstance(relation, IntImm) and relation.value)]
    target = IntConstraints(tuple(news[::-1]), domains, tuple(relations))
    return IntConstraintsTransform(source, target, back, forth)
