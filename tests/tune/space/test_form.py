"""Forms: a convolution as a GEMM and as itself, each with the points it has."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import autosched, te, topi
from loopwright.ir import IRModule, structural_equal
from loopwright.target import Target
from loopwright.tune import Candidate, Task
from loopwright.tune.space import RuleSpace

TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1")


@pytest.fixture(scope="module")
def space() -> RuleSpace:
    x, w = te.placeholder((1, 96, 14, 14), name="X"), te.placeholder((64, 96, 1, 1), name="W")
    func = te.create_prim_func([x, w, topi.nn.conv2d_nchw(x, w, 1, 0, 1)])
    return RuleSpace(Task("main", IRModule({"main": func}), TARGET))


def test_each_form_has_points_of_its_own(space):
    own, *others = space.forms
    assert own.fixed == {}
    assert {"0.as a product": False} in [{key: value["value"] for key, value in form.fixed.items()} for form in others]
    assert all(point.key not in form.fixed for form in space.forms for point in form.points)
    assert "0.as a product" in [point.key for point in space.forks]
    tiles = [point for form in space.forms for point in form.points if point.key == "0.tiles"]
    assert {"band" in point.candidates[0] for point in tiles} == {False, True}
    assert space.size == sum(form.size for form in space.forms)


def test_the_openings_are_the_other_forms(space):
    rows = space.openings()
    assert [space.candidate(row).decisions for row in rows] == [form.fixed for form in space.forms[1:]]
    plan = space.plan_of(space.candidate(rows[0]))
    assert not structural_equal(plan.mod, autosched.apply(space.task.mod, TARGET).mod)


def test_rows_of_all_forms_are_drawn_changed_and_made(space):
    random = np.random.default_rng(0)
    rows = space.sample(200, random)
    numbers = set(range(len(space.forms)))
    assert set(rows[:, -1]) == numbers
    assert set(space.mutate(rows, random)[:, -1]) == numbers
    batch = space.describe(rows)
    assert np.isfinite(batch.prior).all()
    assert (batch.prior[rows[:, -1] == 1] >= space.forms[1].log_cost - 1e-9).all()
    for number in numbers:
        row = rows[rows[:, -1] == number][0]
        candidate = space.candidate(row)
        assert (space.row(candidate) == row).all()
        assert space.schedule(candidate).is_proved


def test_a_candidate_of_a_form_that_is_not_there_is_taken_as_the_rules_own(space):
    row = space.row(Candidate.of("rules", {"0.winograd": True}))
    assert (row == space.first()).all()
