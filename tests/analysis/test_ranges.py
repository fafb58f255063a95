"""Ranges: bounds of forms over loops, by facts as well, held against enumeration."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from loopwright.analysis.instances import Loop
from loopwright.analysis.ranges import Ranges
from loopwright.arith.affine import Form, Part, constant
from loopwright.ir import Var, const


def _form(rng: random.Random, terms: list[Var | Part], most: int) -> Form:
    chosen = rng.sample(terms, rng.randint(1, min(most, len(terms))))
    return Form({term: rng.choice([-3, -2, -1, 1, 1, 2, 3]) for term in chosen}, rng.randint(-4, 4))


@pytest.mark.parametrize("chunk", range(4))
def test_a_bound_is_never_passed(chunk):
    counts: Counter[str] = Counter()
    ranges = Ranges(set())
    for seed in range(200 * chunk, 200 * (chunk + 1)):
        rng = random.Random(seed)
        extents = {Var(name): rng.randint(1, 5) for name in "ijk"}
        loops = [Loop(var, constant(0), constant(n - 1), const(n)) for var, n in extents.items()]
        terms: list[Var | Part] = list(extents)
        inner, divisor = _form(rng, terms, 2), rng.randint(2, 4)
        terms += [Part("floor", (inner,), divisor), Part("mod", (inner,), divisor)]
        form = _form(rng, terms, 4)
        known = [_form(rng, [*form.terms, terms[-1]], 2) for _ in range(rng.randint(0, 4))]
        points = [
            dict(zip(extents, point, strict=True)) for point in itertools.product(*[range(n) for n in extents.values()])
        ]
        values = [form.at(point) for point in points if min([fact.at(point) for fact in known], default=0) >= 0]
        if not values:
            continue
        most = max(values)
        assert not ranges.is_at_most(form, most - 1, loops, known), seed
        counts["exact" if ranges.is_at_most(form, most, loops, known) else "unknown"] += 1
        if ranges.is_at_most(form, most, loops, known):
            counts["by several"] += not any([ranges.is_at_most(form, most, loops, [fact]) for fact in known or [form]])
    assert counts["exact"] > 50, counts


def test_two_facts_at_once():
    i, j = Var("i"), Var("j")
    loops = [Loop(var, constant(0), constant(20), const(21)) for var in (i, j)]
    number, facts = Form({i: 21, j: 1}, 22), [Form({i: -1}, 19), Form({j: -1}, 19)]
    assert Ranges(set()).is_at_most(number, 440, loops, facts)
    assert not Ranges(set()).is_at_most(number, 439, loops, facts)
    assert not any([Ranges(set()).is_at_most(number, 440, loops, [fact]) for fact in facts])


def test_quotients_of_numbers_whose_remainder_is_known():
    i = Var("i")
    loops = [Loop(i, constant(0), constant(9), const(10))]
    number = Form({i: 1}, 1)
    half, rest = Part("floor", (number,), 2), Part("mod", (number,), 2)
    is_even, least = Form({rest: -1}, 0), Form({half: -1}, 1)  # (i + 1) // 2 is at least 1
    assert Ranges(set()).is_at_most(least, 0, loops, [is_even])
    assert not Ranges(set()).is_at_most(least, 0, loops)
    assert not Ranges(set()).is_at_most(least, -1, loops, [is_even])
