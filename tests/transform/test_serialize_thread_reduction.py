"""serialize_thread_reduction: reductions over threads as loops with barriers."""

from __future__ import annotations

import numpy as np

from loopwright.analysis import check_program
from loopwright.evaluator import evaluate
from loopwright.ir import structural_equal
from loopwright.script import tir as T
from loopwright.transform import serialize_thread_reduction, write_inits


@T.prim_func
def total(A: T.Buffer((4, 3)), B: T.Buffer(1)):
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for k in range(3):
            with T.block("B"):
                v = T.axis.reduce(12, tx * 3 + k)
                B[0] = B[0] + A[v // 3, v % 3]


def test_text():
    @T.prim_func
    def expected(A: T.Buffer((4, 3)), B: T.Buffer(1)):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for turn in range(4):
                T.tvm_storage_sync("shared")
                if tx == turn:
                    for k in range(3):
                        with T.block("B"):
                            v = T.axis.reduce(12, tx * 3 + k)
                            B[0] = B[0] + A[v // 3, v % 3]
            T.tvm_storage_sync("shared")

    assert structural_equal(serialize_thread_reduction(total).with_attr("global_symbol", "expected"), expected)


def test_same_numbers():
    a = np.arange(12, dtype="float32").reshape(4, 3)
    for func in (total, serialize_thread_reduction(total)):
        check_program(func)
        b = np.ones(1, "float32")
        evaluate(func, a, b)
        assert b[0] == 67


def test_two_axes_and_one_bound_again():
    @T.prim_func
    def func(A: T.Buffer((2, 3, 4)), B: T.Buffer(2)):
        for ty in T.thread_binding(2, thread="threadIdx.y"):
            for _tx in T.thread_binding(3, thread="threadIdx.x"):
                for k in range(4):
                    for u in T.thread_binding(3, thread="threadIdx.x"):
                        with T.block("B"):
                            vy = T.axis.spatial(2, ty)
                            vx, vk = T.axis.remap("RR", [u, k])
                            B[vy] = B[vy] + A[vy, vx, vk]

    a = np.arange(24, dtype="float32").reshape(2, 3, 4)
    for form in (func, serialize_thread_reduction(func)):
        check_program(form)
        b = np.zeros(2, "float32")
        evaluate(form, a, b)
        np.testing.assert_array_equal(b, a.sum((1, 2)))


def test_a_data_axis_takes_no_turns():
    @T.prim_func
    def func(A: T.Buffer((4, 3)), B: T.Buffer(4)):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for k in range(3):
                with T.block("B"):
                    v, vk = T.axis.remap("SR", [tx, k])
                    with T.init():
                        B[v] = T.float32(0)
                    B[v] = B[v] + A[v, vk]

    written = write_inits(func)
    assert serialize_thread_reduction(written) is written


def test_no_threads():
    @T.prim_func
    def func(B: T.Buffer(4)):
        for i in range(4):
            B[i] = T.float32(0)

    assert serialize_thread_reduction(func) is func
