"""solve_linear_equations: all integer solutions of a system of equations, in as few variables as it has freedom.

    x + y == 10, 0 <= x < 20, 0 <= y < 20      →     one variable n in 0..20, x = n, y = 10 - n, and 0 <= y < 20 left

The matrix of coefficients is brought to diagonal form by unimodular steps on rows and columns (Smith): the columns'
steps are the change of variables, the rows' steps combine the equations. A diagonal entry d says d * n = right side;
columns beyond the rank are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.int_constraints import (
    IntConstraints,
    IntConstraintsTransform,
    NotLinear,
    System,
    as_system,
    integer_row,
)
from loopwright.arith.linear import imm
from loopwright.arith.loop_bounds import interval_of
from loopwright.ir import EQ, Expr, IntImm, Range, Var, const, deep, variables_in
from loopwright.ir.operators import floordiv, floormod

Matrix = list[list[int]]


@deep
def solve_linear_equations(
    equations: object, variables: Sequence[Var] | None = None, ranges: object = None
) -> IntConstraintsTransform:
    """New variables that run over exactly the solutions of the equations; symbols that are no variables stay."""
    system = as_system(equations, variables, ranges)
    return _Solve(system).run(system.relations)


class _Solve:
    def __init__(self, system: System) -> None:
        self.source, self.unknowns, self.domains = system.source, system.unknowns, system.domains
        self.dtype = self.unknowns[0].dtype if self.unknowns else const(0).dtype
        self.facts = Analyzer()

    def run(self, relations: Sequence[Expr]) -> IntConstraintsTransform:
        rows: Matrix = []
        right: list[Expr] = []
        kept: list[Expr] = []
        for relation in relations:
            if isinstance(relation, EQ) and relation.a.dtype.is_int:
                row, rest = integer_row("solve_linear_equations", relation, relation.a - relation.b, self.unknowns)
                rows.append(row)
                right.append(-rest)
            elif isinstance(relation, IntImm):
                kept.append(relation)  # false: there is no solution
            else:
                raise NotLinear("solve_linear_equations", relation, "an equation")
        columns, inverse, diagonal = _diagonal(rows, right, len(self.unknowns), self.facts)
        return self._transform(columns, inverse, diagonal, right, kept)

    def _transform(
        self, columns: Matrix, inverse: Matrix, diagonal: list[int], right: list[Expr], kept: list[Expr]
    ) -> IntConstraintsTransform:
        """The variables are x = columns * y; the first of y have values, the others are free."""
        size, rank = len(self.unknowns), len(diagonal)
        for k in range(rank, size):  # a free variable counts up with the first unknown that has it
            if next(row[k] for row in columns if row[k]) < 0:
                for row in columns:
                    row[k] = -row[k]
                inverse[k] = [-factor for factor in inverse[k]]
        values: list[Expr] = []
        relations = list(kept)
        for index, d in enumerate(diagonal):
            divisor = imm(abs(d), self.dtype)
            numerator = right[index] if d > 0 else -right[index]
            relations.append(EQ(floormod(numerator, divisor), imm(0, self.dtype)) if abs(d) != 1 else const(True))
            values.append(floordiv(numerator, divisor))
        relations += [EQ(rest, imm(0, rest.dtype)) for rest in right[rank:]]
        free = [Var(f"n{k}", self.dtype) for k in range(size - rank)]
        values += free
        back = {var: self._combine(columns[k], values) for k, var in enumerate(self.unknowns)}
        forth = {new: self._combine(inverse[rank + k], self.unknowns) for k, new in enumerate(free)}
        domains = {}
        for new in free:
            domain = self._range(forth[new])
            if domain is not None:
                domains[new] = domain
        for var, domain in self.domains.items():
            relations += [back[var] >= domain.min, back[var] < domain.min + domain.extent]
        needed = self._needed(relations, domains)
        if any(isinstance(relation, IntImm) for relation in needed):
            return IntConstraintsTransform(self.source, IntConstraints((), {}, (const(False),)), {}, {})
        target = IntConstraints(tuple(free), domains, tuple(needed))
        return IntConstraintsTransform(self.source, target, back, forth)

    def _combine(self, row: Sequence[int], values: Sequence[Expr]) -> Expr:
        total: Expr = imm(0, self.dtype)
        for factor, value in zip(row, values, strict=True):
            if factor:
                total = total + value * imm(factor, self.dtype)
        return self.facts.simplify(total)

    def _range(self, value: Expr) -> Range | None:
        used = variables_in(value)
        if not set(used) & set(self.unknowns) <= self.domains.keys():
            return None
        ends = interval_of(value, {var: self.domains[var] for var in used if var in self.domains})
        if ends is None:
            return None
        return Range.from_min_extent(ends.min_value, self.facts.simplify(ends.max_value - ends.min_value + 1))

    def _needed(self, relations: Sequence[Expr], domains: dict[Var, Range]) -> list[Expr]:
        """The relations that do not follow from the ranges; a false one alone says that there is no solution."""
        facts = Analyzer.over(domains)
        needed = []
        for relation in relations:
            simple = facts.rewrite_simplify(relation)
            if isinstance(simple, IntImm):
                if not simple.value:
                    return [const(False)]
                continue
            needed.append(simple)
        return needed


def _diagonal(rows: Matrix, right: list[Expr], size: int, facts: Analyzer) -> tuple[Matrix, Matrix, list[int]]:
    """Bring `rows` to diagonal form, changing `right` along; (columns, their inverse, the entries that are not 0)."""
    columns = [[int(i == j) for j in range(size)] for i in range(size)]
    inverse = [[int(i == j) for j in range(size)] for i in range(size)]
    diagonal: list[int] = []
    for step in range(min(len(rows), size)):
        while True:
            pivot = _smallest(rows, step, size)
            if pivot is None:
                return columns, inverse, diagonal
            i, j = pivot
            rows[step], rows[i] = rows[i], rows[step]
            right[step], right[i] = right[i], right[step]
            _swap_columns(rows, columns, inverse, step, j)
            d = rows[step][step]
            for i in range(step + 1, len(rows)):
                times = rows[i][step] // d
                if times:
                    rows[i] = [a - times * b for a, b in zip(rows[i], rows[step], strict=True)]
                    right[i] = facts.simplify(right[i] - right[step] * imm(times, right[i].dtype))
            for j in range(step + 1, size):
                times = rows[step][j] // d
                if times:
                    _add_column(rows, columns, inverse, j, step, -times)
            if not any(rows[i][step] for i in range(step + 1, len(rows))) and not any(rows[step][step + 1 :]):
                break
        diagonal.append(rows[step][step])
    return columns, inverse, diagonal


def _smallest(rows: Matrix, step: int, size: int) -> tuple[int, int] | None:
    """The place of the entry of least size that is not 0."""
    locations = [(abs(rows[i][j]), i, j) for i in range(step, len(rows)) for j in range(step, size) if rows[i][j]]
    return min(locations)[1:] if locations else None


def _swap_columns(rows: Matrix, columns: Matrix, inverse: Matrix, a: int, b: int) -> None:
    for row in (*rows, *columns):
        row[a], row[b] = row[b], row[a]
    inverse[a], inverse[b] = inverse[b], inverse[a]


def _add_column(rows: Matrix, columns: Matrix, inverse: Matrix, to: int, source: int, times: int) -> None:
    for row in (*rows, *columns):
        row[to] += times * row[source]
    # x = columns * y stays: y[source] takes what y[to] gives.
    inverse[source] = [a - times * b for a, b in zip(inverse[source], inverse[to], strict=True)]
