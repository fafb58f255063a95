"""Conditions taken apart, and questions about literals."""

from __future__ import annotations

import pytest

from loopwright.ir import And, IntImm, Var, conjuncts, const, is_one, is_true, is_zero, logical_and

p, q, r = (Var(name, "bool") for name in "pqr")


def test_conjuncts_come_in_order_whatever_the_nesting():
    assert conjuncts(logical_and(p, q, r)) == [p, q, r]
    assert conjuncts(And(p, And(q, r))) == [p, q, r]
    assert conjuncts(p) == [p]


def test_the_literal_true_is_no_conjunct_and_false_is_one():
    assert conjuncts(const(True)) == []
    assert conjuncts(And(const(True), p)) == [p]
    (false,) = conjuncts(const(False))
    assert isinstance(false, IntImm) and not is_true(false)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool"])
def test_literals_of_any_integer_type_are_zero_or_one(dtype):
    zero, one = const(0, dtype), const(1, dtype)
    assert is_zero(zero) and not is_zero(one)
    assert is_one(one) and not is_one(zero)
    assert is_true(one) == (dtype == "bool")


def test_what_is_no_literal_is_neither():
    x = Var("x")
    assert not is_zero(x) and not is_one(x) and not is_true(p)
    assert not is_zero(const(0.0)) and not is_one(const(1.0))
