"""fuse: a nest becomes one loop."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import BadStepArgument, NotProved, NotSupported, WouldChangeValues
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check, matmul, refused


@T.prim_func
def copy(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
    for i, j in T.grid(4, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def test_fuse():
    sch = tir.Schedule(copy)
    fused = sch.fuse(*sch.get_loops("B"))

    @T.prim_func
    def expected(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
        for i_j_fused in range(20):
            with T.block("B"):
                vi = T.axis.spatial(4, i_j_fused // 5)
                vj = T.axis.spatial(5, i_j_fused % 5)
                B[vi, vj] = A[vi, vj]

    check(sch, copy, expected)
    assert fused.name == "i_j_fused"


def test_fuse_after_split_gives_the_loop_back():
    sch = tir.Schedule(copy)
    i, _ = sch.get_loops("B")
    sch.fuse(*sch.split(i, [2, 2]))

    @T.prim_func
    def expected(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
        for i_0_i_1_fused, j in T.grid(4, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i_0_i_1_fused, j])
                B[vi, vj] = A[vi, vj]

    check(sch, copy, expected)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 5)])
@pytest.mark.parametrize("factor", [1, 2, 4, 7])
def test_fuse_then_split_keeps_every_value(shape, factor):
    A = te.placeholder(shape, name="A")
    func = te.create_prim_func([A, te.compute(shape, lambda i, j: A[i, j] + 1, name="B")])
    sch = tir.Schedule(func)
    sch.split(sch.fuse(*sch.get_loops("B")), [None, factor])
    check(sch, func)


def test_fuse_data_and_reduction_then_split_and_reorder():
    func = matmul(3, 4, 5)
    sch = tir.Schedule(func)
    _, j, k = sch.get_loops("C")
    outer, inner = sch.split(sch.fuse(j, k), [None, 6])
    sch.reorder(inner, outer)
    check(sch, func)


def test_fuse_all_loops_of_a_reduction():
    func = matmul(2, 3, 4)
    sch = tir.Schedule(func)
    sch.fuse(*sch.get_loops("C"))
    check(sch, func)


def test_fuse_loops_that_do_not_start_at_zero():
    @T.prim_func
    def func(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
        for i in range(1, 4):
            for j in range(2, 5):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(func)
    sch.fuse(*sch.get_loops("B"))

    @T.prim_func
    def expected(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
        for i_j_fused in range(9):
            with T.block("B"):
                vi = T.axis.spatial((1, 4), i_j_fused // 3 + 1)
                vj = T.axis.spatial((2, 5), i_j_fused % 3 + 2)
                B[vi, vj] = A[vi, vj]

    check(sch, func, expected)


def test_fuse_refuses_a_loop_that_starts_where_the_other_says():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in range(4):
            for j in range(i, i + 3):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(func)
    refused(sch, NotSupported, "the start of loop j depends on i", "fuse", *sch.get_loops("B"))


def test_fuse_one_loop():
    sch = tir.Schedule(copy)
    sch.fuse(sch.get_loops("B")[0])
    check(sch, copy)


def test_fuse_int64_loops():
    @T.prim_func
    def func(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
        for i, j in T.grid(T.int64(4), T.int64(5)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(func)
    sch.fuse(*sch.get_loops("B"))
    check(sch, func)


def test_fuse_is_refused_where_the_init_would_move_past_another_block():
    @T.prim_func
    def func(A: T.Buffer((4, 3)), C: T.Buffer(5), D: T.Buffer((4, 3))):
        for i, k in T.grid(4, 3):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]
            with T.block("D"):
                vi, vk = T.axis.remap("SS", [i, k])
                D[vi, vk] = C[vi + 1]

    sch = tir.Schedule(func)
    refused(sch, WouldChangeValues, "fuse would change a value", "fuse", *sch.get_loops("C"))


def test_fuse_refuses():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, NotSupported, "loop j stands between i and k", "fuse", i, k)
    refused(sch, NotSupported, "loop i stands outside j, not inside it", "fuse", j, i)
    refused(sch, BadStepArgument, "no loops are given", "fuse")
    sch.unroll(k)
    refused(sch, NotSupported, "loop k is unrolled", "fuse", j, k)


def test_fuse_refuses_a_triangle():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        for i in range(4):
            for j in range(i + 1):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(func)
    refused(sch, NotSupported, "the extent of loop j depends on i", "fuse", *sch.get_loops("B"))


def test_fuse_refuses_an_inner_loop_without_iterations():
    # The sum over nothing is 0 for every i: after fusing, no loop would say which cells these are.
    sch = tir.Schedule(matmul(3, 2, 0))
    problem = "fuse: loop k has no iterations, so a fused loop could not tell j"
    refused(sch, NotSupported, problem, "fuse", *sch.get_loops("C"))
    sch.fuse(*sch.get_loops("C")[:2])


def test_fuse_refuses_an_outer_reduction_without_iterations():
    sch = tir.Schedule(matmul(3, 2, 0))
    i, j, k = sch.get_loops("C")
    sch.reorder(k, j)
    problem = "fuse: loop k may have no iterations, and block C starts a reduction all the same"
    refused(sch, NotSupported, problem, "fuse", k, j)


def test_fuse_refuses_a_reduction_that_may_have_no_iterations():
    n = te.var("n")
    A, k = te.placeholder((3, n), name="A"), te.reduce_axis((0, n), "k")
    before = te.create_prim_func([A, te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="C")])
    sch = tir.Schedule(before)
    problem = "fuse: loop k may have no iterations, and block C starts a reduction all the same"
    refused(sch, NotSupported, problem, "fuse", *sch.get_loops("C"))
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    sch.fuse(*sch.get_loops("C_update"))
    result = np.full(3, 7, "float32")
    lw.build(sch.mod["main"])(np.ones((3, 0), "float32"), result)
    assert result.tolist() == [0, 0, 0]


def test_every_block_in_a_loop_that_may_have_no_iterations_is_looked_at():
    @T.prim_func
    def func(a: T.handle, d: T.handle, C: T.Buffer(3)):
        n = T.int32()
        A = T.match_buffer(a, (n, 3))
        D = T.match_buffer(d, (n, 3))
        for k, j in T.grid(n, 3):
            with T.block("D"):
                vk, vj = T.axis.remap("SS", [k, j])
                D[vk, vj] = A[vk, vj] + 1.0
            with T.block("C"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    C[vj] = 0.0
                C[vj] = C[vj] + A[vk, vj]

    sch = tir.Schedule(func)
    problem = "fuse: loop k may have no iterations, and block C starts a reduction all the same"
    refused(sch, NotSupported, problem, "fuse", *sch.get_loops("C"))


@pytest.mark.parametrize("preserve", [True, False])
def test_loops_of_one_iteration_in_bindings(preserve):
    func = matmul(4, 1, 3)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    sch.fuse(sch.add_unit_loop(i), i, preserve_unit_iters=preserve)
    (realize,) = sch.view().blocks_below(sch.view().root.block.body)
    assert [repr(value) for value in realize.iter_values] == ["u_i_fused", "j" if preserve else "0", "k"]
    check(sch, func)


def test_a_loop_of_one_iteration_outside_goes_from_bindings_too():
    func = matmul(1, 4, 3)
    sch = tir.Schedule(func)
    sch.fuse(*sch.get_loops("C")[1:], preserve_unit_iters=False)
    (realize,) = sch.view().blocks_below(sch.view().root.block.body)
    assert [repr(value) for value in realize.iter_values] == ["0", "j_k_fused // 3", "j_k_fused % 3"]
    check(sch, func)


def test_loops_of_two_widths_give_each_axis_its_own_type():
    size = te.size_var("n", "int64")
    a = te.placeholder((size, 8), name="A")
    b = te.compute((size, 8), lambda i, j: a[i, j] + 1, name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    sch.fuse(*sch.get_loops(sch.get_block("B")))
    verify(sch.mod)
    x = np.arange(24, dtype="float32").reshape(3, 8)
    out = np.zeros_like(x)
    lw.build(sch.mod)(x, out)
    assert np.array_equal(out, x + 1)


def test_fuse_reads_an_inner_bound_once_for_all_outer_iterations():
    @T.prim_func
    def changes(t: T.Buffer(1, "int32"), B: T.Buffer((4, 20), "int32")):
        for i, j in T.grid(4, t[0]):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(t[0], B[vi, vj])
                t[0] = 10 + vi
                B[vi, vj] = vi

    sch = tir.Schedule(changes)
    with pytest.raises(NotSupported, match=r"the extent t\[0\] of loop j is read once, and the loop's body writes t"):
        sch.fuse(*sch.get_loops("B"))


@pytest.mark.parametrize(
    "init, update",
    [
        ("X[v] = 2 * X[v]", "X[v] = X[v] + A[v, vk]"),  # runs once for each update of the cell
        ("X[v // 2] = 7", "X[v // 2] = X[v // 2] + A[v, vk]"),  # meets updates of its cell by another v
        ("X[3 - v] = 0", "X[v] = X[v] + A[v, vk]"),
        ("X[v] = X[(v + 1) % 4] + 1", "X[v] = X[v] + A[v, vk]"),
        ("Z[v] = Z[v] + 1", "X[v] = X[v] + A[v, vk]"),
    ],
)
def test_fuse_is_refused_where_an_init_that_runs_earlier_meets_updates(init, update):
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), Z: T.Buffer((4,), "int32"), X: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 6):
        with T.block("X"):
            v = T.axis.spatial(4, i)
            vk = T.axis.reduce(6, k)
            with T.init():
                {init}
            {update}
""")
    sch = tir.Schedule(program)
    with pytest.raises((WouldChangeValues, NotProved)):
        sch.fuse(*sch.get_loops("X"))


