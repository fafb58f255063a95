"""Systems of equations and inequalities: the solutions before and after are the same, point by point."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loopwright import tir
from loopwright.arith import (
    Analyzer,
    IntConstraints,
    IntGroupBounds,
    solve_linear_equations,
    solve_linear_inequalities,
)
from loopwright.arith.int_constraints import NotLinear
from loopwright.ir import Range, Var, const, substitute

x, y, z, n = Var("x"), Var("y"), Var("z"), Var("n")
BOX = 6


def value(e, point) -> int:
    found = Analyzer().simplify(substitute(e, {var: const(number) for var, number in point.items()}))
    return int(found)


def solutions(system: IntConstraints) -> set[tuple[int, ...]]:
    """Every point of the box that satisfies the system."""
    found = set()
    for numbers in itertools.product(range(-4 * BOX, 4 * BOX + 1), repeat=len(system.variables)):
        point = dict(zip(system.variables, numbers, strict=True))
        if all(
            value(domain.min, point) <= point[var] < value(domain.min + domain.extent, point)
            for var, domain in system.ranges.items()
        ) and all(value(relation, point) for relation in system.relations):
            found.add(numbers)
    return found


def brute(relations, variables, domains) -> set[tuple[int, ...]]:
    found = set()
    ranges = [range(int(domains[var].min), int(domains[var].min) + int(domains[var].extent)) for var in variables]
    for numbers in itertools.product(*ranges):
        point = dict(zip(variables, numbers, strict=True))
        if all(value(relation, point) for relation in relations):
            found.add(numbers)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_equations_keep_their_solutions(seed):
    rng = np.random.default_rng(seed)
    variables = [x, y, z][: int(rng.integers(1, 4))]
    domains = {var: Range(int(rng.integers(-2, 1)), int(rng.integers(1, BOX // 2 + 1))) for var in variables}
    relations = []
    for _ in range(int(rng.integers(1, 3))):
        total = const(int(rng.integers(-3, 4)))
        for var in variables:
            total = total + var * int(rng.integers(-3, 4))
        relations.append(tir.EQ(total, const(0)))
    solved = solve_linear_equations(relations, variables, domains)
    wanted = brute(relations, variables, domains)
    if len(solved.dst.variables) > 2:
        pytest.skip("too many free variables to try them all")
    got = set()
    for numbers in solutions(solved.dst):
        point = dict(zip(solved.dst.variables, numbers, strict=True))
        back = tuple([value(solved.src_to_dst[var], point) for var in variables])
        old = dict(zip(variables, back, strict=True))
        assert all(value(e, old) == point[new] for new, e in solved.dst_to_src.items())
        assert back not in got  # one to one
        got.add(back)
    assert got == wanted


def test_equations_with_symbols():
    solved = solve_linear_equations([x * 2 + y * 4 == n], [x, y], {x: Range(0, 20), y: Range(0, 20)})
    assert "n % 2 == 0" in repr(solved.dst) and len(solved.dst.variables) == 1
    both = solve_linear_equations([x + y == 20, x - y == 10], [x, y])
    assert (both.src_to_dst[x].value, both.src_to_dst[y].value) == (15, 5) and not both.dst.variables
    none = solve_linear_equations([x * 2 == 3], [x])
    assert [relation.value for relation in none.dst.relations] == [0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_inequalities_keep_their_solutions(seed):
    rng = np.random.default_rng(seed)
    variables = [x, y]
    domains = {var: Range(int(rng.integers(-3, 1)), int(rng.integers(1, BOX))) for var in variables}
    relations = []
    for _ in range(int(rng.integers(1, 4))):
        left = x * int(rng.integers(-3, 4)) + y * int(rng.integers(-3, 4)) + int(rng.integers(-4, 5))
        compare = [tir.LE, tir.LT, tir.GE, tir.GT][int(rng.integers(0, 4))]
        relations.append(compare(left, const(0)) if isinstance(left, tir.PrimExpr) else const(True))
    wanted = brute(relations, variables, domains)
    solved = solve_linear_inequalities(relations, variables, domains)
    assert solutions(solved) == wanted
    moved = solve_linear_inequalities(relations, variables, domains, deskew_range=True)
    got = set()
    for numbers in solutions(moved.dst):
        point = dict(zip(moved.dst.variables, numbers, strict=True))
        got.add(tuple([value(moved.src_to_dst[var], point) for var in variables]))
        assert set(moved.dst_to_src) == set(moved.dst.variables)
    assert got == wanted
    assert all(value(domain.min, {}) == 0 for domain in moved.dst.ranges.values())


def test_ranges_in_terms_of_later_variables():
    solved = solve_linear_inequalities([x + y <= 7, x >= 0, y >= 0], [x, y])
    assert solved.ranges[x].extent.value == 8 and solved.ranges[y].extent.value == 8
    assert [repr(relation) for relation in solved.relations] == ["x + y <= 7"]
    both = solve_linear_inequalities([x + y >= 10, x - y >= 2, x <= 6], [x, y])
    assert [(int(both.ranges[var].min), int(both.ranges[var].extent)) for var in (x, y)] == [(6, 1), (4, 1)]
    assert not both.relations
    half = solve_linear_inequalities([x >= 3], [x])
    assert not half.ranges and repr(half.relations[0]) == "3 <= x"
    symbolic = solve_linear_inequalities([x >= n, x < n * 2], [x])
    assert repr(symbolic.ranges[x].min) == "n" and repr(symbolic.relations[0]) == "1 <= n"
    none = solve_linear_inequalities([x >= 3, x < 2], [x])
    assert [relation.value for relation in none.relations] == [0]


def test_systems_as_constraints_and_bounds():
    system = IntConstraints([x, y], {x: Range(0, 9)}, [x + y == 4])
    assert solve_linear_equations(system).src is system
    bounds = IntGroupBounds(const(2), [const(3)], [], [const(9), n])
    found = bounds.find_best_range()
    assert found.min.value == 2 and "T.min" in repr(found.extent)
    assert IntGroupBounds(const(1), [const(3)], [], []).find_best_range() is None
    whole = IntGroupBounds.from_range(Range(2, 6))
    assert (whole.lower[0].value, whole.upper[0].value) == (2, 5)


@pytest.mark.parametrize(
    ("solve", "relation", "problem"),
    [
        (solve_linear_equations, x * y == 4, "is not a linear relation of"),
        (solve_linear_equations, x // 2 == 4, "is not a linear relation of"),
        (solve_linear_equations, x < 4, "is not an equation"),
        (solve_linear_inequalities, x * y < 4, "is not a linear relation of"),
        (solve_linear_inequalities, x * n < 4, "is not a relation"),
        (solve_linear_inequalities, tir.NE(x, y), "is not an inequality"),
    ],
)
def test_what_is_not_linear_is_refused(solve, relation, problem):
    with pytest.raises(NotLinear, match=problem):
        solve([relation], [x, y])
