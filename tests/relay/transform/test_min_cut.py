"""min_cut: the cheapest choice, held against all choices."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest

from loopwright.relay.transform.layout.min_cut import Cut


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_cheapest_of_all(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 8))
    own = random.integers(0, 10, (count, 2))
    pairs = {
        (one, other): int(random.integers(0, 10))
        for one in range(count)
        for other in range(one)
        if random.random() < 0.5
    }
    one_way = {
        (one, other): int(random.integers(0, 10)) for one, other in random.integers(0, count, (3, 2)) if one != other
    }

    def cost(choice):
        total = sum(own[thing][choice[thing]] for thing in range(count))
        total += sum(price for (one, other), price in pairs.items() if choice[one] != choice[other])
        return total + sum(price for (one, other), price in one_way.items() if (choice[one], choice[other]) == (0, 1))

    cut = Cut()
    things = [cut.node() for _ in range(count)]
    for thing, (first, second) in zip(things, own):
        cut.costs(thing, float(first), float(second))
    for (one, other), price in pairs.items():
        cut.apart(things[one], things[other], price)
    for (one, other), price in one_way.items():
        cut.implies(things[one], things[other], price)
    second = cut.solve()
    found = [int(thing in second) for thing in things]
    assert cost(found) == min(cost(choice) for choice in product((0, 1), repeat=count))


def test_what_is_forbidden_is_not_chosen():
    cut = Cut()
    one, other = cut.node(), cut.node()
    cut.costs(one, second=inf)
    cut.costs(other, first=5)
    cut.apart(one, other, 7)
    assert cut.solve() == set()


def test_contradictions_are_refused():
    cut = Cut()
    one, other = cut.node(), cut.node()
    cut.costs(one, second=inf)
    cut.costs(other, first=inf)
    cut.implies(one, other)
    with pytest.raises(ValueError, match="must be the first must be the second"):
        cut.solve()