def test_fuse_is_refused_where_cells_would_not_start():
    """Of a reduction in three parts, each part may be empty: a cell starts all the same."""
    m = te.var("m")
    A = te.placeholder((4, m), "int32", name="A")
    k = te.reduce_axis((0, m), name="k")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="Y")]))
    i, k = sch.get_loops("Y")
    parts, _ = sch.split(k, [3, None])
    with pytest.raises((WouldChangeValues, NotProved, NotSupported)):
        sch.fuse(i, parts)


@T.prim_func
def rows_of_a_triangle(A: T.Buffer((3,), "int32"), C: T.Buffer((3,), "int32")):
    for io, ii in T.grid(2, 1):
        for j in range(io + ii):
            with T.block("C"):
                vi = T.axis.spatial(3, io + ii)
                vj = T.axis.reduce(1, j)
                T.where(io + ii < 1)
                with T.init():
                    C[vi] = 7
                C[vi] = C[vi] + A[vj]


def test_a_row_without_iterations_keeps_the_guard_of_its_init():
    sch = tir.Schedule(rows_of_a_triangle)
    outer, inner, _ = sch.get_loops("C")
    sch.fuse(outer, inner)  # every iteration of j is behind the guard; the init of row 0 is not
    assert_same_numbers(rows_of_a_triangle, sch.mod["main"])
    given = [np.ones(3, "int32"), np.full(3, -1, "int32")]
    lw.build(sch.mod)(*given)
    np.testing.assert_array_equal(given[1], [7, -1, -1])


