"""SpecializedCondition: a stack of facts."""

from __future__ import annotations

import pytest

from loopwright import te


def test_the_innermost_condition_is_the_current_one():
    n = te.var("n")
    assert te.SpecializedCondition.current() is None
    with te.SpecializedCondition(n > 128) as outer:
        assert te.SpecializedCondition.current() is outer
        with te.SpecializedCondition([n > 128, n < 256]) as inner:
            assert te.SpecializedCondition.current() is inner
            assert len(inner.clauses) == 2
        assert te.SpecializedCondition.current() is outer
    assert te.SpecializedCondition.current() is None


def test_conditions_are_truth_values():
    n = te.var("n")
    assert len(te.SpecializedCondition(n == 1).clauses) == 1
    with pytest.raises(te.BadCondition, match=r"condition 1 is n \+ 1, which is no truth value"):
        te.SpecializedCondition([n > 1, n + 1])
    with pytest.raises(TypeError, match=r"condition 0 is 3"):
        te.SpecializedCondition(3)


def test_the_separator_of_axes():
    assert te.AXIS_SEPARATOR == "axis_separator"
