"""Rules: what each of them makes of a block, and that schedules from all of them compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule
from loopwright.target import Target
from loopwright.tune import Task
from loopwright.tune.sketches import SketchSpace, UnknownScheduleRule
from loopwright.tune.sketches.rules import AddRFactor, ApplyCustomRule, AutoInline, MultiLevelTiling, ScheduleRule


def chain() -> PrimFunc:
    a = te.placeholder((64, 48), name="A")
    b = te.compute((64, 48), lambda i, j: a[i, j] * 2.0, name="B")
    return te.create_prim_func([a, te.compute((64, 48), lambda i, j: b[i, j] + 1.0, name="C")])


def row_sum(rows: int, columns: int) -> PrimFunc:
    a, k = te.placeholder((rows, columns), name="A"), te.reduce_axis((0, columns), "k")
    return te.create_prim_func([a, te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="S")])


def softmax() -> PrimFunc:
    x = te.placeholder((12, 40), name="X")
    return te.create_prim_func([x, topi.nn.softmax(x)])


def convolution() -> PrimFunc:
    x, w = te.placeholder((1, 4, 10, 10), name="X"), te.placeholder((16, 4, 3, 3), name="W")
    return te.create_prim_func([x, w, topi.nn.relu(topi.nn.conv2d_nchw(x, w, 1, 1, 1))])


def space_of(func: PrimFunc, **parts: object) -> SketchSpace:
    return SketchSpace(Task("task", IRModule({"main": func}), Target("llvm")), **parts)  # type: ignore[arg-type]


def test_element_wise_producers_are_inlined():
    sch = Schedule(chain())
    (done,) = AutoInline().apply(sch, sch.get_block("B"))
    assert done.view().block_names() == ["root", "C"]
    assert AutoInline().apply(sch, sch.get_block("C")) == [sch]


def test_a_row_is_reduced_in_lanes():
    sch = Schedule(row_sum(64, 256))
    (done,) = AddRFactor().apply(sch, sch.get_block("S"))
    assert [name for name in done.view().block_names() if "rf" in name]
    assert "SampleCategorical" in [str(inst.kind) for inst in done.trace.insts]


def test_what_has_no_reuse_is_not_tiled():
    sch = Schedule(row_sum(64, 256))
    assert MultiLevelTiling().apply(sch, sch.get_block("S")) == [sch]


def test_a_block_may_name_its_own_rule():
    def unrolled(sch, block):
        sch.unroll(sch.get_loops(block)[-1])
        return [sch]

    sch = Schedule(row_sum(4, 8))
    sch.annotate(sch.get_block("S"), "schedule_rule", "mine")
    (done,) = ApplyCustomRule({"mine": unrolled}).apply(sch.copy(), sch.get_block("S"))
    assert "T.unroll(8)" in done.mod["main"].script()
    with pytest.raises(UnknownScheduleRule, match="'mine'; there are yours"):
        ApplyCustomRule({"yours": unrolled}).apply(sch, sch.get_block("S"))


def test_a_rule_of_your_own_is_a_class_in_a_list():
    class SplitBySeven(ScheduleRule):
        name = "split_by_seven"

        def apply(self, sch, block):
            trial = sch.copy()
            trial.split(trial.get_loops(block)[-1], [None, 7])
            return [sch, trial]

    space = space_of(chain(), rules=[AutoInline(), SplitBySeven()], postprocs=[])
    assert len(space.sketches) == 2
    assert "range(7)" in space.schedule(space.candidate(np.array([1]))).mod["main"].script().replace(
        "grid(64, 7, 7)", "range(7)"
    )


@pytest.mark.parametrize("make", [chain, softmax, convolution, lambda: row_sum(5, 96)])
def test_schedules_compute_the_same(make):
    func = make()
    space, random = space_of(func), np.random.default_rng(1)
    shapes = [[int(size) for size in buffer.shape] for buffer in func.buffer_map.values()]
    arrays = [random.random(shape, np.float32) for shape in shapes]
    lw.build(IRModule({"main": func}))(*arrays)
    expected = arrays[-1].copy()
    for row in space.sample(4, random):
        sch = space.schedule(space.candidate(row))
        assert sch.is_proved
        lw.build(sch.mod)(*arrays)
        np.testing.assert_allclose(arrays[-1], expected, rtol=1e-5)
