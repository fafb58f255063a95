"""The decisions of the rules as a space: drawn, changed and described in bulk; every row is a proved schedule."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import autosched, te
from loopwright.ir import IRModule, structural_equal
from loopwright.target import Target
from loopwright.tune import Candidate, Task
from loopwright.tune.space import RuleSpace

TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=2")


def gemm_task(m: int = 49, n: int = 200, k: int = 96) -> Task:
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return Task("main", IRModule({"main": te.create_prim_func([A, B, C])}), TARGET)


@pytest.fixture(scope="module")
def space() -> RuleSpace:
    return RuleSpace(gemm_task())


def test_the_first_candidate_is_the_rules_own(space):
    first = space.candidate(space.first())
    assert first == Candidate("rules", ())
    own = autosched.apply(space.task.mod, TARGET)
    assert structural_equal(space.schedule(first).mod, own.mod)


def test_rows_are_drawn_and_described_in_bulk(space):
    rows = space.sample(1000, np.random.default_rng(1))
    assert len(np.unique(rows, axis=0)) > 10
    batch = space.describe(rows)
    assert batch.features.shape == (1000, len(batch.names))
    assert "tiles.mr" in batch.names
    assert batch.prior.min() >= -1e-9  # the rule takes what should cost least
    assert np.array_equal(rows, space.sample(1000, np.random.default_rng(1)))


def test_mutations_change_one_decision(space):
    random = np.random.default_rng(2)
    rows = space.sample(50, random)
    changed = space.mutate(rows, random)
    assert ((rows != changed).sum(axis=1) <= 1).all()
    assert (rows != changed).any()


def test_a_row_is_its_candidate(space):
    for row in space.sample(5, np.random.default_rng(3)):
        candidate = space.candidate(row)
        assert space.candidate(space.row(candidate)) == candidate
        assert space.schedule(candidate).is_proved


def test_a_candidate_of_another_shape_is_adapted(space):
    candidate = space.candidate(space.sample(1, np.random.default_rng(4))[0])
    other = RuleSpace(gemm_task(64, 256, 128))
    assert other.schedule(other.candidate(other.row(candidate))).is_proved


def test_a_program_without_decisions_has_one_candidate():
    A = te.placeholder((3,), name="A")
    B = te.compute((3,), lambda i: A[i] + 1.0, name="B")
    space = RuleSpace(Task("main", IRModule({"main": te.create_prim_func([A, B])}), TARGET))
    assert space.size == 1
    assert space.first().shape == (0,)
    assert len(space.describe(space.sample(4, np.random.default_rng(0)))) == 4
