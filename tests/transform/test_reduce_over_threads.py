"""reduce_over_threads: shuffles in a warp, partial results of warps and trees in shared memory."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc, assert_structural_equal
from loopwright.script import tir as T
from loopwright.transform import allreduce_threads, lower_blocks, reduce_over_threads, write_allocations
from loopwright.transform.passes.simplify import simplify

EMULATED = "cuda -model=emulated"
ORDERS = ("forwards", "backwards", "random")


def lowered(function: PrimFunc) -> PrimFunc:
    result = simplify(lower_blocks(write_allocations(reduce_over_threads(allreduce_threads(function)))))
    return result.without_attr("global_symbol")


def assert_lowers_to(function: PrimFunc, expected: PrimFunc) -> None:
    assert_structural_equal(
        lowered(function), simplify(lower_blocks(write_allocations(expected))).without_attr("global_symbol")
    )


def test_eight_threads_of_a_warp_shuffle():
    @T.prim_func
    def total(A: T.Buffer((4, 8), "int32"), B: T.Buffer(4, "int32")):
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    i, v = T.axis.remap("SR", [ty, tx])
                    with T.init():
                        B[i] = 0
                    B[i] = B[i] + A[i, v]

    @T.prim_func
    def expected(A: T.Buffer((4, 8), "int32"), B: T.Buffer(4, "int32")):
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                R = T.decl_buffer((1,), "int32", scope="local")
                R[0] = A[ty, tx]
                R[0] = R[0] + T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 4, 32, 32)
                R[0] = R[0] + T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 2, 32, 32)
                R[0] = R[0] + T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 1, 32, 32)
                if tx == 0:
                    B[ty] = R[0]

    assert_lowers_to(total, expected)


def test_six_threads_shuffle_down():
    @T.prim_func
    def total(A: T.Buffer(6, "int32"), B: T.Buffer(1, "int32")):
        for tx in T.thread_binding(6, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.reduce(6, tx)
                with T.init():
                    B[0] = 0
                B[0] = B[0] + A[v]

    @T.prim_func
    def expected(A: T.Buffer(6, "int32"), B: T.Buffer(1, "int32")):
        for tx in T.thread_binding(6, thread="threadIdx.x"):
            R = T.decl_buffer((1,), "int32", scope="local")
            R[0] = A[tx]
            with T.decl_buffer((1,), "int32", scope="local") as S:
                S[0] = T.tvm_warp_shuffle_down(T.uint32(63), R[0], 4, 32, 32)
                if tx < 2:
                    R[0] = R[0] + S[0]
                S[0] = T.tvm_warp_shuffle_down(T.uint32(63), R[0], 2, 32, 32)
                if tx < 4:
                    R[0] = R[0] + S[0]
                S[0] = T.tvm_warp_shuffle_down(T.uint32(63), R[0], 1, 32, 32)
                if tx < 5:
                    R[0] = R[0] + S[0]
                S[0] = T.tvm_warp_shuffle(T.uint32(63), R[0], 0, 32, 32)
                R[0] = S[0]
            if tx == 0:
                B[0] = R[0]

    assert_lowers_to(total, expected)


def test_two_warps_meet_at_one_barrier():
    @T.prim_func
    def greatest(A: T.Buffer(64), B: T.Buffer(1)):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.reduce(64, tx)
                with T.init():
                    B[0] = T.float32("-inf")
                B[0] = T.max(B[0], A[v])

    @T.prim_func
    def expected(A: T.Buffer(64), B: T.Buffer(1)):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            R = T.decl_buffer((1,), scope="local")
            with T.decl_buffer((1, 2), scope="shared") as S:
                R[0] = A[tx]
                R[0] = T.max(R[0], T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 16, 32, 32))
                R[0] = T.max(R[0], T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 8, 32, 32))
                R[0] = T.max(R[0], T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 4, 32, 32))
                R[0] = T.max(R[0], T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 2, 32, 32))
                R[0] = T.max(R[0], T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 1, 32, 32))
                if tx % 32 == 0:
                    S[0, tx // 32] = R[0]
                T.tvm_storage_sync("shared")
                R[0] = S[0, tx % 2]
                R[0] = T.max(R[0], T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), R[0], 1, 32, 32))
            if tx == 0:
                B[0] = R[0]

    assert_lowers_to(greatest, expected)


def test_threads_that_are_no_neighbours_build_a_tree():
    """Threads along x have columns of their own; those along y reduce, each in the bank of its column."""

    @T.prim_func
    def total(A: T.Buffer((3, 16), "int32"), B: T.Buffer(16, "int32")):
        for ty in T.thread_binding(3, thread="threadIdx.y"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                with T.block("B"):
                    v, j = T.axis.remap("RS", [ty, tx])
                    with T.init():
                        B[j] = 0
                    B[j] = B[j] + A[v, j]

    @T.prim_func
    def expected(A: T.Buffer((3, 16), "int32"), B: T.Buffer(16, "int32")):
        for ty in T.thread_binding(3, thread="threadIdx.y"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                R = T.decl_buffer((1,), "int32", scope="local")
                with T.decl_buffer((3, 16), "int32", scope="shared") as S:
                    S[ty, tx] = A[ty, tx]
                    T.tvm_storage_sync("shared")
                    if ty < 1:
                        S[ty, tx] = S[ty, tx] + S[ty + 2, tx]
                    T.tvm_storage_sync("shared")
                    if ty < 1:
                        S[ty, tx] = S[ty, tx] + S[ty + 1, tx]
                    T.tvm_storage_sync("shared")
                    R[0] = S[0, tx]
                    T.tvm_storage_sync("shared")
                if ty == 0:
                    B[tx] = R[0]

    assert_lowers_to(total, expected)


def rows_by_threads(length: int, threads: int, dtype: str, reducer) -> PrimFunc:
    A = te.placeholder((4, length), dtype, name="A")
    k = te.reduce_axis((0, length), "k")
    B = te.compute((4,), lambda i: reducer(A[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, k = sch.get_loops("B")
    _, inner = sch.split(k, [None, threads])
    sch.bind(i, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return sch.mod["main"]


@pytest.mark.parametrize("length", [5, 100])
@pytest.mark.parametrize("threads", [1, 2, 3, 7, 31, 32, 33, 64, 65, 96, 100, 256])
def test_every_number_of_threads(threads, length):
    function = rows_by_threads(length, threads, "int32", te.sum)
    module = lw.build(function, target=EMULATED)
    a, b = np.arange(4 * length, dtype="int32").reshape(4, length) * 7919, np.zeros(4, "int32")
    for order in ORDERS:
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b, a.sum(1))
    assert ("__syncthreads" in module.get_source()) == (threads > 32)


@pytest.mark.parametrize("threads", [16, 48])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "float16", "bfloat16", "float64"])
def test_every_type(dtype, threads):
    function = rows_by_threads(100, threads, dtype, te.max)
    module = lw.build(function, target=EMULATED)
    a = lw.nd.array(np.random.default_rng(3).integers(0, 100, (4, 100)).astype(np.float32)).numpy()
    a = a.astype(function.buffer_map[function.params[0]].dtype.numpy())
    b = np.zeros(4, a.dtype)
    for order in ORDERS:
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b.astype("float32"), a.astype("float32").max(1))


@pytest.mark.parametrize("threads", [24, 64])
@pytest.mark.parametrize(("reduce", "expected"), [(topi.all, np.all), (topi.any, np.any)])
def test_truths(reduce, expected, threads):
    A = te.placeholder((5, 100), "bool", name="A")
    sch = tir.Schedule(te.create_prim_func([A, reduce(A, axis=1)]))
    block = next(block for block in sch.get_child_blocks(sch.get_block("root")) if len(sch.get_loops(block)) == 2)
    i, k = sch.get_loops(block)
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(k, [None, threads])[1], "threadIdx.x")
    module = lw.build(sch.mod, target=EMULATED)
    assert "__shfl" in module.get_source()
    a = np.random.default_rng(2).random((5, 100)) < [[0.5], [0], [1], [0.01], [0.99]]
    b = np.zeros(5, "bool")
    module(a, b)
    np.testing.assert_array_equal(b, expected(a, axis=1))


@pytest.mark.parametrize("threads", [8, 24, 64, 70])
def test_the_evaluator_agrees_after_each_pass(threads):
    function = rows_by_threads(100, threads, "int32", te.sum)
    a = np.arange(400, dtype="int32").reshape(4, 100)
    steps = function
    for step in (allreduce_threads, reduce_over_threads):
        steps, b = step(steps), np.zeros(4, "int32")
        evaluate(steps, a, b)
        np.testing.assert_array_equal(b, a.sum(1))


def test_rows_of_threads_reduce_for_themselves():
    """Threads along y are rows; each is reduced along x."""
    A = te.placeholder((6, 40), name="A")
    k = te.reduce_axis((0, 40), "k")
    B = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, k = sch.get_loops("B")
    outer, row = sch.split(i, [None, 3])
    _, inner = sch.split(k, [None, 16])
    sch.bind(outer, "blockIdx.x")
    sch.bind(row, "threadIdx.y")
    sch.bind(inner, "threadIdx.x")
    module = lw.build(sch.mod, target=EMULATED)
    a, b = np.random.default_rng(1).random((6, 40), "float32"), np.zeros(6, "float32")
    for order in ORDERS:
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b, a.max(1))
    assert "__syncthreads" not in module.get_source()


def test_all_lanes_that_exchange_have_the_same_bits():
    """Each thread keeps its result: sums of floats are rounded in one order, whoever adds."""

    @T.prim_func
    def sums(A: T.Buffer(96), B: T.Buffer(96)):
        for tx in T.thread_binding(96, thread="threadIdx.x"):
            R = T.decl_buffer((1,), scope="local")
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.tvm_thread_allreduce(T.uint32(1), A[tx], True, R[0], tx)
            B[tx] = R[0]

    module = lw.build(sums, target=EMULATED)
    a, b = np.random.default_rng(5).standard_normal(96).astype("float32"), np.zeros(96, "float32")
    module(a, b)
    assert len(set(b.tolist())) == 1
    np.testing.assert_allclose(b[0], a.astype("float64").sum(), rtol=1e-5)


@pytest.mark.parametrize("threads", [8, 33, 64])
def test_threads_that_an_attribute_launches(threads):
    @T.prim_func
    def rows(A: T.Buffer((3, threads)), B: T.Buffer((3, threads))):
        b = T.launch_thread("blockIdx.x", 3)
        tx = T.launch_thread("threadIdx.x", threads)
        R = T.decl_buffer((1,), scope="local")
        for k in range(2):
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.tvm_thread_allreduce(T.uint32(1), A[b, tx] * T.Cast("float32", k + 1), tx != 5, R[0], tx)
            B[b, tx] = B[b, tx] + R[0]

    module = lw.build(rows, target=EMULATED)
    a = np.random.default_rng(6).integers(-9, 9, (3, threads)).astype("float32")
    wanted = 3 * (a.sum(1) - a[:, 5])
    for order in ORDERS:
        module.set_thread_order(order, seed=5)
        b = np.zeros_like(a)
        module(a, b)
        np.testing.assert_array_equal(b, np.repeat(wanted[:, None], threads, 1))


def test_a_program_that_was_lowered_before():
    A = te.placeholder((5, 40), name="A")
    k = te.reduce_axis((0, 40), name="k")
    B = te.compute((5,), lambda i: te.sum(A[i, k], axis=k, where=i > 1), name="B")
    s = te.create_schedule(B.op)
    parts = s.rfactor(B, s[B].split(k, factor=16)[1])
    block, row = s[B].split(s[B].op.axis[0], factor=4)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(row, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    s[parts].compute_at(s[B], s[B].op.reduce_axis[0])
    a, b = np.random.default_rng(7).integers(-9, 9, (5, 40)).astype("float32"), np.ones(5, "float32")
    lw.build(lw.lower(s, [A, B]), target=EMULATED)(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(5) > 1, a.sum(1), 0))
