"""A sketch space: sketches, decisions drawn in bulk, schedules of them that compute the same, mutations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule, Trace
from loopwright.schedule.engine.deferred import Deferred
from loopwright.target import Target
from loopwright.tune import Task
from loopwright.tune.sketches import SketchSpace, llvm_rules
from loopwright.tune.sketches.errors import RejectedByPostproc
from loopwright.tune.sketches.mutators.mutator import Mutator
from tests.campaign import programs


def matmul(m: int, n: int, k: int) -> PrimFunc:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")])


def task_of(func: PrimFunc) -> Task:
    return Task("task", IRModule({"main": func}), Target("llvm"))


@cache  # its sketches take longer than most that is asked of them
def small_space() -> SketchSpace:
    return SketchSpace(task_of(matmul(32, 48, 64)))


def test_a_matmul_has_packed_sketches_and_plain_ones():
    texts = [sketch.text for sketch in small_space().sketches]
    assert "C: vectors along v_j, operand 0 in panels (slab), operand 1 in panels (root)" in texts
    assert "C: vectors along v_i, operand 0 in panels (root), copied out at level 1" in texts
    plain = SketchSpace(small_space().task, llvm_rules(packing=False)).sketches
    assert [sketch.text for sketch in plain] == [
        "C: vectors along v_j, copied out at level 1",
        "C: vectors along v_j, copied out at level 2",
        "C: vectors along v_j",
        "C: vectors along v_j, sums in registers",
    ]


def test_equal_seeds_draw_equal_rows():
    space = small_space()
    first, again, other = [space.sample(20, np.random.default_rng(seed)) for seed in (3, 3, 4)]
    assert (first == again).all()
    assert not (first == other).all()


def test_sketches_of_another_process_are_the_same():
    task = task_of(matmul(32, 48, 64))
    here, there = SketchSpace(task), SketchSpace(task)
    there.prepare()
    row = here.sample(1, np.random.default_rng(5))[0]
    assert (there.sample(1, np.random.default_rng(5))[0] == row).all()
    candidate = here.candidate(row)
    assert there.candidate(row) == candidate
    assert there.schedule(candidate).mod.script() == here.schedule(candidate).mod.script()


def test_rules_of_users_are_applied_here():
    class Rule(type(llvm_rules()[0])):
        calls = 0

        def apply(self, sch, block):
            Rule.calls += 1
            return super().apply(sch, block)

    space = SketchSpace(task_of(matmul(8, 8, 8)), [Rule()])
    space.prepare()
    assert len(space.sketches) >= 1 and Rule.calls > 0


def test_decisions_tile_the_loops_and_come_back_as_rows():
    space = small_space()
    for row in space.sample(50, np.random.default_rng(1)):
        candidate = space.candidate(row)
        _, i, j, k, *_ = candidate.choices
        assert sorted([int(np.prod(i)), int(np.prod(j))]) == [32, 48]
        assert np.prod(k) == 64
        assert (space.row(candidate) == row).all()


def test_rows_are_described_in_bulk():
    space = SketchSpace(task_of(matmul(512, 512, 512)))
    batch = space.describe(space.sample(1000, np.random.default_rng(0)))
    assert batch.features.shape == (1000, len(batch.names))
    assert np.isfinite(batch.features).all()
    assert np.isfinite(batch.prior).all()
    drawn = space.describe(space._drawn(1000, np.random.default_rng(0)))
    assert np.median(batch.prior) < np.median(drawn.prior)


def test_a_mutation_changes_one_decision():
    space, random = small_space(), np.random.default_rng(2)
    rows = space.sample(30, random)
    changed = space.mutate(rows, random)
    assert ((rows != changed).sum(axis=1) == 1).all()


def test_mutators_are_drawn_by_their_shares():
    class Step(Mutator):
        def __init__(self, by: int) -> None:
            self.by = by

        def apply(self, sketch, row, random):
            return None if self.by == 0 else self.changed(row, 0, int(row[0]) + self.by)

    mutators = [(Step(0), 5.0), (Step(100), 3.0), (Step(200), 1.0)]
    space, random = SketchSpace(task_of(matmul(32, 48, 64)), mutators=mutators), np.random.default_rng(0)
    rows = space._drawn(2000, random)
    steps = (space.mutate(rows, random) - rows)[:, 1]
    assert set(steps) == {100, 200}  # the first cannot: another one does
    assert 0.7 < (steps == 100).mean() < 0.8
    assert space.mutate(rows[:0], random).shape == (0, rows.shape[1])


@pytest.mark.parametrize("seed", range(programs(2, 12)))
def test_candidates_and_their_mutations_compute_the_same(seed):
    space, random = SketchSpace(task_of(matmul(24, 40, 12))), np.random.default_rng(seed)
    rows = space._drawn(1, random)
    a, b = np.random.default_rng(0).random((2, 40, 40), np.float32)
    a, b = np.ascontiguousarray(a[:24, :12]), np.ascontiguousarray(b[:12])
    for _ in range(3):
        sch = space.schedule(space.candidate(rows[0]))
        assert sch.is_proved
        result = np.empty((24, 40), np.float32)
        lw.build(sch.mod)(a, b, result)
        np.testing.assert_allclose(result, a @ b, rtol=1e-5)
        rows = space.mutate(rows, random)


class _Once:
    """A postproc that rejects, and counts how often it is asked."""

    name = "once"

    def __init__(self) -> None:
        self.asked = 0

    def on(self, machine):
        return self

    def apply(self, sch):
        self.asked += 1
        return False


def test_a_rejected_candidate_is_not_proved_step_by_step(monkeypatch):
    postproc = _Once()
    space = SketchSpace(small_space().task, postprocs=[postproc])
    monkeypatch.setattr(Deferred, "finish", lambda *_: pytest.fail("it is proved"))
    with pytest.raises(RejectedByPostproc, match="the postproc 'once' rejects the candidate"):
        space.schedule(space.candidate(small_space().first()))
    assert postproc.asked == 1


def test_the_trace_of_a_schedule_replays_from_json():
    space = small_space()
    for row in space.sample(3, np.random.default_rng(5)):
        sch = space.schedule(space.candidate(row))
        again = Schedule(space.task.mod)
        Trace.apply_json_to_schedule(sch.trace.as_json(), again)
        assert again.mod["main"].script() == sch.mod["main"].script()
        assert "loopwright.tiled" not in sch.mod["main"].script()
