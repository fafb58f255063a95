"""Random index expressions: whatever simplify, bounds, remainders and proofs say must hold at every point."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.arith import Analyzer
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Range,
    Select,
    SizeVar,
    Var,
    const,
)
from loopwright.ir.intrinsics import if_then_else
from tests.arith.integers import points, table
from tests.campaign import programs

I, J, N = Var("i"), Var("j"), SizeVar("n")
LEAVES = st.one_of(st.sampled_from([I, J, N]), st.integers(-5, 9).map(const))
DIVISORS = st.one_of(st.sampled_from([1, 2, 3, 4, 6, 8, 12, -1, -2, -3]).map(const), st.just(N))


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    condition = st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([LT, LE, GT, GE, EQ, NE]), inner, inner)
    logic = st.one_of(
        condition,
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([And, Or]), condition, condition),
        condition.map(Not),
    )
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, st.one_of(st.integers(-4, 8).map(const), inner)),
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([FloorDiv, FloorMod]), inner, DIVISORS),
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([Div, Mod]), inner, DIVISORS),
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([Min, Max]), inner, inner),
        st.builds(Select, logic, inner, inner),
        st.builds(if_then_else, logic, inner, inner),
    )


INDEX = st.recursive(LEAVES, _grow, max_leaves=8)
CONDITION = st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([LT, LE, GT, GE, EQ, NE]), INDEX, INDEX)
DOMAINS = st.tuples(st.integers(-4, 3), st.integers(1, 6), st.integers(-4, 3), st.integers(1, 6), st.booleans())


VARIABLES = (I, J, N)


def _setup(domains: tuple[int, int, int, int, bool]) -> tuple[Analyzer, list[tuple[int, ...]]]:
    i0, i_extent, j0, j_extent, symbolic = domains
    analyzer = Analyzer()
    analyzer.bind(I, Range.from_min_extent(const(i0), const(i_extent)))
    analyzer.bind(J, Range(0, N) if symbolic else Range.from_min_extent(const(j0), const(j_extent)))
    where = points(range(i0, i0 + i_extent), range(0, 5) if symbolic else range(j0, j0 + j_extent), range(0, 5))
    return analyzer, [point for point in where if not symbolic or point[1] < point[2]]


def _assert_agree(simple: Expr, e: Expr, where: list[tuple[int, ...]]) -> None:
    for point, value, other in zip(where, table(e, VARIABLES, where), table(simple, VARIABLES, where), strict=True):
        assert value is None or value == other, (point, value, other)


@settings(max_examples=programs(200, 400), deadline=None)
@given(INDEX, DOMAINS)
def test_simplify_keeps_every_value(e: Expr, domains: tuple[int, int, int, int, bool]) -> None:
    analyzer, where = _setup(domains)
    simple = analyzer.simplify(e)
    assert simple.dtype is e.dtype
    _assert_agree(simple, e, where)


@settings(max_examples=programs(100, 200), deadline=None)
@given(INDEX, DOMAINS)
def test_simplify_is_idempotent(e: Expr, domains: tuple[int, int, int, int, bool]) -> None:
    simple = _setup(domains)[0].simplify(e)
    again = _setup(domains)[0].simplify(simple)  # a fresh Analyzer: nothing is remembered
    assert again is simple, f"{simple!r} became {again!r}"


@settings(max_examples=programs(150, 300), deadline=None)
@given(INDEX, DOMAINS)
def test_bounds_and_remainders_contain_every_value(e: Expr, domains: tuple[int, int, int, int, bool]) -> None:
    analyzer, where = _setup(domains)
    bound, (coeff, base) = analyzer.const_int_bound(e), analyzer.modular_set(e)
    for value in table(e, VARIABLES, where):
        if value is not None:
            assert bound.min_value <= value <= bound.max_value
            assert value == base if coeff == 0 else (value - base) % coeff == 0


@settings(max_examples=programs(150, 300), deadline=None)
@given(CONDITION, CONDITION, DOMAINS)
def test_proofs_are_true_also_under_constraints(e: Expr, given: Expr, domains: tuple[int, int, int, int, bool]) -> None:
    analyzer, where = _setup(domains)
    inside = [point for point, holds in zip(where, table(given, VARIABLES, where), strict=True) if holds]
    with analyzer.constraint_scope(given):
        proved, refuted, simple = analyzer.can_prove(e), analyzer.can_prove(Not(e)), analyzer.simplify(e)
    for value in table(e, VARIABLES, inside):
        assert value is None or not proved or value
        assert value is None or not refuted or not value
    _assert_agree(simple, e, inside)
    # Nothing learnt in the scope outlives it.
    _assert_agree(analyzer.simplify(e), e, where)


@settings(max_examples=programs(100, 200), deadline=None)
@given(INDEX, INDEX, DOMAINS)
def test_proved_equal_is_equal(a: Expr, b: Expr, domains: tuple[int, int, int, int, bool]) -> None:
    analyzer, where = _setup(domains)
    assert analyzer.can_prove_equal(a, a + b - b)
    if analyzer.can_prove_equal(a, b):
        _assert_agree(a, b, [point for point in where if table(a, VARIABLES, [point]) != [None]])


def test_literal_conditions_are_literals() -> None:
    assert isinstance(Analyzer().simplify(LT(const(1), const(2))), IntImm)
