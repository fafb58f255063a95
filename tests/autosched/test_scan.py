"""rules/scan.py: loops that carry values keep their order; what does not need it runs in lanes, rows and threads."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.script import from_source
from tests.autosched.same_results import check_same_bits, function, numbers, parallel_extents, planned

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4"


def running_sum(steps, width):
    X, state = te.placeholder((steps, width), name="X"), te.placeholder((steps, width), name="S")
    first = te.compute((1, width), lambda _, i: X[0, i], name="first")
    following = te.compute((steps, width), lambda t, i: state[t - 1, i] + X[t, i], name="following")
    return function(X, te.scan(first, following, state, inputs=[X]))


def row_sums(rows, columns, kind="scan"):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {columns})), C: T.Buffer(({rows}, {columns}))):
    for i in range({rows}):
        with T.block("first"):
            vi = T.axis.spatial({rows}, i)
            C[vi, 0] = A[vi, 0]
    for i in range({rows}):
        for t in T.serial(1, {columns}):
            with T.block("following"):
                vi = T.axis.spatial({rows}, i)
                vt = T.axis.{kind}((1, {columns}), t)
                C[vi, vt] = C[vi, vt - 1] + A[vi, vt]
""")


@pytest.mark.parametrize("steps, width", [(2, 1), (8, 10), (33, 17), (20, 64), (5, 1000)])
def test_sums_down_the_columns(steps, width):
    given = numbers(steps, width)
    out = np.zeros_like(given)
    plan = check_same_bits(running_sum(steps, width), [given, out])
    assert "scan" in plan.explain()
    assert (width > 1) == ("the contiguous axis carries no dependence" in plan.explain())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["scan", "opaque", "spatial"])
@pytest.mark.parametrize("rows, columns", [(1, 9), (5, 7), (64, 100), (33, 30)])
def test_sums_along_the_rows(rows, columns, kind):
    plan = check_same_bits(
        row_sums(rows, columns, kind), [numbers(rows, columns), np.zeros((rows, columns), "float32")]
    )
    assert (rows > 1) == ("rows at once: their independent chains hide the latency of one" in plan.explain())


def shifted_row_sums(rows, columns, batch=1):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({batch}, {rows}, {columns})), C: T.Buffer(({batch}, {rows}, {columns}))):
    for b, i, t in T.grid({batch}, {rows}, {columns - 1}):
        with T.block("following"):
            vb, vi = T.axis.remap("SS", [b, i])
            vt = T.axis.scan((1, {columns}), t + 1)
            C[vb, vi, vt] = C[vb, vi, vt - 1] * 0.5 + A[vb, vi, vt]
""")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows, columns", [(1, 9), (2, 2), (3, 8), (4, 9), (5, 10), (33, 30)])
def test_an_axis_that_starts_elsewhere_than_its_loop(rows, columns):
    plan = check_same_bits(shifted_row_sums(rows, columns), [numbers(1, rows, columns), numbers(1, rows, columns)])
    assert (rows > 1) == ("rows at once: their independent chains" in plan.explain())
    assert (rows > 1 and columns > 2) == ("steps of each at a time" in plan.explain())


def test_rows_of_several_axes_go_to_threads_together():
    plan = check_same_bits(
        shifted_row_sums(128, 300, batch=3), [numbers(3, 128, 300), numbers(3, 128, 300)], "llvm -num-cores=16"
    )
    assert "rows in parallel" in plan.explain()
    assert parallel_extents(plan) == [96]


def test_a_step_that_takes_long_is_not_written_out_many_times():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((20, 30)), C: T.Buffer((20, 30))):
    for i, t in T.grid(20, 29):
        with T.block("following"):
            vi = T.axis.spatial(20, i)
            vt = T.axis.scan((1, 30), t + 1)
            C[vi, vt] = T.tanh(C[vi, vt - 1] + A[vi, vt])
""")
    told = check_same_bits(func, [numbers(20, 30), numbers(20, 30)]).explain()
    assert "8 rows at once" in told
    assert "steps of each at a time" not in told


