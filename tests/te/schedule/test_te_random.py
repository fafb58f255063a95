"""Random te schedules of random little graphs: each is refused with an error of ours, or computes what was there."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright import te
from loopwright.driver.build_module import schedule_to_module
from loopwright.evaluator import evaluate
from loopwright.ir import IterType
from loopwright.ir.verifier import verify
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import ScheduleError
from loopwright.te.schedule.errors import TeScheduleError
from tests.te.schedule.replaying import arrays_for


def graph(rng: random.Random):
    """Inputs and the last tensor of a chain of two to four computes, with halos, transposes and reductions."""
    n = rng.choice([1, 3, 4, 5, 6])
    A = te.placeholder((n + 2, n + 2), name="A")
    tensors = [A]
    for name in "BCDE"[: rng.randint(1, 4)]:
        tensors.append(step(rng, name, tensors[-1], rng.choice(tensors)))
    return A, tensors[-1]


def step(rng: random.Random, name: str, a, b):
    """A tensor computed from `a`, and perhaps from `b`."""
    kind = rng.choice(["plus", "shift", "flip", "sum", "two", "product"])
    shape = tuple([int(size) for size in a.shape])
    if kind == "shift" and min(shape) > 1:
        return te.compute((shape[0] - 1, shape[1]), lambda i, j: a[i + 1, j] - a[i, j], name=name)
    if kind == "flip":
        return te.compute(shape[::-1], lambda i, j: a[j, i] * 2, name=name)
    if kind in ("sum", "product"):
        k = te.reduce_axis((0, shape[1]), name="k")
        if kind == "sum":
            return te.compute((shape[0], 2), lambda i, j: te.sum(a[i, k] * (j + 1), axis=k), name=name)
        return te.compute((shape[0], shape[0]), lambda i, j: te.max(a[i, k] + a[j, k], axis=k), name=name)
    rows, columns = (min(int(x), int(y)) for x, y in zip(a.shape, b.shape, strict=True))
    return te.compute((rows, columns), lambda i, j: a[i, j] + b[i, j], name=name)


def ask(rng: random.Random, s, done: list[str]) -> None:
    """One directive, sensible or not."""
    stage = rng.choice([stage for stage in s.stages if stage.op.name != "A"])
    leaves = stage.leaf_iter_vars
    axis = rng.choice(leaves)
    step = rng.choice(
        "split split fuse reorder at at inline read write rfactor vectorize unroll parallel layout".split()
    )
    done.append(f"{step} {stage.op.name} {axis.var.name}")
    if step == "split":
        stage.split(axis, **{rng.choice(["factor", "nparts"]): rng.randint(1, 5)})
    elif step == "fuse" and len(leaves) > 1:
        place = rng.randrange(len(leaves) - 1)
        stage.fuse(*leaves[place : place + 2])
    elif step == "reorder":
        stage.reorder(*rng.sample(leaves, rng.randint(1, len(leaves))))
    elif step == "at":
        other = rng.choice(s.stages)
        if other.leaf_iter_vars:
            stage.compute_at(other, rng.choice(other.leaf_iter_vars))
    elif step == "inline":
        stage.compute_inline()
    elif step == "read":
        s.cache_read(rng.choice(stage.op.input_tensors), rng.choice(["local", "global"]), [stage.op])
    elif step == "write":
        s.cache_write(stage.op.output(0), rng.choice(["local", "global"]))
    elif step == "rfactor":
        reduce = [leaf for leaf in leaves if leaf.iter_type is IterType.CommReduce]
        if reduce:
            s.rfactor(stage.op.output(0), rng.choice(reduce), rng.choice([0, -1]))
    elif step == "layout":
        stage.transform_layout(rng.choice([lambda i, j: [j, i], lambda i, j: [i * 1, j]]))
    elif step in ("vectorize", "unroll", "parallel"):
        getattr(stage, step)(axis)


def attempt(seed: int) -> str:
    """ "accepted", or why not; a wrong value or a foreign error fails."""
    rng = random.Random(seed)
    A, last = graph(rng)
    s = te.create_schedule(last.op)
    asked: list[str] = []
    for _ in range(rng.randint(1, 7)):
        try:
            ask(rng, s, asked)
        except TeScheduleError:
            asked.pop()
    try:
        args = [A, last]
        program = schedule_to_module(s, args)["main"]
    except (TeScheduleError, ScheduleError) as refused:
        return f"refused: {refused.problem}"
    except LoopwrightError as error:
        raise AssertionError(f"seed {seed}: {asked}") from error
    verify(program)
    assert s.as_tir_schedule(args).is_proved
    shape = [int(size) for size in program.argument_buffers()[1].shape]
    (a, _), plain = arrays_for(args, seed=seed), te.create_prim_func(args)
    expected, got = np.zeros([int(size) for size in last.shape], "float32"), np.zeros(shape, "float32")
    evaluate(plain, a, expected)
    evaluate(program, a, got)
    if s[last].layout_transforms:
        for mapping in s[last].layout_transforms:
            expected = mapping.map_ndarray(expected)
    np.testing.assert_array_equal(got, expected, err_msg=f"seed {seed}: {asked}")
    return "accepted"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("start", range(0, 120, 20))
def test_random_schedules(start):
    results = [attempt(seed) for seed in range(start, start + 20)]
    assert results.count("accepted") >= 8, results
