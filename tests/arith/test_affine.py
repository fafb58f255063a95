"""Affine forms and conditions: what is read of an expression holds at every point."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.arith.affine import AllOf, Condition, Eq, Ge
from loopwright.arith.affine_reader import Affine
from loopwright.ir import And, Expr, Not, Or, Var, const
from tests.arith.integers import points, table
from tests.arith.test_simplify_random import CONDITION, INDEX, VARIABLES

WHERE = list(points(range(-4, 5), range(-4, 5), range(0, 5)))
LITERAL = st.booleans().map(const)
LOGIC = st.recursive(
    st.one_of(CONDITION, LITERAL),
    lambda inner: st.one_of(
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from([And, Or]), inner, inner), inner.map(Not)
    ),
    max_leaves=4,
)


def holds(condition: Condition, values: dict[Var, int]) -> bool:
    """Whether a condition is true at a point."""
    if isinstance(condition, Ge):
        return condition.form.at(values) >= 0
    if isinstance(condition, Eq):
        return condition.form.at(values) == 0
    every = all if isinstance(condition, AllOf) else any
    return every([holds(item, values) for item in condition.items])


@settings(max_examples=200, deadline=None)
@given(INDEX)
def test_a_form_has_the_value_of_its_expression(e: Expr) -> None:
    form = Affine().form(e)
    if form is not None:
        for point, value in zip(WHERE, table(e, VARIABLES, WHERE), strict=True):
            assert value is None or form.at(dict(zip(VARIABLES, point, strict=True))) == value


@settings(max_examples=200, deadline=None)
@given(LOGIC, st.booleans())
def test_what_follows_from_a_condition(e: Expr, wanted: bool) -> None:
    condition, is_exact = Affine().condition(e, wanted)
    for point, value in zip(WHERE, table(e, VARIABLES, WHERE), strict=True):
        if value is not None:
            follows = holds(condition, dict(zip(VARIABLES, point, strict=True)))
            assert follows or bool(value) != wanted
            assert not is_exact or follows == (bool(value) == wanted)


@pytest.mark.parametrize("cls", [And, Or])
@pytest.mark.parametrize("literal", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_literal_in_a_condition_counts(cls: type[And | Or], literal: bool, wanted: bool) -> None:
    """`False and i < 3` never holds."""
    i = Var("i")
    for e in (cls(const(literal), i < 3), cls(i < 3, const(literal))):
        condition, is_exact = Affine().condition(e, wanted)
        assert is_exact
        for value in (2, 3):
            truth = (literal and value < 3) if cls is And else (literal or value < 3)
            assert holds(condition, {i: value}) == (truth == wanted)
