"""Kernels as tutorials write them, emulated: in every order of threads they compute what numpy does."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.as_module import as_module
from loopwright.evaluator import evaluate
from loopwright.runtime.call_errors import KernelStopped
from loopwright.script import tir as T
from loopwright.transform import stages
from tests.cuda_programs import PROGRAMS, vector_add

EMULATED = "cuda -model=emulated"
ORDERS = ("forwards", "backwards", "random")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_numpy_does(name):
    inputs, args, given, wanted = PROGRAMS[name]()
    module = lw.build(inputs, args, target=EMULATED)
    for order in ORDERS:
        module.set_thread_order(order, seed=5)
        outputs = [np.full_like(one, -1) for one in wanted]
        module(*given, *outputs)
        for output, one in zip(outputs, wanted):
            np.testing.assert_allclose(output, one, rtol=2e-3 if one.dtype == "float16" else 2e-5, atol=1e-5)


def test_tails_of_every_length():
    schedule, args = vector_add()
    module = lw.build(schedule, args, target=EMULATED)
    for n in (0, 1, 255, 256, 257, 1000):
        a, b = np.arange(n, dtype="float32"), np.full(n, 0.5, "float32")
        c = np.full(n + 3, -1, "float32")
        module(a, b, c[:n])
        np.testing.assert_array_equal(c, [*(a + b), -1, -1, -1])


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8", "int64", "bfloat16", "float16", "bool"])
def test_types(dtype):
    A = te.placeholder((33,), dtype, name="A")
    B = te.compute((33,), lambda i: tir.Not(A[i]) if dtype == "bool" else A[i] + A[i], name="B")
    module = lw.build([A, B], target=EMULATED)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    a = (np.random.default_rng(1).random(33) * 200 - (50 if dtype != "bool" else 100)).astype(kind)
    b = np.zeros(33, kind)
    module(a, b)
    np.testing.assert_array_equal(b, ~a if dtype == "bool" else a + a)


def _applied(function, tensor):
    return lambda i: function(tensor[i])


def test_functions_are_those_of_native_code():
    A = te.placeholder((64,), name="A")
    names = ("exp", "log", "tanh", "sigmoid", "sqrt", "sin", "erf")
    results = [te.compute((64,), _applied(getattr(te, name), A), name=name) for name in names]
    a = np.random.default_rng(2).random(64, "float32") * 5 + 0.1
    got, wanted = [[np.zeros(64, "float32") for _ in names] for _ in range(2)]
    lw.build([A, *results], target=EMULATED)(a, *got)
    lw.build([A, *results], target="llvm")(a, *wanted)
    for name, one, other in zip(names, got, wanted):
        np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_infinities_and_nan_are_told_apart(dtype):
    A = te.placeholder((6,), dtype, name="A")
    results = [te.compute((6,), _applied(getattr(tir, name), A), name=name) for name in ("isinf", "isfinite", "isnan")]
    a = np.array([0, np.finfo(dtype).max, -np.inf, np.inf, np.nan, -np.nan], dtype)
    got = [np.zeros(6, "bool") for _ in results]
    lw.build([A, *results], target=EMULATED)(a, *got)
    for result, wanted in zip(got, (np.isinf(a), np.isfinite(a), np.isnan(a))):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("threads", [(8, 1, 1), (8, 3, 1), (5, 2, 1), (32, 2, 1), (33, 2, 1), (4, 3, 2)])
def test_a_reduction_over_some_of_the_axes_of_its_kernel(threads):
    """The first thread along the other axes runs it, with memory of its own."""
    A = te.placeholder((3, 40), name="A")
    k = te.reduce_axis((0, 40), name="k")
    M = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="M")
    B = te.compute((3, 40), lambda i, j: A[i, j] - M[i], name="B")
    s = te.create_schedule(B.op)
    i, j = s[B].op.axis
    s[B].bind(i, te.thread_axis("blockIdx.x"))
    for axis, count in zip("xyz", threads):
        j, thread = s[B].split(j, factor=count)
        s[B].bind(thread, te.thread_axis(f"threadIdx.{axis}"))
    s[M].compute_at(s[B], i)
    s[M].bind(s[M].split(k, factor=threads[0])[1], te.thread_axis("threadIdx.x"))
    module = lw.build(s, [A, B], target=EMULATED)
    a = np.random.default_rng(3).integers(-9, 9, (3, 40)).astype("float32")
    for order in ORDERS:
        module.set_thread_order(order, seed=5)
        b = np.zeros_like(a)
        module(a, b)
        np.testing.assert_array_equal(b, a - a.sum(1, keepdims=True))


def test_memory_of_a_thread_that_more_threads_fetch_for():
    A = te.placeholder((4, 32), name="A")
    B = te.compute((4, 32), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((4, 32), lambda i, j: B[i, 31 - j] + 1, name="C")
    s = te.create_schedule(C.op)
    sums = s.cache_write(C, "local")
    outer, _ = s[C].split(C.op.axis[1], factor=4)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(outer, te.thread_axis("threadIdx.x"))
    s[sums].compute_at(s[C], outer)
    s[B].compute_at(s[C], C.op.axis[0])
    rest, x = s[B].split(B.op.axis[1], factor=8)
    s[B].bind(x, te.thread_axis("threadIdx.x"))
    s[B].bind(s[B].split(rest, factor=2)[1], te.thread_axis("threadIdx.y"))
    module = lw.build(s, [A, C], target=EMULATED)
    a, c = np.random.default_rng(4).random((4, 32), "float32"), np.zeros((4, 32), "float32")
    module(a, c)
    np.testing.assert_array_equal(c, a[:, ::-1] * 2 + 1)


def test_indices_from_data_are_checked():
    X = te.placeholder((50,), name="X")
    Index = te.placeholder((20,), "int32", name="Index")
    Y = te.compute((20,), lambda i: X[Index[i]] * 2.0, name="Y")
    module = lw.build([X, Index, Y], target=EMULATED)
    x, index, y = np.arange(50, dtype="float32"), np.arange(20, dtype="int32") * 2, np.zeros(20, "float32")
    module(x, index, y)
    np.testing.assert_array_equal(y, x[index] * 2)
    index[3] = 77
    with pytest.raises(KernelStopped) as caught:
        module(x, index, y)
    assert "thread (3, 0, 0)" in str(caught.value)


def test_indices_from_shared_memory_are_checked_after_they_are_there():
    """The check of a whole vector of virtual threads counts in memory of the thread's own."""
    A = te.placeholder((16, 16), name="A")
    Index = te.placeholder((32,), "int32", name="Index")
    B = te.compute((32, 16), lambda i, j: A[Index[i], j], name="B")
    s = te.create_schedule(B.op)
    S = s.cache_read(Index, "shared", [B])
    (by, bx, ty, tx) = [te.thread_axis(name) for name in ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")]
    io, jo, ii, ji = s[B].tile(*B.op.axis, 8, 4)
    jv, ji = s[B].split(ji, nparts=2)
    s[B].reorder(io, jo, jv, ii, ji)
    virtual = te.thread_axis("vthread")
    for axis, thread in ((io, by), (jo, bx), (jv, virtual), (ii, ty), (ji, tx)):
        s[B].bind(axis, thread)
    s[S].compute_at(s[B], jo)
    s[S].bind(s[S].op.axis[0], ty)
    module = lw.build(s, [A, Index, B], target=EMULATED)
    a, index = np.random.default_rng(0).random((16, 16), "float32"), np.arange(32, dtype="int32") % 16
    for order in ORDERS:
        module.set_thread_order(order)
        b = np.zeros((32, 16), "float32")
        module(a, index, b)
        np.testing.assert_array_equal(b, a[index])
    index[5] = 16
    with pytest.raises(KernelStopped, match="failed"):
        module(a, index, b)


def test_constants_move_into_the_kernels_that_read_them():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        K = T.allocate_const([1.0, 2, 3, 4, 5, 6, 7, 8], "float32", [8])
        Kb = T.Buffer(8, data=K)
        for i in T.thread_binding(8, thread="threadIdx.x"):
            B[i] = A[i] * Kb[i]
        for i in T.thread_binding(8, thread="threadIdx.x"):
            B[i] = B[i] + Kb[7 - i]

    module = lw.build(func, target=EMULATED)
    a, b = np.full(8, 10, "float32"), np.zeros(8, "float32")
    module(a, b)
    k = np.arange(1, 9, dtype="float32")
    np.testing.assert_array_equal(b, 10 * k + k[::-1])


@pytest.mark.parametrize("name", ["rfactor_sum", "cross_thread_maximum", "two_kernels", "dynamic_shared"])
def test_every_stage_of_lowering_computes_the_same(name):
    """In the evaluator, which finds races; between launching threads and inserting barriers there may be some."""
    inputs, args, given, wanted = PROGRAMS[name]()
    function = next(iter(as_module(inputs, args, "main", None).functions.values()))
    has_barriers = True
    for stage, lowered in stages(function, "cuda"):
        has_barriers = {"launch_threads": False, "insert_barriers": True}.get(stage, has_barriers)
        if has_barriers:
            outputs = [np.zeros_like(one) for one in wanted]
            evaluate(lowered, *given, *outputs)
            for output, one in zip(outputs, wanted):
                np.testing.assert_allclose(output, one, rtol=2e-5, err_msg=f"after {stage}")


def test_lanes_of_a_mask_exchange_values():
    """A shuffle under a condition names the lanes that come; segments of eight lanes wrap around by themselves."""

    @T.prim_func
    def exchanged(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            B[t] = T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), A[t], t + 1, 8, 32)
            if t < 16:
                B[t] = B[t] * 1000 + T.tvm_warp_shuffle_up(T.uint32(0xFFFF), A[t], 3, 16, 32)

    module = lw.build(exchanged, target="cuda -model=emulated")
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    expected = a // 8 * 8 + (a + 1) % 8
    expected[:16] = expected[:16] * 1000 + np.where(a[:16] < 3, a[:16], a[:16] - 3)
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize(
    ("limit", "mask", "message"),
    [
        (
            16,
            0xFFFFFFFF,
            r"not all threads reach a shuffle: thread \(0, 0, 0\) waits for lanes of its warp in line \d+",
        ),
        (32, 0xFF, r"thread \(8, 0, 0\) of block \(0, 0, 0\): the mask in line \d+ lacks its own lane"),
    ],
)
def test_a_mask_that_is_wrong_stops_the_call(limit, mask, message):
    @T.prim_func
    def wrong(A: T.Buffer((64,), "int32")):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            if t % 32 < limit:
                A[t] = T.tvm_warp_shuffle_xor(T.uint32(mask), A[t], 1, 32, 32)
            T.evaluate(T.tvm_storage_sync("shared"))

    module = lw.build(wrong, target="cuda -model=emulated")
    with pytest.raises(RuntimeError, match=message):
        module(np.zeros(64, "int32"))