@pytest.mark.parametrize(
    "inner",
    [
        "for j, i in T.grid(1, 4):\n            with T.block('C'):\n                T.where(j * 4 + i < 3)",
        "for j, i in T.grid(1, 4):\n            if j + i < 3:\n              with T.block('C'):",
    ],
)
def test_a_condition_on_a_loop_beside_an_empty_reduction(inner):
    """Of the fused loop j is 0: the condition does not name the loop, which has no iterations, and guards the start."""
    program = from_source(f"""
@T.prim_func
def main(C: T.Buffer((3,), "int32")):
    for k in range(0):
        {inner}
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 7
                C[vi] = C[vi] + vk
""")
    sch = tir.Schedule(program)
    k, j, _ = sch.get_loops("C")
    sch.fuse(k, j)
    assert_same_numbers(sch.mod["main"], program)


def test_a_condition_on_the_reduction_alone_lets_it_be_fused():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((3, 0, 7), "int32"), C: T.Buffer((3,), "int32")):
    for i, k, l0, l1 in T.grid(3, 0, 2, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            vl = T.axis.reduce(7, l0 * 4 + l1)
            T.where(l0 * 4 + l1 < 7)
            with T.init():
                C[vi] = 7
            C[vi] = C[vi] + A[vi, vk, vl]
""")
    sch = tir.Schedule(program)
    _, k, l0, _ = sch.get_loops("C")
    sch.fuse(k, l0)
    check(sch, program)


def test_loops_that_may_have_negative_extents():
    """The product of two negative extents is no number of iterations."""
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((6, 6), "int32")):
    for i in range(6):
        for j, k in T.grid(i - 3, i - 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                vk = T.axis.opaque(6, k)
                C[vi, vj] = vk + 4
""")
    sch = tir.Schedule(program)
    sch.fuse(*sch.get_loops("C")[1:])
    check(sch, program)


def test_a_loop_that_no_axis_uses_is_run_over_by_the_start():
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((6,), "int32")):
    for i in range(6):
        for j, k in T.grid(i // 3, i - 4):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 7
                C[vi] = C[vi] + vk
""")
    sch = tir.Schedule(program)
    problem = "loop j may have no iterations, and block C starts a reduction all the same"
    refused(sch, NotSupported, problem, "fuse", *sch.get_loops("C")[1:])
