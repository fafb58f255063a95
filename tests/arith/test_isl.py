from __future__ import annotations

from time import thread_time

import pytest
from hypothesis import given, settings
from islpy import Set, Val, dim_type

from loopwright.arith import Analyzer, ProofStrength
from loopwright.arith.isl import (
    BudgetExceeded,
    NotAffine,
    context,
    domain_set,
    least_point,
    smallest_point,
    within_budget,
)
from loopwright.ir import Expr, Range, SizeVar, Var, const, logical_and, logical_or
from tests.arith.integers import table
from tests.arith.test_simplify_random import CONDITION, DOMAINS, VARIABLES, _setup

I, J, N = Var("i"), Var("j"), SizeVar("n")


def test_smallest_point_is_the_least_and_satisfies_all() -> None:
    found = smallest_point({I: Range(0, N), J: Range(0, I)}, [I * 4 + J > 10])
    assert found == {N: 4, I: 3, J: 0}


def test_smallest_point_of_nothing() -> None:
    assert smallest_point({I: Range(0, 8)}, [I % 2 == 1, I % 4 == 2]) is None


def test_smallest_point_far_away() -> None:
    assert smallest_point({I: Range(0, 1 << 30)}, [I > 1 << 20]) is not None


def test_domain_set_counts_points() -> None:
    points, names = domain_set({I: Range(0, 6), J: Range(0, I)}, [(I + J) % 2 == 0])
    assert points.count_val().to_python() == sum(1 for i in range(6) for j in range(i) if (i + j) % 2 == 0)
    assert list(names.of) == [I, J]


def test_products_are_not_affine() -> None:
    with pytest.raises(NotAffine, match=r"integer sets: .* is not affine, because of"):
        domain_set({I: Range(0, N)}, [I * N < 5])


def test_budget_is_a_named_error_and_the_context_recovers() -> None:
    with pytest.raises(BudgetExceeded, match="still open after 20 isl operations"):
        smallest_point({I: Range(0, N), J: Range(0, I)}, [I * 4 + J > 10], limit=20)
    assert context().get_max_operations() == 0
    assert domain_set({I: Range(0, 3)})[0].count_val().to_python() == 3


def nested(var: Expr, levels: int) -> Expr:
    """Divisions and remainders inside one another: isl's coefficients grow to hundreds of digits."""
    for level in range(levels):
        var = (var * 3 + level) // (level + 2) + var % (level + 3)
    return var


@pytest.mark.parametrize("levels", [6, 8])
def test_slow_operations_are_counted_by_the_clock(levels: int) -> None:
    """A million operations of this question take minutes; the time is bounded all the same."""
    same = (nested(I, levels) % 100_000).equal(nested(J, levels) % 100_000)
    started = thread_time()
    with pytest.raises(BudgetExceeded, match=r"still open after \d.\d s and [0-9,]+ operations"):
        smallest_point({I: Range(0, 1000), J: Range(0, 1000)}, [same, I < J])
    assert thread_time() - started < 5
    assert smallest_point({I: Range(5, 6)}, []) == {I: 5}


@pytest.mark.parametrize(("quick", "limits"), [(0.0, [1_000, 4_000, 16_000]), (0.5, [1_000, 64_000, 256_000])])
def test_a_question_is_asked_again_under_a_larger_limit(
    monkeypatch: pytest.MonkeyPatch, quick: float, limits: list[int]
) -> None:
    """Where the first attempt was quick, under one that most questions do not reach."""
    monkeypatch.setattr("loopwright.arith.isl.QUICK", quick)
    asked: list[int] = []

    def question(ctx: object) -> int:
        asked.append(context().get_max_operations())
        if len(asked) < 3:
            domain = domain_set({I: Range(0, N), J: Range(0, I)}, [I * 4 + J > 10])[0]
            for _ in range(10_000):
                domain = domain.subtract(domain.fix_val(dim_type.set, 0, Val(3, context=context())))
        return 7

    assert within_budget(question, divisions=20, seconds=10) == 7
    assert asked == limits


def test_an_expression_of_shared_parts_is_not_written_out() -> None:
    x: Expr = I
    for _ in range(40):
        x = x + x
    with pytest.raises(BudgetExceeded, match="an expression is too long, written out, to be asked about"):
        smallest_point({I: Range(0, 8)}, [x > 10])
    proved = Analyzer().can_prove(x // 3 != 5, ProofStrength.SYMBOLIC_BOUND)
    assert not proved


def test_exact_proofs_when_asked() -> None:
    analyzer = Analyzer()
    analyzer.bind(I, Range(0, 16))
    analyzer.bind(J, Range(0, 16))
    condition = logical_or(I < J, I > J, I == J)
    assert not analyzer.can_prove(logical_and(I * 3 + J * 5 != 7, I >= 0), ProofStrength.DEFAULT)
    assert analyzer.can_prove(I * 3 + J * 5 != 7, ProofStrength.SYMBOLIC_BOUND)
    assert not analyzer.can_prove(I * 3 + J * 5 != 8, ProofStrength.SYMBOLIC_BOUND)
    assert analyzer.can_prove(condition, ProofStrength.SYMBOLIC_BOUND)


def test_parts_that_are_not_affine_stand_for_any_value() -> None:
    analyzer = Analyzer()
    with analyzer.constraint_scope(I * J * N < 5):
        assert analyzer.can_prove(I * J * N < 6, ProofStrength.SYMBOLIC_BOUND)
        assert not analyzer.can_prove(I < 6, ProofStrength.SYMBOLIC_BOUND)


@settings(max_examples=60, deadline=None)
@given(CONDITION, CONDITION, DOMAINS)
def test_exact_proofs_are_true(e: Expr, given: Expr, domains: tuple[int, int, int, int, bool]) -> None:
    analyzer, where = _setup(domains)
    inside = [point for point, holds in zip(where, table(given, VARIABLES, where), strict=True) if holds]
    with analyzer.constraint_scope(given):
        proved = analyzer.can_prove(e, ProofStrength.SYMBOLIC_BOUND)
    for value in table(e, VARIABLES, inside):
        assert value is None or not proved or value


def test_constants_need_no_variables() -> None:
    assert smallest_point({}, [const(1) < const(2)]) == {}


def test_a_set_without_a_first_point_has_some_point():
    points = Set.read_from_str(context(), "{ [i, j] : i < 0 and j > i }")
    assert points.is_equal(points.union(Set.from_point(least_point(points))))
