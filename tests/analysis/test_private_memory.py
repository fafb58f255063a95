"""private_memory: which buffers may be those of each iteration of a parallel loop, and which may not."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.analysis import ParallelRace, check_races
from loopwright.analysis.races import privatised
from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.ir import Allocate, For, ForKind, Rewriter
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import WouldRace
from loopwright.script import tir as T
from tests.schedule.steps import same_program


@T.prim_func
def halo(A: T.Buffer((10,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((10,))
    for i in T.parallel(8):
        for j in range(3):
            with T.block("B"):
                v = T.axis.spatial(10, i + j)
                B[v] = A[v] + 1.0
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] + B[v + 1] + B[v + 2]


@T.prim_func
def halo_private(A: T.Buffer((10,)), C: T.Buffer((8,))):
    for i in T.parallel(8):
        B = T.decl_buffer((10,))
        for j in range(3):
            with T.block("B"):
                v = T.axis.spatial(10, i + j)
                B[v] = A[v] + 1.0
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] + B[v + 1] + B[v + 2]


class _Serial(Rewriter):
    def visit_For(self, loop):
        return loop.with_(kind=ForKind.SERIAL, body=self.visit(loop.body))


def test_text():
    assert privatised(halo_private) is halo_private
    same_program(privatised(halo), halo_private)


def test_it_runs_alike():
    after = privatised(halo)
    verify(after)
    assert difference(evaluate_terms(_Serial().visit(halo)), evaluate_terms(after, check_races=True)) is None
    a, c = np.arange(10, dtype="float32"), np.zeros(8, "float32")
    lw.build(halo)(a, c)
    np.testing.assert_array_equal(c, [3 * k + 6 for k in range(8)])
    # Of the buffer, an iteration needs three elements.
    sizes: list[object] = []

    def look(node):
        if isinstance(node, Allocate):
            sizes.append([int(extent) for extent in node.extents])

    tir.stmt_functor.post_order_visit(lw.lower(halo)["halo"].body, look)
    assert sizes == [[3]]


def test_a_schedule_takes_it():
    check_races(halo)
    sch = tir.Schedule(halo)
    assert sch.is_proved
    same_program(sch.mod["main"], halo)  # where memory is allocated is worked out when the program is lowered


def test_steps_under_the_loop_are_proved():
    A = te.placeholder((18, 20), name="A")
    B = te.compute((18, 20), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((16, 20), lambda i, j: B[i, j] + B[i + 1, j] + B[i + 2, j], name="C")
    before = te.create_prim_func([A, C])
    sch = tir.Schedule(before)
    outer, _ = sch.split(sch.get_loops("C")[0], [4, 4])
    sch.compute_at("B", outer)
    sch.parallel(outer)
    again = tir.Schedule(before)
    outer, _ = again.split(again.get_loops("C")[0], [4, 4])
    again.parallel(outer)
    again.compute_at("B", outer)  # in either order
    same_program(sch.mod["main"], again.mod["main"])
    a = np.random.default_rng(0).random((18, 20), "float32")
    results = [np.zeros((16, 20), "float32") for _ in range(2)]
    evaluate(before, a, results[0])
    lw.build(sch.mod)(a, results[1])
    np.testing.assert_array_equal(*results)


def test_sums_in_private_memory():
    @T.prim_func
    def sums(A: T.Buffer((8, 16)), C: T.Buffer((8,))):
        S = T.alloc_buffer((1,))
        for i in T.parallel(8):
            for k in range(16):
                with T.block("S"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        S[0] = T.float32(0)
                    S[0] = S[0] + A[vi, vk]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = S[0]

    tir.Schedule(sums)
    a, c = np.random.default_rng(1).integers(0, 9, (8, 16)).astype("float32"), np.zeros(8, "float32")
    lw.build(sums)(a, c)
    np.testing.assert_array_equal(c, a.sum(1))


def test_an_allocation_of_an_inner_block():
    @T.prim_func
    def inner(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for b in range(4):
            with T.block("outer"):
                vb = T.axis.spatial(4, b)
                S = T.alloc_buffer((2,))
                for i in T.parallel(8):
                    with T.block("S"):
                        vi = T.axis.spatial(8, i)
                        S[1] = A[vb, vi] * 2.0
                    with T.block("C"):
                        vi = T.axis.spatial(8, i)
                        C[vb, vi] = S[1]

    a, c = np.random.default_rng(1).random((4, 8), "float32"), np.zeros((4, 8), "float32")
    lw.build(inner)(a, c)
    np.testing.assert_array_equal(c, a * 2)


# --- what must stay a race ----------------------------------------------------------------------------------------


@T.prim_func
def carried(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((1,))
    for i in T.parallel(8):
        with T.block("first"):
            v = T.axis.spatial(8, i)
            T.where(i == 0)
            B[0] = A[v]
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[0] + A[v]


@T.prim_func
def read_before_written(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((9,))
    for i in T.parallel(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.if_then_else(v > 0, B[v], T.float32(0)) + A[v]
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v + 1] = A[v]


@T.prim_func
def used_outside(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((1,))):
    B = T.alloc_buffer((1,))
    for i in T.parallel(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[0] = A[v]
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[0]
    with T.block("D"):
        D[0] = B[0]


@T.prim_func
def an_argument(A: T.Buffer((8,)), B: T.Buffer((1,)), C: T.Buffer((8,))):
    for i in T.parallel(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[0] = A[v]
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[0]


@T.prim_func
def one_sum_for_all(A: T.Buffer((8,)), C: T.Buffer((8,))):
    S = T.alloc_buffer((1,))
    for i in T.parallel(8):
        with T.block("S"):
            v = T.axis.reduce(8, i)
            with T.init():
                S[0] = T.float32(0)
            S[0] = S[0] + A[v]
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = S[0]


@T.prim_func
def carried_by_the_loop_around(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
    B = T.alloc_buffer((1,))
    for t in range(4):
        for i in T.parallel(8):
            with T.block("C"):
                vt, v = T.axis.remap("SS", [t, i])
                C[vt, v] = T.if_then_else(vt > 0, B[0], T.float32(0))
            with T.block("B"):
                vt, v = T.axis.remap("SS", [t, i])
                B[0] = A[vt, v]


@pytest.mark.parametrize(
    "function",
    [carried, read_before_written, used_outside, an_argument, one_sum_for_all, carried_by_the_loop_around],
    ids=lambda function: function.name,
)
def test_values_that_leave_their_iteration_race(function):
    assert privatised(function) is function
    with pytest.raises(ParallelRace, match="both touch"):
        check_races(function)
    with pytest.raises(WouldRace):
        tir.Schedule(function)
    serial = tir.Schedule(_Serial().visit(function))
    loop = next(var for var, path in serial.view().index.loops.items() if isinstance(path[-1], For) and var.name == "i")
    with pytest.raises(WouldRace):
        serial.parallel(serial.get_loops("C")[-1])
    assert loop.name == "i"


def test_only_some_cells_are_written_in_each_iteration():
    @T.prim_func
    def partly(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((2,))
        for i in T.parallel(8):
            with T.block("zero"):
                B[0] = T.float32(0)
            with T.block("one"):
                v = T.axis.spatial(8, i)
                T.where(i % 2 == 0)
                B[1] = A[v]
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = B[0] + B[1]

    with pytest.raises(ParallelRace):
        check_races(partly)


def test_memory_that_comes_to_be_used_outside_is_judged_again():
    @T.prim_func
    def two(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        X = T.alloc_buffer((8,))
        for i in T.parallel(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[0] = A[v]
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = B[0]
        for i in range(8):
            with T.block("X"):
                v = T.axis.spatial(8, i)
                X[v] = A[v] * 2.0
        for i in range(8):
            with T.block("D"):
                v = T.axis.spatial(8, i)
                D[v] = X[v]

    sch = tir.Schedule(two)
    with pytest.raises(WouldRace, match="reuse_buffer"):
        sch.reuse_buffer("X", "X", "B")


def test_parallel_loops_in_each_other():
    @T.prim_func
    def cells(A: T.Buffer((2, 3), "int32")):
        X = T.alloc_buffer((1,), "int32")
        for i in T.parallel(2):
            for j in T.parallel(3):
                X[0] = i * 3 + j
                A[i, j] = X[0]

    check_races(cells)
    found = np.zeros((2, 3), "int32")
    lw.build(cells)(found)
    assert found.ravel().tolist() == list(range(6))
