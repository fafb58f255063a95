"""A vectorized loop whose guard cuts lanes at run time: whole vectors, shorter ones, and the rest one by one."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.evaluator import evaluate
from loopwright.ir import For, ForKind, IntImm, collect_statements, pre_order_visit
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import lower, partition_loops
from tests.transform.before_after import ARM, PLAIN, same_native, same_program, same_results

AVX512 = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512")
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 37, 64, 97]


def vector_widths(func) -> set[int]:
    found = set()

    def look(node):
        if isinstance(node, For) and node.kind is ForKind.VECTORIZED:
            found.add(node.extent.value)

    pre_order_visit(func.body, look)
    return found


@T.prim_func
def tiles(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range((n + 15) // 16):
        for j in T.vectorized(16):
            if i * 16 + j < n:
                B[i * 16 + j] = A[i * 16 + j] + T.float32(1)


@T.prim_func
def parallel_tiles(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, n))
    B = T.match_buffer(b, (n, n))
    for i_0 in T.parallel((n + 3) // 4):
        for i in range((n + 15) // 16):
            for j_0 in range(4):
                for j in T.vectorized(16):
                    if i_0 * 4 + j_0 < n and i * 16 + j < n:
                        B[i_0 * 4 + j_0, i * 16 + j] = A[i_0 * 4 + j_0, i * 16 + j] + T.float32(1)


@T.prim_func
def part(A: T.Buffer((64,), "int8"), B: T.Buffer((64,), "int32"), n: T.int32):
    for j in T.vectorized(64):
        if j < n:
            B[j] = T.Cast("int32", A[j]) + 1


def test_whole_vectors_then_short_ones_then_the_rest():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,)), n: T.int32):
        for j in T.vectorized(8):
            if j < n:
                B[j] = A[j]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,)), n: T.int32):
        for j_vector in range(T.min(T.max(n, 0), 8) // 4):
            for j in T.vectorized(4):
                B[j_vector * 4 + j] = A[j_vector * 4 + j]
        for j in range(T.min(T.max(n, 0), 8) - T.min(T.max(n, 0), 8) // 4 * 4):
            B[j + T.min(T.max(n, 0), 8) // 4 * 4] = A[j + T.min(T.max(n, 0), 8) // 4 * 4]

    with ARM:
        got = partition_loops(before)
    same_program(got, after)
    same_results(before, got)
    same_native(before, after)


def test_each_machine_has_its_own_widths():
    for target, widths in ((ARM, {16, 4}), (PLAIN, {16, 4}), (AVX512, {16, 4})):
        with target:
            assert vector_widths(partition_loops(tiles)) == widths
    for target, widths in ((ARM, {4}), (AVX512, {16, 4})):
        with target:
            assert vector_widths(partition_loops(part)) == widths


@pytest.mark.parametrize("func", [tiles, parallel_tiles], ids=lambda func: func.name)
def test_every_size(func):
    built = loopwright.build(func)
    lowered = {target: lower(func, target)[func.name] for target in (PLAIN, AVX512)}
    for n in SIZES:
        shape = (n,) * len(func.argument_buffers()[0].shape)
        a = np.random.default_rng(n).random(shape, "float32")
        b = np.zeros(shape, "float32")
        built(a, b)
        np.testing.assert_array_equal(b, a + np.float32(1))
        if n <= 17 or func is tiles:
            for each in lowered.values():
                b = np.zeros(shape, "float32")
                evaluate(each, a, b)
                np.testing.assert_array_equal(b, a + np.float32(1))


@pytest.mark.parametrize("n", [-1, 0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 63, 64, 65])
def test_a_guard_that_is_not_the_end_of_the_buffer(n):
    a = np.arange(64, dtype="int8")
    wanted = np.where(np.arange(64) < n, a.astype("int32") + 1, 0)
    for run in (loopwright.build(part), lambda *given: evaluate(lower(part, AVX512)["part"], *given)):
        b = np.zeros(64, "int32")
        run(a, b, n)
        np.testing.assert_array_equal(b, wanted)


def test_lanes_that_read_each_other_stay_together():
    @T.prim_func
    def func(A: T.Buffer((16,)), n: T.int32):
        for j in T.vectorized(8):
            if j < n:
                A[j] = A[j + 1]

    got = partition_loops(func)
    assert not vector_widths(got)
    same_results(func, got)
    same_native(func, got)


@T.prim_func
def bordered(A: T.Buffer((8, 8, 8, 24)), B: T.Buffer((8, 8, 8, 24))):
    for x, y, z in T.grid(8, 8, 8):
        for i in T.unroll(2):
            for j in T.vectorized(16):
                if i * 16 + j < 24:
                    B[x, y, z, i * 16 + j] = (
                        T.if_then_else(1 <= x and x < 7, A[x, y, z, i * 16 + j], T.float32(0))
                        + T.if_then_else(1 <= y and y < 7, A[x, y, z, i * 16 + j], T.float32(0))
                        + T.if_then_else(1 <= z and z < 7, A[x, y, z, i * 16 + j], T.float32(0))
                    )


def test_a_row_of_vectors_is_cut_however_many_copies_there_are():
    """Its vectors are written out one by one in any case: cut, the last one is a short vector, not a loop."""
    after = partition_loops(bordered)
    assert all(isinstance(loop.extent, IntImm) for loop in collect_statements(after.body, For))
    assert vector_widths(after) == {8, 16}
    same_results(bordered, after)
