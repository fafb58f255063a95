"""load_early: all loads of an unrolled loop with branches come first."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te, tir
from loopwright.script import tir as T
from loopwright.transform import load_early
from tests.transform.before_after import check, unchanged


def test_all_iterations_load_before_the_first_one_computes():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for u in T.unroll(3):
            A_data = T.allocate([4], "float32", "local")
            A_lanes = T.Buffer((4,), data=A_data, scope="local")
            A_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(u * 16, 1, 4)]
            B[T.Ramp(u * 16, 1, 4)] = T.erf(A_lanes[T.Ramp(0, 1, 4)])

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        A_data = T.allocate([12], "float32", "local")
        A_lanes = T.Buffer((12,), data=A_data, scope="local")
        for u in T.unroll(3):
            A_lanes[T.Ramp(u * 4, 1, 4)] = A[T.Ramp(u * 16, 1, 4)]
        for u in T.unroll(3):
            B[T.Ramp(u * 16, 1, 4)] = T.erf(A_lanes[T.Ramp(u * 4, 1, 4)])

    check(load_early, before, after)


def test_several_operands_in_pieces():
    @T.prim_func
    def before(A: T.Buffer((64,)), C: T.Buffer((64,), "float16"), B: T.Buffer((64,))):
        for u in T.unroll(2):
            A_data = T.allocate([8], "float32", "local")
            A_lanes = T.Buffer((8,), data=A_data, scope="local")
            C_data = T.allocate([8], "float16", "local")
            C_lanes = T.Buffer((8,), "float16", data=C_data, scope="local")
            for piece in T.unroll(2):
                A_lanes[T.Ramp(piece * 4, 1, 4)] = A[T.Ramp(u * 8 + piece * 4, 1, 4)]
            C_lanes[T.Ramp(0, 1, 8)] = C[T.Ramp(u * 8, 1, 8)]
            B[T.Ramp(u * 8, 1, 8)] = A_lanes[T.Ramp(0, 1, 8)] / T.cast(C_lanes[T.Ramp(0, 1, 8)], "float32x8")

    @T.prim_func
    def after(A: T.Buffer((64,)), C: T.Buffer((64,), "float16"), B: T.Buffer((64,))):
        A_data = T.allocate([16], "float32", "local")
        A_lanes = T.Buffer((16,), data=A_data, scope="local")
        C_data = T.allocate([16], "float16", "local")
        C_lanes = T.Buffer((16,), "float16", data=C_data, scope="local")
        for u in T.unroll(2):
            for piece in T.unroll(2):
                A_lanes[T.Ramp(piece * 4 + u * 8, 1, 4)] = A[T.Ramp(u * 8 + piece * 4, 1, 4)]
            C_lanes[T.Ramp(u * 8, 1, 8)] = C[T.Ramp(u * 8, 1, 8)]
        for u in T.unroll(2):
            B[T.Ramp(u * 8, 1, 8)] = A_lanes[T.Ramp(u * 8, 1, 8)] / T.cast(C_lanes[T.Ramp(u * 8, 1, 8)], "float32x8")

    check(load_early, before, after)


def test_straight_lines_stay():
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for u in T.unroll(3):
            A_data = T.allocate([4], "float32", "local")
            A_lanes = T.Buffer((4,), data=A_data, scope="local")
            A_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(u * 16, 1, 4)]
            B[T.Ramp(u * 16, 1, 4)] = A_lanes[T.Ramp(0, 1, 4)] + A_lanes[T.Ramp(0, 1, 4)]

    unchanged(load_early, func)


def test_what_the_loop_writes_is_loaded_in_its_iteration():
    @T.prim_func
    def func(A: T.Buffer((64,))):
        for u in T.unroll(3):
            A_data = T.allocate([4], "float32", "local")
            A_lanes = T.Buffer((4,), data=A_data, scope="local")
            A_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(u * 16, 1, 4)]
            A[T.Ramp(u * 16 + 16, 1, 4)] = T.erf(A_lanes[T.Ramp(0, 1, 4)])

    unchanged(load_early, func)


def test_loops_that_are_not_unrolled_and_large_ones_stay():
    @T.prim_func
    def func(A: T.Buffer((640,)), B: T.Buffer((640,))):
        for i in range(3):
            A_data = T.allocate([4], "float32", "local")
            A_lanes = T.Buffer((4,), data=A_data, scope="local")
            A_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(i * 16, 1, 4)]
            B[T.Ramp(i * 16, 1, 4)] = T.erf(A_lanes[T.Ramp(0, 1, 4)])
        for u in T.unroll(17):
            C_data = T.allocate([4], "float32", "local")
            C_lanes = T.Buffer((4,), data=C_data, scope="local")
            C_lanes[T.Ramp(0, 1, 4)] = A[T.Ramp(u * 16, 1, 4)]
            B[T.Ramp(u * 16, 1, 4)] = T.erf(C_lanes[T.Ramp(0, 1, 4)])

    unchanged(load_early, func)


def test_kernels_with_guards_and_without_compute_the_same():
    n = 256 * 4 * 16 * 8 * 4 + 5
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] / (tir.exp(A[i]) + 1.5), name="B")
    module = lw.build([A, B], target="cuda -model=emulated", autosched=True)
    assert "float A_lanes[16];" in module.get_source()
    a, b = np.random.default_rng(0).standard_normal(n).astype("float32"), np.zeros(n, "float32")
    module(a, b)
    np.testing.assert_allclose(b, a / (np.exp(a) + 1.5), rtol=1e-5)
