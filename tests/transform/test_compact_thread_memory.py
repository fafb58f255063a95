"""compact_thread_memory: rows that threads share out become arrays of the parts of one thread."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.ir import assert_structural_equal
from loopwright.script import tir as T
from loopwright.transform import compact_thread_memory, launch_threads, lower_blocks, write_allocations
from loopwright.transform.passes.simplify import simplify


def launched(function):
    return launch_threads(lower_blocks(write_allocations(function)))


def assert_becomes(function, expected):
    got, wanted = [
        simplify(result).without_attr("global_symbol")
        for result in (compact_thread_memory(launched(function)), launched(expected))
    ]
    assert_structural_equal(got, wanted)


def test_the_digit_of_the_thread_is_dropped():
    @T.prim_func
    def copied(A: T.Buffer(1000), B: T.Buffer(1000)):
        L = T.decl_buffer((1000,), scope="local")
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for k in range(4):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    for v in range(4):
                        if (k * 64 + tx) * 4 + v < 1000:
                            L[(k * 64 + tx) * 4 + v] = A[(k * 64 + tx) * 4 + v]
            for k in range(4):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    for v in range(4):
                        if (k * 64 + tx) * 4 + v < 1000:
                            B[(k * 64 + tx) * 4 + v] = L[(k * 64 + tx) * 4 + v]

    @T.prim_func
    def expected(A: T.Buffer(1000), B: T.Buffer(1000)):
        L = T.decl_buffer((16,), scope="local")
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for k in range(4):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    for v in range(4):
                        if (k * 64 + tx) * 4 + v < 1000:
                            L[k * 4 + v] = A[(k * 64 + tx) * 4 + v]
            for k in range(4):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    for v in range(4):
                        if (k * 64 + tx) * 4 + v < 1000:
                            B[(k * 64 + tx) * 4 + v] = L[k * 4 + v]

    assert_becomes(copied, expected)


def test_two_axes_of_threads_are_two_digits():
    @T.prim_func
    def copied(A: T.Buffer(96), B: T.Buffer(96)):
        L = T.decl_buffer((96,), scope="local")
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                for k in range(3):
                    L[k * 32 + ty * 8 + tx] = A[k * 32 + ty * 8 + tx]
                for k in range(3):
                    B[k * 32 + ty * 8 + tx] = L[k * 32 + ty * 8 + tx]

    @T.prim_func
    def expected(A: T.Buffer(96), B: T.Buffer(96)):
        L = T.decl_buffer((3,), scope="local")
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                for k in range(3):
                    L[k] = A[k * 32 + ty * 8 + tx]
                for k in range(3):
                    B[k * 32 + ty * 8 + tx] = L[k]

    assert_becomes(copied, expected)


@pytest.mark.parametrize(("weight", "offset"), [(2, 0), (4, 1), (4, 3)])
def test_digits_that_overlap_stay(weight, offset):
    """With a weight of 2 for four neighbours, or from an odd start, cells of a thread lie on both sides of a carry."""

    @T.prim_func
    def copied(A: T.Buffer(40), B: T.Buffer(32)):
        L = T.decl_buffer((40,), scope="local")
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            for v in range(4):
                L[tx * weight + v + offset] = A[tx * weight + v + offset]
            for v in range(4):
                B[tx * 4 + v] = L[tx * weight + v + offset]

    before = launched(copied)
    assert compact_thread_memory(before) is before


@pytest.mark.parametrize("length", [1, 63, 64, 65, 255, 257, 1000])
def test_rows_of_any_length(length):
    @T.prim_func
    def shifted(A: T.Buffer((3, length), "int32"), B: T.Buffer((3, length), "int32")):
        L = T.decl_buffer((3, length), "int32", scope="local")
        for bx in T.thread_binding(3, thread="blockIdx.x"):
            for k in range((length + 63) // 64):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    if k * 64 + tx < length:
                        L[bx, k * 64 + tx] = A[bx, k * 64 + tx]
            for k in range((length + 63) // 64):
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    if k * 64 + tx < length:
                        B[bx, k * 64 + tx] = L[bx, k * 64 + tx] + 1

    module = lw.build(shifted, target="cuda -model=emulated")
    assert f"L[{(length + 63) // 64}]" in module.get_source() or length <= 64
    a, b = np.arange(3 * length, dtype="int32").reshape(3, length), np.zeros((3, length), "int32")
    module(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_a_block_number_taken_apart_is_no_digit_of_the_thread():
    @T.prim_func
    def copied(A: T.Buffer((64, 64)), B: T.Buffer((64, 64))):
        L = T.decl_buffer((64, 64), scope="local")
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(32):
                    L[b // 2 * 32 + i, b % 2 * 32 + tx] = A[b // 2 * 32 + i, b % 2 * 32 + tx]
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(32):
                    B[b // 2 * 32 + i, b % 2 * 32 + tx] = L[b // 2 * 32 + i, b % 2 * 32 + tx]

    @T.prim_func
    def expected(A: T.Buffer((64, 64)), B: T.Buffer((64, 64))):
        L = T.decl_buffer((64, 2), scope="local")
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(32):
                    L[b // 2 * 32 + i, b % 2] = A[b // 2 * 32 + i, b % 2 * 32 + tx]
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(32):
                    B[b // 2 * 32 + i, b % 2 * 32 + tx] = L[b // 2 * 32 + i, b % 2]

    assert_becomes(copied, expected)
