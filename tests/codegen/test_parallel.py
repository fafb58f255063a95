"""Parallel loops: chunks on the thread pool, captured values, errors from within, calls from several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.codegen.llvm.parallel import BadGrain
from loopwright.runtime import set_num_threads
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.script import ir as I
from loopwright.script import tir as T
from tests.agreement import assert_agreement


@pytest.fixture(autouse=True)
def three_threads():
    """More threads than this machine may have: chunks then begin in the middle of the range."""
    set_num_threads(3)
    yield
    set_num_threads(None)


def rows(n: int) -> ir.PrimFunc:
    @T.prim_func
    def func(A: T.Buffer((n, 5), "float32"), B: T.Buffer((n, 5), "float32")):
        for i in T.parallel(n):
            for j in range(5):
                B[i, j] = A[i, j] + T.float32(i)

    return func


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 100])
def test_every_iteration_runs_once(n):
    a, b = np.random.default_rng(n).random((n, 5), dtype="float32"), np.zeros((n, 5), "float32")
    assert_agreement(rows(n), [a, b])
    lw.build(rows(n))(a, b)
    np.testing.assert_array_equal(b, a + np.arange(n, dtype="float32")[:, None])


def test_loops_that_begin_elsewhere():
    @T.prim_func
    def func(B: T.Buffer((50,), "int32")):
        for i in T.parallel(7, 43):
            B[i] = B[i] + i

    b = np.ones(50, "int32")
    lw.build(func)(b)
    assert b.tolist() == [1 + i * (7 <= i < 43) for i in range(50)]


def test_symbolic_extents():
    @T.prim_func
    def func(a: T.handle, b: T.handle, lo: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in T.parallel(lo, n):
            B[i] = A[i]

    module = lw.build(func)
    for n, lo in ((0, 0), (1, 0), (10, 3), (10, 12), (1000, 1)):
        a, b = np.arange(n, dtype="float32") + 1, np.zeros(n, "float32")
        module(a, b, lo)
        np.testing.assert_array_equal(b, np.where(np.arange(n) >= lo, a, 0))


def test_a_parallel_loop_within_another():
    @T.prim_func
    def func(A: T.Buffer((6, 7), "float32"), B: T.Buffer((6, 7), "float32")):
        for i in T.parallel(6):
            for j in T.parallel(7):
                B[i, j] = A[i, j] * T.float32(2)

    assert_agreement(func, [np.random.default_rng(0).random((6, 7), dtype="float32"), np.zeros((6, 7), "float32")])


def test_a_parallel_function_called_within_a_parallel_loop():
    @I.ir_module
    class Module:
        @T.prim_func
        def fill(B: T.Buffer((64,), "int32"), base: T.int32):
            for j in T.parallel(8):
                B[base + j] = base + j

        @T.prim_func
        def main(B: T.Buffer((64,), "int32")):
            for i in T.parallel(8):
                Module.fill(B.data, i * 8)

    b = np.zeros(64, "int32")
    lw.build(Module)(b)
    assert b.tolist() == list(range(64))


def test_scalars_of_every_type_are_captured():
    dtypes = ["int8", "uint16", "int64", "float16", "float32", "float64", "bool"]
    params = [ir.Var(f"x_{dtype}", dtype) for dtype in dtypes]
    outs = [ir.decl_buffer((9,), dtype, f"out_{dtype}") for dtype in dtypes]
    i = ir.Var("i")
    stores = [ir.BufferStore(out, param, [i]) for out, param in zip(outs, params, strict=True)]
    func = ir.PrimFunc([*params, *outs], ir.For(i, 0, 9, ir.ForKind.PARALLEL, ir.seq(stores)))
    results = [np.zeros(9, dtype) for dtype in dtypes]
    lw.build(func)(-3, 65535, 1 << 40, 0.5, 0.25, -1.5, True, *results)
    for result, value in zip(results, (-3, 65535, 1 << 40, 0.5, 0.25, -1.5, True), strict=True):
        assert (result == value).all()


def test_vectors_and_loop_variables_are_captured():
    A, B = ir.decl_buffer((4,), "float32", "A"), ir.decl_buffer((3, 9, 4), "float32", "B")
    outer, i, v = ir.Var("outer"), ir.Var("i"), ir.Var("v", "float32x4")
    value = v + ir.Broadcast(outer.astype("float32"), 4)
    store = ir.BufferStore(B, value, [outer, i, ir.Ramp(0, 1, 4)])
    parallel = ir.For(i, 0, 9, ir.ForKind.PARALLEL, store)
    body = ir.LetStmt(v, ir.BufferLoad(A, [ir.Ramp(0, 1, 4)]), parallel)
    func = ir.PrimFunc([A, B], ir.For(outer, 0, 3, ir.ForKind.SERIAL, body))
    a, b = np.arange(4, dtype="float32"), np.zeros((3, 9, 4), "float32")
    assert_agreement(func, [a, b])
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, np.broadcast_to(a + np.arange(3, dtype="float32")[:, None, None], (3, 9, 4)))


def test_memory_of_the_function_is_captured():
    @T.prim_func
    def func(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32")):
        small = T.alloc_buffer((40,), "float32")
        large = T.alloc_buffer((8000,), "float32")
        for i in T.parallel(40):
            small[i] = A[i] + T.float32(1)
        for i in T.parallel(40):
            large[i * 200] = small[39 - i]
        for i in T.parallel(40):
            B[i] = large[i * 200]

    assert_agreement(func, [np.arange(40, dtype="float32"), np.zeros(40, "float32")])


def test_memory_of_an_iteration_is_its_own():
    @T.prim_func
    def func(A: T.Buffer((12, 5000), "float32"), B: T.Buffer((12, 5000), "float32")):
        for i in T.parallel(12):
            with T.block("row"):
                vi = T.axis.spatial(12, i)
                row = T.alloc_buffer((5000,), "float32")
                for j in range(5000):
                    row[j] = A[vi, j]
                for j in range(5000):
                    B[vi, j] = row[4999 - j]

    a, b = np.random.default_rng(0).random((12, 5000), dtype="float32"), np.zeros((12, 5000), "float32")
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])


def test_the_init_of_a_reduction_runs_in_each_chunk():
    @T.prim_func
    def func(A: T.Buffer((11, 6), "int32"), B: T.Buffer((11,), "int32")):
        for i in T.parallel(11):
            for k in range(6):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 100
                    B[vi] = B[vi] + A[vi, vk]

    a, b = np.arange(66, dtype="int32").reshape(11, 6), np.full(11, -1, "int32")
    assert_agreement(func, [a, b])
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, 100 + a.sum(axis=1))


def test_an_error_in_an_iteration_reaches_the_caller():
    @T.prim_func
    def func(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        scratch = T.alloc_buffer((100000,), "int32")
        scratch[0] = 1
        for i in T.parallel(64):
            assert A[i] < 63, "A stays below 63"
            B[i] = A[i] + scratch[0]

    module = lw.build(func)
    for bad in range(0, 64, 7):  # in the chunk of any thread
        a = np.zeros(64, "int32")
        a[bad] = 63
        with pytest.raises(LoopwrightError, match="assertion failed: A stays below 63") as caught:
            module(a, np.zeros(64, "int32"))
        assert "test_parallel.py" in str(caught.value)
    b = np.zeros(64, "int32")
    module(np.zeros(64, "int32"), b)  # and the next call is well again
    assert (b == 1).all()


def test_two_python_threads_call_at_once():
    module = lw.build(rows(200))
    failures: list[object] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).random((200, 5), dtype="float32")
        for _ in range(100):
            b = np.zeros((200, 5), "float32")
            module(a, b)
            if not (b == a + np.arange(200, dtype="float32")[:, None]).all():
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arguments_that_may_overlap_may_do_so_in_parallel_loops_too():
    """Without the promise of `tir.noalias` a store to one argument may change what the other holds."""

    @T.prim_func
    def func(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
        T.func_attr({"tir.noalias": False})
        for i in T.parallel(4):
            for j in range(63):
                B[i, j + 1] = A[i, j]

    memory = np.zeros((4, 64), "float32")
    memory[:, 0] = np.arange(4) + 1
    lw.build(func)(memory, memory)
    np.testing.assert_array_equal(memory, np.repeat(np.arange(4, dtype="float32") + 1, 64).reshape(4, 64))


def test_loop_variables_may_have_any_name():
    i, B = ir.Var("the row @ 'i'"), ir.decl_buffer((8,), "int32", "B")
    func = ir.PrimFunc([B], ir.For(i, 0, 8, ir.ForKind.PARALLEL, ir.BufferStore(B, i, [i])))
    b = np.zeros(8, "int32")
    lw.build(func)(b)
    assert b.tolist() == list(range(8))


def test_no_value_leaves_a_parallel_loop():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")) -> T.int32:
        for i in T.parallel(8):
            if A[i] > 3:
                T.ret(i)
        T.ret(-1)

    with pytest.raises(NotBuilt, match="returning a value from within a parallel loop is not built yet"):
        lw.build(func)


def triangle(annotations: dict[str, object]) -> ir.PrimFunc:
    """Rows of very different length."""

    @T.prim_func
    def func(A: T.Buffer((97, 97), "float32"), B: T.Buffer((97,), "float32")):
        for i in T.parallel(97, annotations=annotations):
            B[i] = T.float32(0)
            for j in range(i + 1):
                B[i] = B[i] + A[i, j]

    return func


@pytest.mark.one_in(3)
@pytest.mark.parametrize("grain", [0, 1, 5, 1000, (1 << 63) - 1])
@pytest.mark.parametrize("key", ["parallel_dynamic", "pragma_parallel_dynamic"])
def test_iterations_handed_out_in_pieces(key, grain):
    a = np.random.default_rng(0).random((97, 97), dtype="float32")
    fixed, handed_out = np.zeros(97, "float32"), np.zeros(97, "float32")
    lw.build(triangle({}))(a, fixed)
    module = lw.build(triangle({key: grain}))
    assert "lw_parallel_for_dynamic" in module.get_source("ll")
    assert_agreement(triangle({key: grain}), [a, np.zeros(97, "float32")])
    for count in (1, 2, 3, 8):
        set_num_threads(count)
        handed_out[:] = -1
        module(a, handed_out)
        np.testing.assert_array_equal(handed_out, fixed)


def test_a_schedule_may_ask_for_pieces():
    @T.prim_func
    def func(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32")):
        for i in range(40):
            with T.block("row"):
                vi = T.axis.spatial(40, i)
                B[vi] = A[vi] * 2

    schedule = lw.tir.Schedule(func)
    (loop,) = schedule.get_loops(schedule.get_block("row"))
    schedule.parallel(loop)
    schedule.annotate(loop, "parallel_dynamic", 4)
    module = lw.build(schedule.mod)
    assert "lw_parallel_for_dynamic" in module.get_source("ll")
    a, b = np.arange(40, dtype="int32"), np.zeros(40, "int32")
    module(a, b)
    np.testing.assert_array_equal(b, a * 2)


@pytest.mark.parametrize("grain", [-1, True, "many", 1.5, 1 << 63])
def test_bad_sizes_of_pieces_are_refused(grain):
    with pytest.raises(BadGrain, match=f"the parallel loop i is annotated with parallel_dynamic = {grain}"):
        lw.build(triangle({"parallel_dynamic": grain}))


@pytest.mark.parametrize("annotations", [{}, {"parallel_dynamic": 1}, {"parallel_dynamic": 0}])
def test_enormous_loops_report_their_first_error(annotations):
    """2**40 iterations, all but a few of which fail: whoever fails first, the error is that of iteration 5."""

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        for i in T.parallel(T.int64(1 << 40), annotations=annotations):
            if i >= T.int64(6):
                assert A[0] == 1, "a later one"
            if i == T.int64(5):
                assert A[0] == 1, "iteration 5"

    module = lw.build(func)
    for _ in range(10):
        with pytest.raises(LoopwrightError, match="assertion failed: iteration 5"):
            module(np.zeros(8, "int32"))


def test_results_do_not_depend_on_the_number_of_threads():
    @T.prim_func
    def func(A: T.Buffer((37, 300), "float32"), B: T.Buffer((37,), "float32")):
        for i in T.parallel(37):
            B[i] = T.float32(0)
            for j in range(300):
                B[i] = B[i] + T.exp(A[i, j])

    module = lw.build(func)
    a = np.random.default_rng(0).standard_normal((37, 300)).astype("float32")
    results = []
    for count in (1, 2, 3, 5, 16, 37, 50):
        set_num_threads(count)
        results.append(np.zeros(37, "float32"))
        module(a, results[-1])
    assert len({result.tobytes() for result in results}) == 1
