"""A sketch space: sketches, decisions drawn in bulk, schedules of them that compute the same, mutations."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule
from loopwright.target import Target
from loopwright.tune import Task
from loopwright.tune.sketches import SketchSpace, llvm_rules


def matmul(m: int, n: int, k: int) -> PrimFunc:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")])


def task_of(func: PrimFunc) -> Task:
    return Task("task", IRModule({"main": func}), Target("llvm"))


def test_a_matmul_has_packed_sketches_and_plain_ones():
    task = task_of(matmul(32, 48, 64))
    texts = [sketch.text for sketch in SketchSpace().sketches(task)]
    assert "C_update SSRSRS vector:v_j level:0 operand0:slab operand1:root" in texts
    assert "C_update SSRSRS vector:v_j level:1" in texts
    plain = SketchSpace(llvm_rules(packing=False)).sketches(task)
    assert [sketch.text for sketch in plain] == [
        "C_update SSRSRS vector:v_j level:1",
        "C_update SSRSRS vector:v_j level:2",
        "C_update SSRSRS vector:v_j level:0",
    ]


def test_equal_seeds_draw_equal_candidates():
    task = task_of(matmul(32, 48, 64))
    first, again, other = [[one.choices for one in SketchSpace().sample(task, Random(seed), 20)] for seed in (3, 3, 4)]
    assert first == again != other


def test_decisions_tile_the_loops():
    task, space = task_of(matmul(32, 48, 64)), SketchSpace()
    for candidate in space.sample(task, Random(1), 50):
        _, i, j, k, *_ = candidate.choices
        assert sorted([int(np.prod(i)), int(np.prod(j))]) == [32, 48]
        assert np.prod(k) == 64


@pytest.mark.parametrize("seed", range(3))
def test_candidates_and_their_mutations_compute_the_same(seed):
    task, space, random = task_of(matmul(24, 40, 12)), SketchSpace(), Random(seed)
    candidate = space.sample(task, random, 1)[0]
    a, b = np.random.default_rng(0).random((2, 40, 40), np.float32)
    a, b = np.ascontiguousarray(a[:24, :12]), np.ascontiguousarray(b[:12])
    for _ in range(3):
        sch = space.instantiate(task, candidate)
        assert sch.is_proved
        result = np.empty((24, 40), np.float32)
        lw.build(sch.mod)(a, b, result)
        np.testing.assert_allclose(result, a @ b, rtol=1e-5)
        mutated = space.mutate(task, candidate, random)
        assert mutated is not None and mutated.choices != candidate.choices
        candidate = mutated


def test_the_trace_of_an_instance_replays_from_json():
    task, space = task_of(matmul(32, 48, 64)), SketchSpace()
    for candidate in space.sample(task, Random(5), 3):
        sch = space.instantiate(task, candidate)
        again = Schedule(task.mod)
        type(sch.trace).apply_json_to_schedule(sch.trace.as_json(), again)
        assert again.mod["main"].script() == sch.mod["main"].script()
