"""Rules: what each of them makes of a block, and that schedules from all of them compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.autosched import Machine
from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule
from loopwright.target import Target
from loopwright.tune import Task
from loopwright.tune.sketches import SketchSpace, UnknownScheduleRule
from loopwright.tune.sketches.rules import (
    AddRFactor,
    ApplyCustomRule,
    AutoInline,
    MultiLevelTiling,
    PadOddSizes,
    ScheduleRule,
)


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


def biased_matmul(m: int, n: int, k: int) -> PrimFunc:
    a, b, c = (te.placeholder(shape, name=name) for shape, name in (((m, k), "A"), ((k, n), "B"), ((n,), "bias")))
    r = te.reduce_axis((0, k), "k")
    product = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c, te.compute((m, n), lambda i, j: product[i, j] + c[j], name="D")])


def padded_by_rule(func: PrimFunc, cpu: str = "skylake-avx512") -> list[Schedule]:
    machine = Machine.of(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    sch = Schedule(func)
    return PadOddSizes().on(machine).apply(sch, sch.get_block("C"))


def test_a_prime_size_grows_to_one_that_tiles_divide():
    padded, plain = padded_by_rule(biased_matmul(257, 257, 257))
    assert plain.view().block_names() == ["root", "C", "D"]
    assert padded.view().block_names() == ["root", "A_pad", "B_pad", "C", "D"]
    rows, columns, steps = [axis.dom.extent.value for axis in padded.get(padded.get_block("C")).iter_vars]
    assert 257 < rows < 273
    assert columns % 32 == 0
    assert steps == 260
    assert padded.is_proved


def test_sizes_that_tiles_divide_stay():
    assert len(padded_by_rule(biased_matmul(256, 256, 256))) == 1


def test_what_is_no_plain_index_is_not_padded():
    func = convolution()
    sch = Schedule(func)
    assert len(PadOddSizes().apply(sch, sch.get_block("conv2d_nchw"))) == 1


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


@pytest.mark.parametrize(
    "make", [chain, softmax, convolution, lambda: row_sum(5, 96), lambda: biased_matmul(11, 37, 43)]
)
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
