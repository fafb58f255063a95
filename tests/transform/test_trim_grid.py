"""trim_grid: dimensions of the grid end where no block would store anything."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.script import tir as T
from loopwright.transform import trim_grid
from tests.transform.before_after import check, unchanged


def test_a_grid_ends_where_the_stores_do():
    @T.prim_func
    def before(B: T.Buffer((4096,)), n: T.int32):
        y = T.launch_thread("blockIdx.y", 32)
        t = T.launch_thread("threadIdx.x", 64)
        L_data = T.allocate([64], "float32", "local")
        L = T.Buffer((64,), data=L_data, scope="local")
        L[0] = T.float32(1)
        if y * 64 + t + 8 < n:
            B[y * 64 + t] = L[0]
        else:
            for i in range(3):
                if y * 64 + i + t < n and t < 9:
                    B[y * 64 + t] = T.float32(2)

    @T.prim_func
    def after(B: T.Buffer((4096,)), n: T.int32):
        needed = T.meta_var((T.cast(n, "int64") + T.int64(63)) // T.int64(64))
        y = T.launch_thread("blockIdx.y", T.cast(T.min(T.max(needed, T.int64(0)), T.int64(32)), "int32"))
        t = T.launch_thread("threadIdx.x", 64)
        L_data = T.allocate([64], "float32", "local")
        L = T.Buffer((64,), data=L_data, scope="local")
        L[0] = T.float32(1)
        if y * 64 + t + 8 < n:
            B[y * 64 + t] = L[0]
        else:
            for i in range(3):
                if y * 64 + i + t < n and t < 9:
                    B[y * 64 + t] = T.float32(2)

    check(trim_grid, before, after)


def test_several_bounds_and_the_numbers_that_they_are():
    @T.prim_func
    def before(B: T.Buffer((4096,)), C: T.Buffer((4096,))):
        y = T.launch_thread("blockIdx.x", 32)
        t = T.launch_thread("threadIdx.x", 64)
        if y * 64 + t <= 128:
            B[y * 64 + t] = T.float32(1)
        if y * 2 + t < 9:
            C[y * 64 + t] = T.float32(2)

    @T.prim_func
    def after(B: T.Buffer((4096,)), C: T.Buffer((4096,))):
        y = T.launch_thread("blockIdx.x", 5)
        t = T.launch_thread("threadIdx.x", 64)
        if y * 64 + t <= 128:
            B[y * 64 + t] = T.float32(1)
        if y * 2 + t < 9:
            C[y * 64 + t] = T.float32(2)

    check(trim_grid, before, after)


def test_grids_whose_blocks_all_have_work_stay():
    @T.prim_func
    def exact(B: T.Buffer((4096,))):
        y = T.launch_thread("blockIdx.x", 3)
        t = T.launch_thread("threadIdx.x", 64)
        if y * 64 + t < 150:
            B[y * 64 + t] = T.float32(1)

    @T.prim_func
    def one_store_is_free(B: T.Buffer((4096,)), C: T.Buffer((4096,)), n: T.int32):
        y = T.launch_thread("blockIdx.x", 32)
        if y < n:
            B[y] = T.float32(1)
        C[y] = T.float32(1)

    @T.prim_func
    def a_sum_that_goes_down(B: T.Buffer((4096,)), n: T.int32):
        y = T.launch_thread("blockIdx.x", 32)
        t = T.launch_thread("threadIdx.x", 64)
        if y * 64 - t < n:
            B[y * 64 + t] = T.float32(1)

    @T.prim_func
    def data_decides(B: T.Buffer((4096,)), N: T.Buffer((1,), "int32")):
        y = T.launch_thread("blockIdx.x", 32)
        if y < N[0]:
            B[y] = T.float32(1)

    @T.prim_func
    def something_is_checked(B: T.Buffer((4096,)), n: T.int32):
        y = T.launch_thread("blockIdx.x", 32)
        assert y < n + 1, "too few"
        if y < n:
            B[y] = T.float32(1)

    for func in (exact, one_store_is_free, a_sum_that_goes_down, data_decides, something_is_checked):
        unchanged(trim_grid, func)


@pytest.mark.parametrize("n", [-5, 0, 1, 64, 65, 5000])
def test_the_host_counts_blocks(n):
    @T.prim_func
    def fill(B: T.Buffer((4096,)), n: T.int32):
        for y in T.thread_binding(64, thread="blockIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                if y * 64 + t < n:
                    B[y * 64 + t] = T.float32(1)

    b = np.zeros(4096, "float32")
    lw.build(fill, target="cuda -model=emulated")(b, n)
    np.testing.assert_array_equal(b, np.arange(4096) < n)
