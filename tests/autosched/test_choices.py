"""A search picks what a rule would not have; without one the rules do what they always did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.choices import Choices, current_choices, distance, nearest, option, pick, plain_fields
from loopwright.ir import structural_equal


class Sized(NamedTuple):
    tile: tuple[int, int]
    word: str
    packs: bool


TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def gemm(m: int = 49, n: int = 200, k: int = 96):
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


def test_without_decisions_nothing_changes():
    alone = autosched.apply(gemm(), TARGET)
    with Choices() as choices:
        plan = autosched.apply(gemm(), TARGET)
    assert structural_equal(plan.mod, alone.mod)
    assert current_choices() is None
    assert choices.points[0].key == "0.tiles"
    assert all(point.picked == point.usual for point in choices.points)


def test_a_decision_is_followed():
    with Choices() as usual:
        first = autosched.apply(gemm(), TARGET)
    (point,) = [point for point in usual.points if point.key == "0.tiles"]
    other = next(fields for fields in point.candidates if fields["mr"] != point.candidates[point.usual]["mr"])
    with Choices({"0.tiles": other}) as choices:
        plan = autosched.apply(gemm(), TARGET)
    assert choices.decisions["0.tiles"] == other
    assert not structural_equal(plan.mod, first.mod)
    assert plan.schedule.is_proved
    with Choices(choices.decisions):
        assert structural_equal(autosched.apply(gemm(), TARGET).mod, plan.mod)


def test_decisions_are_samples_of_the_trace():
    with Choices() as choices:
        plan = autosched.apply(gemm(), TARGET)
    samples = [inst for inst in plan.trace.insts if inst.kind == "SampleCategorical"]
    assert samples
    assert 49 // 7 in [int(inst.outputs[0]) for inst in samples] or choices.decisions["0.tiles"]["mr"] != 7
    replayed = lw.Schedule(plan.start)
    plan.trace.apply_to_schedule(replayed)
    assert structural_equal(replayed.mod, plan.mod)


def test_decisions_of_another_size_find_the_nearest():
    with Choices() as choices:
        autosched.apply(gemm(49, 200, 96), TARGET)
    with Choices(choices.decisions) as other:
        plan = autosched.apply(gemm(50, 208, 100), TARGET)
    assert plan.schedule.is_proved
    assert other.decisions["0.tiles"]["vectors"] == choices.decisions["0.tiles"]["vectors"]


@pytest.mark.parametrize("position", range(0, 40, 7))
def test_every_candidate_computes_the_same(position):
    func = gemm(23, 70, 37)
    with Choices() as usual:
        autosched.apply(func)
    point = usual.points[0]
    with Choices({point.key: point.candidates[position % len(point.candidates)]}):
        run = lw.build(func, autosched=True)
    rng = np.random.default_rng(position)
    a, b = rng.random((23, 37), "float32"), rng.random((37, 70), "float32")
    c = np.empty((23, 70), "float32")
    run(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=37 * 2**-23)


def test_options_and_picks_alone():
    assert pick("size", [4, 2, 8], cost=float) == 2
    assert option("far", 2, 1, 4) == 2
    with Choices({"0.size": {"value": 7}, "0.far": {"value": 1}}) as choices:
        assert pick("size", [4, 2, 8], cost=float) == 8
        assert option("far", 2, 1, 4) == 1
        assert option("far", 8, 16) == 1  # settled
        assert pick("only", [3], cost=float) == 3
        assert pick("size", [1, 2], cost=float) == 1
    assert [point.key for point in choices.points] == ["0.size", "0.far", "0.size#1"]


def test_distances():
    assert distance({"a": 4}, {"a": 4}) == 0
    assert distance({"a": 4}, {"a": 8}) == 1 < distance({"a": 4}, {"a": True})
    assert nearest([{"a": 1}, {"a": 16}], {"a": 12}, [0.0, 0.0]) == 1
    assert nearest([{"a": 8}, {"a": 2}], {"a": 4}, [2.0, 1.0]) == 1
    assert plain_fields(3) == {"value": 3}


def test_candidates_may_hold_tuples_and_words():
    """The pixel vectors of winograd and of groups have sizes that are tuples."""
    A = te.placeholder((8,), name="A")
    sch = lw.Schedule(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")]))
    candidates = [Sized((1, 2), "a", True), Sized((2, 4), "b", False), Sized((2, 4), "b", True)]
    with Choices({"0.sizes": {"tile": [2, 4], "word": "b", "packs": True}}) as choices, choices.scheduling(sch):
        assert pick("sizes", candidates, cost=lambda one: one.tile[0]) is candidates[2]
    (sample,) = sch.trace.insts
    assert list(sample.attrs["candidates"]) == [0, 1]
    assert int(sample.outputs[0]) == 1


def test_a_search_may_leave_out_prefetches_of_rows():
    x = te.placeholder((1024, 1024), name="X")
    func = te.create_prim_func([x, topi.nn.softmax(x)])
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"
    with Choices() as choices:
        own = autosched.apply(func, target)
    assert [point.key for point in choices.points] == ["0.accumulators", "0.rows prefetched"]
    with Choices({"0.rows prefetched": {"value": False}}):
        other = autosched.apply(func, target)
    assert "prefetch" in own.mod["main"].script()
    assert "prefetch" not in other.mod["main"].script()
