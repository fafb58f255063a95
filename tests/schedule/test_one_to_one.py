"""one_to_one: a map keeps the elements of a shape apart, or two of them that meet are found."""

from __future__ import annotations

from itertools import product

import pytest

from loopwright import te
from loopwright.arith import Analyzer
from loopwright.ir import const, substitute
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.proof.one_to_one import Collision, find_collision, inverse_on, outside
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.nests import axes_over
from tests.schedule.random_maps import random_map


@pytest.mark.one_in(3)
@pytest.mark.parametrize("first", range(0, 600, 100))
def test_every_answer_is_right(first):
    for seed in range(first, first + 100):
        case = random_map(seed)
        mapping = LayoutMap.of(case.text)
        sizes = [const(size) for size in case.sizes]
        found = find_collision(mapping, sizes)
        assert (found is None) == case.is_one_to_one, (seed, case.text, case.sizes)
        if isinstance(found, Collision):
            assert found.first < found.second and case.cells[found.first] == case.cells[found.second] == found.cell
        try:
            shape = mapping.shape("test", sizes)
        except BadStepArgument:  # goes below 0
            continue
        axes = axes_over(shape)
        inverse = inverse_on(mapping, case.sizes, axes, shape)
        if inverse is None:
            continue
        assert case.is_one_to_one, (seed, case.text, case.sizes)
        facts, held = Analyzer(), {cell: point for point, cell in case.cells.items()}
        conditions = outside(mapping, inverse, sizes, axes, shape)
        for cell in product(*[range(extent.value) for extent in shape]):
            at = {axis: const(index) for axis, index in zip(axes, cell, strict=True)}
            is_outside = any([facts.simplify(substitute(item, at)).value for item in conditions])
            assert is_outside == (cell not in held), (seed, case.text, case.sizes, cell)
            if not is_outside:
                back = [facts.simplify(substitute(inverse[var], at)).value for var in mapping.initial_indices]
                assert tuple(back) == held[cell]


def test_sizes_may_be_variables():
    n, m = te.var("n"), te.var("m")
    found = find_collision(LayoutMap.of("lambda i, j: (i % 4, j)"), [n, m])
    assert found == Collision((0, 0), (4, 0), (0, 0), {"n": 5, "m": 1})
    assert found.sizes_text == " (for n = 5, m = 1)"
    assert find_collision(LayoutMap.of("lambda i, j: (i // 4, j, i % 4)"), [n, m]) is None
    assert find_collision(LayoutMap.of("lambda i, j: (i * 8 + j,)"), [n, const(8)]) is None
    assert find_collision(LayoutMap.of("lambda i, j: (i * 8 + j,)"), [n, const(9)]) is not None
    assert find_collision(LayoutMap.of("lambda i: (i % 4,)"), [(n + 3) // 4]) is not None


def test_what_is_not_affine_stays_open():
    open_question = find_collision(LayoutMap.of("lambda i, j: (i * j, j)"), [const(4), const(4)])
    assert isinstance(open_question, str) and "is not affine" in open_question
