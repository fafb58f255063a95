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
        terms += [Part(rng.choice(["floor", "mod"]), (_form(rng, terms[:3], 2),), rng.randint(2, 4)) for _ in range(2)]
        form = _form(rng, terms, 4)
        known = [_form(rng, list(form.terms), 2) for _ in range(rng.randint(0, 4))]
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