def test_threads():
    assert "4 parallel tasks: columns are independent" in planned(running_sum(512, 4096), AVX512).explain()
    assert "rows in parallel: rows are independent" in planned(row_sums(2048, 512), AVX512).explain()
    assert "parallel" not in planned(running_sum(8, 64), AVX512).explain()


def test_one_chain_stays_as_it_is():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((100,)), C: T.Buffer((101,))):
    for t in range(100):
        with T.block("following"):
            vt = T.axis.scan(100, t)
            C[vt + 1] = C[vt] * 0.5 + A[vt]
""")
    plan = check_same_bits(func, [numbers(100), numbers(101)])
    assert "no steps: each axis carries a dependence" in plan.explain()


def test_what_runs_once_has_nothing_to_schedule():
    func = from_source("""
@T.prim_func
def main(C: T.Buffer((1,))):
    with T.block("constant"):
        v = T.axis.spatial(1, 0)
        C[v] = T.float32(3)
""")
    assert "no steps: it runs once: there is nothing to schedule" in planned(func, AVX512).explain()


def test_a_condition_of_the_program_itself_is_told_from_that_of_a_split():
    n = te.var("n")
    X, state = te.placeholder((n, 16), name="X"), te.placeholder((n, 16))
    start = te.compute((1, 16), lambda t, i: X[0, i], name="start")
    scan = te.scan(start, te.compute((n, 16), lambda t, i: state[t - 1, i] + X[t, i]), state, inputs=[X])
    told = planned(te.create_prim_func([X, scan]), AVX512).explain()
    assert "it runs only where t < n: n, known only at run time, may be smaller than the loop" in told
    assert "than the loop, as in the start of a te.scan" in told


def test_rows_that_go_on_from_their_first_cell_take_several_steps_at_once():
    func = from_source("""
@T.prim_func
def main(X: T.Buffer((8, 20)), S: T.Buffer((8, 20))):
    for i in range(8):
        for t in range(1, 20):
            with T.block("S"):
                vi, vt = T.axis.spatial(8, i), T.axis.scan((1, 20), t)
                S[vi, vt] = S[vi, vt - 1] + X[vi, vt]
""")
    plan = check_same_bits(func, [numbers(8, 20), numbers(8, 20)])
    assert "8 steps of each at a time" in plan.explain()


def test_a_recurrent_step_of_several_blocks():
    steps, width = 6, 40
    X, W = te.placeholder((steps, width), name="X"), te.placeholder((width, width), name="W")
    state, k = te.placeholder((steps, width), name="S"), te.reduce_axis((0, width), name="k")
    first = te.compute((1, width), lambda _, i: X[0, i], name="first")
    gate = te.compute((steps, width), lambda t, i: te.sum(state[t - 1, k] * W[k, i], axis=k), name="gate")
    following = te.compute((steps, width), lambda t, i: te.tanh(gate[t, i] + X[t, i]), name="following")
    func = function(X, W, te.scan(first, following, state, inputs=[X]))
    given = [numbers(steps, width), numbers(width, width) * np.float32(0.01), np.zeros((steps, width), "float32")]
    told = check_same_bits(func, given).explain()
    assert told.count("the contiguous axis carries no dependence") == 2


def test_symbolic_sizes():
    n = te.var("n")
    X, state = te.placeholder((n, 50), name="X"), te.placeholder((n, 50), name="S")
    first = te.compute((1, 50), lambda _, i: X[0, i], name="first")
    following = te.compute((n, 50), lambda t, i: state[t - 1, i] + X[t, i], name="following")
    func = function(X, te.scan(first, following, state, inputs=[X]))
    plan = check_same_bits(func, [numbers(9, 50), np.zeros((9, 50), "float32")])
    assert "the contiguous axis carries no dependence" in plan.explain()
