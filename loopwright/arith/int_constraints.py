"""Systems of linear constraints over integers: the classes, and the testable promise that solving keeps solutions.

A solver takes `IntConstraints` (variables, their ranges, relations) and gives either the same variables in better
ranges, or an `IntConstraintsTransform` to new variables: `src_to_dst` writes each old variable in terms of the new,
`dst_to_src` each new one in terms of the old, and solutions correspond one to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.int_set import IntervalSet
from loopwright.arith.linear import LinearForm, is_index
from loopwright.arith.loop_bounds import linear_coefficients
from loopwright.ir import Expr, Node, Range, Var, as_expr, conjuncts, node, variables_in
from loopwright.ir.operators import floordiv, maximum, minimum
from loopwright.runtime.errors import LoopwrightError


class NotLinear(LoopwrightError, ValueError):
    """A system to solve holds something that is no linear relation of integers with constant coefficients.

    For example:

        from loopwright import arith, tir

        x, y = tir.Var("x"), tir.Var("y")
        arith.solve_linear_equations([x * y == 4], [x, y])
    """

    code = "LW0910"

    def __init__(self, what: str, relation: object, wanted: str) -> None:
        super().__init__(
            lambda: f"{what}: {relation!r} is not {wanted} of the variables with constant coefficients",
            hint="write sums of variables times constants; other symbols may stand in what is added",
        )


@node(binds="variables")
class IntConstraints(Node):
    """Integers `variables`, each within its range (if it has one), that satisfy all `relations`."""

    variables: tuple[Var, ...]
    ranges: Mapping[Var, Range]
    relations: tuple[Expr, ...]

    def __repr__(self) -> str:
        ranges = ", ".join(f"{var.name} in [{r.min!r}, {r.min + r.extent!r})" for var, r in self.ranges.items())
        relations = ", ".join(repr(relation) for relation in self.relations)
        return f"IntConstraints([{', '.join(var.name for var in self.variables)}], {{{ranges}}}, [{relations}])"


@node
class IntConstraintsTransform(Node):
    """Two systems with the same solutions, and the substitutions that go from one to the other."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: Mapping[Var, Expr]  # what to put for each variable of `src`, in those of `dst`
    dst_to_src: Mapping[Var, Expr]  # what to put for each variable of `dst`, in those of `src`


@node
class IntGroupBounds(Node):
    """coef * x is at least each of `lower`, at most each of `upper`, and equal to each of `equal`."""

    coef: Expr
    lower: tuple[Expr, ...]
    equal: tuple[Expr, ...]
    upper: tuple[Expr, ...]

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """The bounds that a range says."""
        return IntGroupBounds(as_expr(1), (rng.min,), (), (rng.min + rng.extent - 1,))

    def find_best_range(self, ranges: Mapping[Var, Range] | None = None) -> Range | None:
        """The range they leave, when there is a bound on both sides."""
        facts = Analyzer.over(ranges or {})
        lows = [-floordiv(-bound, self.coef) for bound in (*self.lower, *self.equal)]
        highs = [floordiv(bound, self.coef) for bound in (*self.upper, *self.equal)]
        if not lows or not highs:
            return None
        ends = ends_of(facts, lows, highs)
        return Range.from_min_extent(ends.min_value, facts.simplify(ends.max_value - ends.min_value + 1))


def ends_of(facts: Analyzer, lows: Sequence[Expr], highs: Sequence[Expr]) -> IntervalSet:
    """The greatest of the lower bounds and the least of the upper ones."""
    low, high = lows[0], highs[0]
    for bound in lows[1:]:
        low = facts.simplify(maximum(low, bound))
    for bound in highs[1:]:
        high = facts.simplify(minimum(high, bound))
    return IntervalSet(facts.simplify(low), facts.simplify(high))


def integer_row(what: str, relation: Expr, difference: Expr, variables: Sequence[Var]) -> tuple[list[int], Expr]:
    """`difference` as (coefficients, rest); an error when it is not linear in the variables."""
    result = linear_coefficients(difference, variables)
    if result is None or not is_index(difference.dtype):
        raise NotLinear(what, relation, "a linear relation")
    row = []
    for coefficient in result[0]:
        form: LinearForm = Analyzer().engine.form(coefficient)
        if form.terms:
            raise NotLinear(what, relation, "a relation")
        row.append(form.const)
    return row, result[1]


class System(NamedTuple):
    """What a solver is given, in one form; `relations` holds no conjunction and no literal true."""

    source: IntConstraints
    unknowns: list[Var]
    domains: dict[Var, Range]
    relations: list[Expr]


def as_system(relations: object, variables: Sequence[Var] | None, ranges: object) -> System:
    """The system that the arguments of a solver say: constraints, or relations with their variables and ranges."""
    source = relations if isinstance(relations, IntConstraints) else None
    if source is not None:
        relations, variables, ranges = source.relations, source.variables, source.ranges
    given = [as_expr(one) for one in (relations if isinstance(relations, (list, tuple)) else [relations])]
    used = {var: None for relation in given for var in variables_in(relation)}
    unknowns = list(used if variables is None else variables)
    domains = _domains(unknowns, ranges)
    source = source or IntConstraints(tuple(unknowns), domains, tuple(given))
    return System(source, unknowns, domains, [part for relation in given for part in conjuncts(relation)])


def _domains(variables: Sequence[Var], ranges: object) -> dict[Var, Range]:
    """The ranges of those variables that have one: from a mapping, or one range a variable."""
    if ranges is None:
        return {}
    pairs = ranges.items() if isinstance(ranges, Mapping) else zip(variables, ranges, strict=True)  # type: ignore[call-overload]
    return {var: domain for var, domain in pairs if domain is not None}
