"""What caches hold when a sample begins."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends.tuning import session_of
from loopwright.ir import PrimFunc
from loopwright.target import Target, describe
from loopwright.tune.database import MemoryDatabase
from loopwright.tune.measure import Measurer
from loopwright.tune.measure.flush import flush_all, flush_l2, l2_walk
from tests.tune.measure.programs import add_one, job, task_of


@pytest.mark.parametrize("threads", [1, 2])
def test_each_thread_walks_more_than_its_l2(threads):
    target = Target("llvm")
    walk = l2_walk(target, threads)
    assert walk.failure is None
    x, y = (np.ones((threads, describe(target).cache_sizes.l2 // 4), "float32") for _ in range(2))
    walk.load(target).entry_func(x, y)
    assert (y == 2).all() and x.nbytes + y.nbytes == 2 * threads * describe(target).cache_sizes.l2
    flush_l2(walk, target, threads)()
    flush_all(target)()


@pytest.mark.parametrize("threads", [1, 2])
def test_candidates_race_with_no_data_in_l2(threads):
    measurer = Measurer("llvm", threads=threads, cache="model", budget=0.01)
    assert measurer.settings == {"threads": threads, "cache": "model"}
    (first,) = measurer.build(task_of(add_one), [job(add_one)])
    measured = measurer.race(task_of(add_one), first, first)
    assert measured.failure is None and measured.checked


def test_kernels_of_models_are_measured_as_in_a_model():
    task = task_of(add_one)

    def of_a_model(function: PrimFunc) -> PrimFunc:
        return function.with_attr("constant_params", (0,))

    constant = task_of(of_a_model(task.function))
    for tasks, state in (([task], "warm"), ([task, constant], "model")):
        assert session_of(tasks, MemoryDatabase()).measurer.settings["cache"] == state
        assert session_of(tasks, MemoryDatabase(), "cold").measurer.settings["cache"] == "cold"
