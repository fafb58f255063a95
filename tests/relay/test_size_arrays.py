"""Arithmetic on small arrays of sizes: numbers, expressions of size variables, and what nobody knows."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.arith import Analyzer
from loopwright.ir import Expr, SizeVar, substitute
from loopwright.relay.size_arrays import ELEMENTWISE, accumulated, array_of, computed, elementwise

N = SizeVar("n")


def at(element: object, n: int) -> object:
    """What an element is where n is a number."""
    return int(Analyzer().simplify(substitute(element, {N: n}))) if isinstance(element, Expr) else element


MEANINGS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: int(a / b),
    "floor_divide": lambda a, b: a // b,
    "trunc_divide": lambda a, b: int(a / b),
    "mod": lambda a, b: a - int(a / b) * b,
    "floor_mod": lambda a, b: a % b,
    "trunc_mod": lambda a, b: a - int(a / b) * b,
    "maximum": max,
    "minimum": min,
    "equal": lambda a, b: a == b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


def test_every_function_has_a_meaning():
    assert {*MEANINGS, "where"} == ELEMENTWISE


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MEANINGS)
@pytest.mark.parametrize("one", [N, N * 2 - 7, N - 3, 5, -4, 0])
@pytest.mark.parametrize("other", [N + 1, 3, 2, 1, -1])
def test_what_is_said_is_right_for_every_size(name, one, other):
    found = elementwise(name, np.array([one], dtype=object), np.array([other], dtype=object))
    if found.dtype == object and found[0] is None:
        return
    for n in (0, 1, 2, 3, 7, 100):
        assert at(found[0], n) == MEANINGS[name](at(one, n), at(other, n)), (found[0], n)


def test_sizes_are_not_negative():
    assert elementwise("equal", array_of([N, 3], (2,)), np.array(-1)).tolist() == [False, False]
    assert elementwise("less", np.array(-1), array_of([N], (1,))).tolist() == [True]
    assert elementwise("equal", array_of([N], (1,)), np.array(2)).tolist() == [None]


def test_what_nobody_knows_stays_unknown():
    assert computed("add", None, 3) is None and computed("multiply", None, 0) == 0
    assert computed("divide", N, 0) is None and computed("divide", 7, 0) is None
    assert elementwise("where", array_of([True, None], (2,)), np.array([1, 2]), np.array([3, 4])).tolist() == [1, None]


def test_arrays_are_of_numbers_where_they_can_be():
    assert array_of([1, 2], (2,)).dtype == "int64" and array_of([True], (1,)).dtype == bool
    assert array_of([1, 2.5], (2,)).dtype == "float64" and array_of([], (0,)).dtype == "int64"
    assert array_of([N, 1], (2,)).dtype == object
    assert elementwise("subtract", array_of([N], (1,)), array_of([N], (1,))).tolist() == [0]


def test_products_and_sums():
    assert at(accumulated("multiply", array_of([N, 3, 2], (3,)), 1), 5) == 30
    assert accumulated("add", np.array([1, 2, 3]), 0) == 6
    assert accumulated("multiply", array_of([None, 0], (2,)), 1) == 0
