"""merge: nests side by side become one."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument, NotProved, NotSupported, WouldChangeValues, WouldRace
from loopwright.schedule.proof.buffer_scopes import LeavesScope
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, refused, same_program


@T.prim_func
def two_loops(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(6)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0
    for j in range(6):
        with T.block("C"):
            vj = T.axis.spatial(6, j)
            C[vj] = B[vj] * 2.0


def test_merge_guards_the_shorter_loop():
    sch = tir.Schedule(two_loops)
    loop = sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(6)):
        for i_m in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i_m)
                B[vi] = A[vi] + 1.0
            with T.block("C"):
                vj = T.axis.spatial(6, i_m)
                T.where(i_m < 6)
                C[vj] = B[vj] * 2.0

    check(sch, two_loops, expected)
    assert loop.name == "i_m"
    assert [handle.name for handle in sch.get_child_blocks(loop)] == ["B", "C"]


def test_merge_guards_the_first_loop_where_it_is_the_shorter():
    A = te.placeholder((3,), name="A")
    B = te.compute((3,), lambda i: A[i] + 1, name="B")
    D = te.compute((5,), lambda i: A[i % 3] * 2, name="D")
    func = te.create_prim_func([A, B, D])
    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("D")[0])
    check(sch, func)


def test_merge_refuses_a_reversed_reader_with_the_witness():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[7 - vi] + 1.0

    sch = tir.Schedule(func)
    error = refused(
        sch, WouldChangeValues, "merge would change a value", "merge", sch.get_loops("B")[0], sch.get_loops("C")[0]
    )
    for part in ("C", "B[7]"):
        assert part in error.why


def test_merge_the_m_loops_of_both_matmuls():
    func = chain(4, 5, 3, 2)
    sch = tir.Schedule(func)
    loop = sch.merge(*[sch.get_loops(name)[0] for name in "DEF"])
    assert loop.name == "m_m"
    assert [handle.name for handle in sch.get_child_blocks(loop)] == ["D", "E", "F"]
    check(sch, func)
    l_D, l_E = sch.get_loops("D")[1], sch.get_loops("E")[1]
    sch.merge(l_D, l_E)
    check(sch, func)
    sch.parallel(loop)
    check(sch, func)


@pytest.mark.parametrize("shape", [(4, 6), (5, 7), (1, 1), (3, 2)])
def test_merge_exp_into_the_tile_of_the_first_matmul(shape):
    func = chain(shape[0], shape[1], 3, 2)
    sch = tir.Schedule(func)
    m, l, k = sch.get_loops("D")
    m0, m1 = sch.split(m, [None, 2])
    l0, l1 = sch.split(l, [None, 3])
    sch.reorder(m0, l0, k, m1, l1)
    em, el = sch.get_loops("E")
    em0, em1 = sch.split(em, [None, 2])
    el0, el1 = sch.split(el, [None, 3])
    sch.reorder(em0, el0, em1, el1)
    tile = sch.merge(l0, el0)
    assert tile.name == "l_0_m"
    assert [loop.name for loop in sch.get_loops("E")][:2] == ["m_0_m", "l_0_m"]
    check(sch, func)


def test_merge_refuses_the_reduction_loop_with_its_reader():
    sch = tir.Schedule(chain())
    m = sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    assert m
    sch.merge(sch.get_loops("D")[1], sch.get_loops("E")[1])
    sch.add_unit_loop(sch.get_block("E"))
    k, u = sch.get_loops("D")[-1], sch.get_loops("E")[-1]
    refused(sch, WouldChangeValues, "merge would change a value", "merge", k, u)


def test_merge_moves_what_stands_between():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8), X: T.Buffer(8), Y: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0
        for i in range(8):
            with T.block("X"):
                vi = T.axis.spatial(8, i)
                X[vi] = A[7 - vi]
        for i in range(8):
            with T.block("Y"):
                vi = T.axis.spatial(8, i)
                Y[vi] = B[7 - vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + X[7 - vi]

    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    assert sch.view().block_names() == ["root", "X", "B", "C", "Y"]
    check(sch, func)


def test_merge_refuses_what_stands_between_and_is_needed_on_both_sides():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8), X: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0
        for i in range(8):
            with T.block("X"):
                vi = T.axis.spatial(8, i)
                X[vi] = B[7 - vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = X[vi]

    sch = tir.Schedule(func)
    loops = sch.get_loops("B")[0], sch.get_loops("C")[0]
    refused(sch, WouldChangeValues, "merge would change a value", "merge", *loops)


def test_merge_triangles_and_shifted_loops():
    @T.prim_func
    def func(A: T.Buffer((6, 6)), B: T.Buffer((6, 6)), C: T.Buffer((6, 6))):
        for i in range(1, 6):
            for j in range(i):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + 1.0
        for i in range(1, 6):
            for j in range(3):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] * 2.0

    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("B")[1], sch.get_loops("C")[1])
    check(sch, func)


def test_merge_symbolic_extents():
    @T.prim_func
    def func(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (m,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + 1.0
        for i in range(m):
            with T.block("C"):
                vi = T.axis.spatial(m, i)
                C[vi] = 2.0

    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (m,))
        for i in range(T.max(n, m)):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                T.where(i < n)
                B[vi] = A[vi] + 1.0
            with T.block("C"):
                vi = T.axis.spatial(m, i)
                T.where(i < m)
                C[vi] = 2.0

    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    same_program(sch.mod["main"], expected)


def test_merge_parallel_loops_proves_the_race_again():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(9), C: T.Buffer(8)):
        for i in T.parallel(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0
        for i in T.parallel(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[T.max(vi - 1, 0)]

    sch = tir.Schedule(func)
    loops = sch.get_loops("B")[0], sch.get_loops("C")[0]
    refused(sch, WouldRace, "merge: loop i_m: iterations that run at the same time", "merge", *loops)


def test_merge_refuses():
    sch = tir.Schedule(chain())
    d, e, f = [sch.get_loops(name) for name in "DEF"]
    refused(sch, BadStepArgument, "1 loop is given", "merge", d[0])
    refused(sch, BadStepArgument, "named twice among m, m", "merge", d[0], d[0])
    refused(sch, NotSupported, "loop l is inside loop m", "merge", d[0], d[1])
    refused(sch, NotSupported, "loop m is 1 deep in its nest, loop l is 2 deep", "merge", d[0], e[1])
    sch.unroll(e[0])
    refused(sch, NotSupported, "loop m is serial and loop m unrolled", "merge", d[0], e[0])
    sch.annotate(f[0], "note", 1)
    refused(sch, NotSupported, "loop m carries annotations", "merge", d[0], f[0])


def test_merge_refuses_loops_that_start_apart():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for j in range(1, 8):
            with T.block("C"):
                vi = T.axis.spatial(8, j)
                C[vi] = A[vi]

    sch = tir.Schedule(func)
    loops = sch.get_loops("B")[0], sch.get_loops("C")[0]
    refused(sch, NotSupported, "loop i starts at 0, loop j at 1", "merge", *loops)


def test_merge_refuses_a_loop_with_statements_beside_it():
    func = chain()
    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    d, f = sch.get_loops("D"), sch.get_loops("F")
    refused(sch, NotSupported, "loop l is not the only statement in the nest around it", "merge", d[1], f[1])


@T.prim_func
def sum_and_use(A: T.Buffer((1, 3), "int32"), C: T.Buffer((1,), "int32"), E: T.Buffer((2,), "int32")):
    S = T.alloc_buffer((1,), "int32")
    for _i in range(1):
        for k in range(3):
            with T.block("S"):
                vi = T.axis.spatial(1, 0)
                vk = T.axis.reduce(3, k)
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + A[vi, vk]
        with T.block("C"):
            vi = T.axis.spatial(1, 0)
            C[vi] = S[vi] * 3
    for j in range(2):
        with T.block("E"):
            vj = T.axis.spatial(2, j)
            E[vj] = C[0] + vj


def test_a_repeated_sum_starts_anew_in_its_own_memory():
    """The longer loop repeats S[0], and S lives inside it: each iteration has a sum of its own."""
    sch = tir.Schedule(sum_and_use)
    sch.sink_alloc("C", "S")
    sch.merge(sch.get_loops("C")[0], sch.get_loops("E")[0])
    check(sch, sum_and_use)


@T.prim_func
def best_and_use(
    A: T.Buffer((1, 3), "int32"), I: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32"), E: T.Buffer((2,), "int32")
):
    for _i in range(1):
        V = T.decl_buffer((1,), "int32")
        for k in range(3):
            with T.block("V"):
                vi = T.axis.spatial(1, 0)
                vk = T.axis.reduce(3, k)
                with T.init():
                    I[vi] = -1
                    V[vi] = -1000
                x: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
                y: T.int32 = T.max(V[vi], A[vi, vk])
                I[vi] = x
                V[vi] = y
        with T.block("C"):
            vi = T.axis.spatial(1, 0)
            C[vi] = V[vi] * 3
    for j in range(2):
        with T.block("E"):
            vj = T.axis.spatial(2, j)
            E[vj] = C[0] + vj


def test_merge_refuses_to_start_a_reduction_outside_its_memory(with_suggestions):
    # The longer loop repeats I[0], so both start values would be written before the loop, and V lives inside.
    sch = tir.Schedule(best_and_use)
    loops = [sch.get_loops("C")[0], sch.get_loops("E")[0]]
    refused(sch, LeavesScope, "merge would move a use of V out of the scope where V lives", "merge", *loops)


@T.prim_func
def reduced_rows(A: T.Buffer((2, 1), "int32"), C: T.Buffer((1,), "int32")):
    B = T.alloc_buffer((2,), "int32")
    for r, i in T.grid(1, 2):
        with T.block("B"):
            vr, vi = T.axis.remap("RS", [r, i])
            with T.init():
                B[vi] = -100
            B[vi] = T.max(B[vi], A[vi, vr])
    for i in range(1):
        with T.block("C"):
            vi = T.axis.spatial(1, i)
            C[vi] = B[0] * 3


def test_merge_keeps_start_values_first_in_cells_that_nobody_reads(with_suggestions):
    # B[1] would be updated at i_init_m = 0 and set at i_init_m = 1. C reads B[0] alone.
    sch = tir.Schedule(reduced_rows)
    sch.decompose_reduction("B", sch.get_loops("B")[0])
    loops = [sch.get_loops("B_init")[0], sch.get_loops("B_update")[0]]
    error = refused(sch, NotProved, "could not be proved", "merge", *loops)
    assert error.why == "cells of B would be updated before they get their start value"


@T.prim_func
def two_reductions(A: T.Buffer((2, 3), "int32"), B: T.Buffer((2, 3), "int32"), C: T.Buffer(2, "int32")):
    for i, j in T.grid(2, 3):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vj]
    for i, j in T.grid(2, 3):
        with T.block("gain"):
            vi, vj = T.axis.remap("SR", [i, j])
            C[vi] = C[vi] + C[vi] * B[vi, vj]


def test_a_sum_whose_operand_loads_its_cell_is_another_reduction():
    sch = tir.Schedule(two_reductions)
    sch.merge(sch.get_loops("sum")[0], sch.get_loops("gain")[0])
    why = r"iteration \(vi=0, vj=1\) of sum reads C\[0\] after iteration \(vi=0, vj=0\) of gain has overwritten"
    loops = sch.get_loops("sum")[1], sch.get_loops("gain")[1]
    error = refused(sch, WouldChangeValues, why, "merge", *loops)
    assert "blocks sum and gain run over reduction axes, but their updates of C do not commute" in str(error)
    check(sch, two_reductions)


def test_two_sums_of_one_cell_merge():
    @T.prim_func
    def sums(A: T.Buffer((2, 3), "int32"), B: T.Buffer((2, 3), "int32"), C: T.Buffer(2, "int32")):
        for i, j in T.grid(2, 3):
            with T.block("plus"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vj]
        for i, j in T.grid(2, 3):
            with T.block("minus"):
                vi, vj = T.axis.remap("SR", [i, j])
                C[vi] = C[vi] - B[vi, vj]

    sch = tir.Schedule(sums)
    sch.merge(sch.get_loops("plus")[1], sch.get_loops("minus")[1])
    check(sch, sums)
