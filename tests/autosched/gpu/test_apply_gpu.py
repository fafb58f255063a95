"""autosched for GPUs: what is dispatched where, what is inlined, and that every program runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.analysis.thread_axes import has_threads
from loopwright.autosched.gpu import GpuMachine
from loopwright.script import tir as T
from loopwright.target import Target

EMULATED = "cuda -model=emulated"


def test_the_machine_is_that_of_the_target():
    h200 = GpuMachine.of("nvidia/nvidia-h200")
    assert h200.resident_threads == 132 * 2048
    assert h200.blocks_at_once(256) == 132 * 8
    assert h200.waves(132 * 12, 256) == 1.5
    assert h200.threads(1000) == 992
    assert h200.lanes(2) == 8
    assert 4.1e12 < h200.bandwidth < 4.3e12
    small = GpuMachine.of("cuda -arch=sm_80 -max_threads_per_block=100")
    assert small.threads(256) == 96
    assert small.bandwidth > 0 and small.flops > 0 and small.l2 > 0


def test_a_chain_is_one_kernel():
    A = te.placeholder((100, 70), name="A")
    B = te.compute((100, 70), lambda i, j: te.exp(A[i, j]), name="B")
    C = te.compute((100, 70), lambda i, j: B[i, j] * 2 + B[i, j], name="C")
    plan = autosched.apply([A, C], EMULATED)
    assert isinstance(plan.machine, GpuMachine)
    assert "B: inlined" in plan.explain() and "µs to launch" in plan.explain()
    module = lw.build([A, C], target=EMULATED, autosched=True)
    assert len(set(re.findall(r"main_kernel(?:_\d+)?\b", module.get_source()))) == 1
    a, c = np.random.default_rng(0).random((100, 70), "float32"), np.zeros((100, 70), "float32")
    module(a, c)
    np.testing.assert_allclose(c, 3 * np.exp(a), rtol=1e-5)


def test_what_takes_longer_again_than_a_buffer_stays():
    A = te.placeholder((1000,), name="A")
    B = te.compute((1000,), lambda i: te.exp(te.tanh(A[i]) * te.sin(A[i])), name="B")
    C = te.compute((1000,), lambda i: sum((B[(i * 7 + k * 13) % 1000] for k in range(2, 8)), B[i]), name="C")
    assert "would compute it 7 times" in autosched.apply([A, C], EMULATED).explain()


def test_a_padding_stays_for_the_rule_of_its_window():
    A = te.placeholder((1, 4, 20, 20), name="A")
    out = topi.nn.pool2d(A, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    assert "pad_temp: inlined" not in autosched.apply([A, out], EMULATED).explain()


def test_every_nest_of_a_program_gets_threads():
    @T.prim_func
    def several(A: T.Buffer((30, 20)), B: T.Buffer((30, 20)), C: T.Buffer(30), D: T.Buffer(30)):
        for t in T.thread_binding(30, thread="threadIdx.x"):
            with T.block("D"):
                v = T.axis.spatial(30, t)
                D[v] = A[v, 0]
        for i in range(30):
            for j in range(20):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)
            with T.block("C"):
                vi = T.axis.spatial(30, i)
                C[vi] = B[vi, 0] + B[vi, 1]

    plan = autosched.apply(several, EMULATED)
    assert [decision.blocks for decision in plan.decisions] == [("D",), ("B", "C")]
    assert "D: threads as written" in plan.explain()
    assert has_threads(plan.mod["main"].body)
    module = lw.build(several, target=EMULATED, autosched=True)
    a, b = np.random.default_rng(0).random((30, 20), "float32"), np.zeros((30, 20), "float32")
    c, d = np.zeros(30, "float32"), np.zeros(30, "float32")
    module(a, b, c, d)
    np.testing.assert_array_equal(b, a + np.float32(1))
    np.testing.assert_array_equal(c, b[:, 0] + b[:, 1])
    np.testing.assert_array_equal(d, a[:, 0])


def test_the_default_leaves_out_loops_that_depend_on_each_other():
    @T.prim_func
    def running(A: T.Buffer((6, 40)), B: T.Buffer((6, 40))):
        for i, j in T.grid(6, 40):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.opaque(40, j)
                B[vi, vj] = T.if_then_else(vj > 0, B[vi, vj - 1], T.float32(0)) + A[vi, vj]

    module = lw.build(running, target=EMULATED)
    assert "__launch_bounds__(256)" in module.get_source()
    a, b = np.random.default_rng(0).random((6, 40), "float32"), np.zeros((6, 40), "float32")
    module(a, b)
    np.testing.assert_allclose(b, np.cumsum(a, 1), rtol=1e-5)


@pytest.mark.parametrize("scope", [EMULATED, "llvm", None])
def test_schedules_of_topi_by_name(scope):
    x = te.placeholder((8, 33), name="x")
    out = topi.nn.softmax(x)
    if scope is None:
        s = topi.cuda.schedule_softmax([out])
    else:
        with Target(scope):
            s = topi.cuda.schedule_softmax([out])
    assert s.is_by_rule and s.target.kind == "cuda"
    module = lw.build(s, [x, out], EMULATED)
    a, result = np.random.default_rng(0).random((8, 33), "float32"), np.zeros((8, 33), "float32")
    module(a, result)
    np.testing.assert_allclose(result.sum(1), 1, rtol=1e-5)


def test_who_goes_on_from_an_injective_schedule():
    x = te.placeholder((8, 33), name="x")
    out = topi.exp(x)
    s = te.create_schedule(out.op)
    topi.cuda.schedule_injective_from_existing(s, out)
    assert "blockIdx_x" in lw.build(s, [x, out], EMULATED).get_source()


def test_a_table_of_cheap_values_is_computed_where_it_is_read():
    A, W = te.placeholder((1 << 16, 64), name="A"), te.placeholder((64,), name="W")
    twice = te.compute((64,), lambda j: W[j] * 2, name="twice")
    scale = te.compute((64,), lambda j: te.exp(W[j]), name="scale")
    B = te.compute((1 << 16, 64), lambda i, j: A[i, j] * twice[j] + scale[j], name="B")
    plan = autosched.apply([A, W, B], "nvidia/nvidia-h200").explain()
    assert "twice: inlined" in plan and "scale: not inlined" in plan
