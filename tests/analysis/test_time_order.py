"""time_order: vectors of time compared, against all small iterations."""

from __future__ import annotations

from itertools import product

import pytest

from loopwright.analysis.time_order import before, not_before

VECTORS = [[0, "i", 2], [0, "i", 1, "k", 0], [1, "i", 0], [0, "i", 2, "k", 1], [0]]


def holds(condition, values):
    if condition is None:
        return False
    return eval(condition.replace(" = ", " == "), {}, values)


@pytest.mark.parametrize(("a", "b"), list(product(VECTORS, repeat=2)))
def test_conditions_are_the_order_of_vectors(a, b):
    other = [item if isinstance(item, int) else item.upper() for item in b]
    for i, k, I, K in product(range(2), repeat=4):
        values = {"i": i, "k": k, "I": I, "K": K}
        mine, its = ([values.get(item, item) for item in vector] for vector in (a, other))
        length = min(len(mine), len(its))
        assert holds(before(a, other), values) == (mine[:length] < its[:length])
        assert holds(not_before(a, other), values) == (mine[:length] >= its[:length])


def test_a_loop_that_stands_still_says_nothing():
    assert before([0, "o", 1], [0, "o", 2]) == "((0 = 0))"
    assert before([0, "o", 2], [0, "o", 1]) is None and not_before([0, "o", 1], [0, "o", 2]) is None
    assert before([0, "i", 2], [0, "j", 1]) == "((i < j))"
    assert not_before([0, "i", 2], [0, "j", 1]) == "((i > j) or (i = j))"
