"""Threads in the evaluator: blocks, scopes, barriers, races, reductions over threads. Programs written by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from loopwright.analysis import (
    BarrierNotReached,
    PrivateMemoryShared,
    ThreadExtentMismatch,
    check_program,
)
from loopwright.analysis import ThreadRace as CertainRace
from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.evaluator.errors import BarrierDivergence, ThreadRace, UninitialisedRead
from loopwright.runtime.errors import NotBuilt
from loopwright.script import from_source
from loopwright.script import tir as T


def numbers(*shape):
    return np.random.default_rng(0).integers(0, 9, shape).astype("float32")


@T.prim_func
def reverse(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        S = T.decl_buffer((8,), scope="shared")
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            B[bx, tx] = S[7 - tx]


@T.prim_func
def reverse_launched(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    bx = T.launch_thread("blockIdx.x", 3)
    tx = T.launch_thread("threadIdx.x", 8)
    S = T.decl_buffer((8,), scope="shared")
    S[tx] = A[bx, tx]
    T.evaluate(T.tvm_storage_sync("shared"))
    B[bx, tx] = S[7 - tx]


@T.prim_func
def reverse_shared_out(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    # One name for the shared memory of all blocks: each has its own all the same.
    S = T.alloc_buffer(8, scope="shared")
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            B[bx, tx] = S[7 - tx]


@T.prim_func
def reverse_together(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    # A loop bound to an axis that runs already: thread tx has the iteration u = tx, between barriers.
    S = T.alloc_buffer(8, scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(3):
            for u in T.thread_binding(8, thread="threadIdx.x"):
                S[u] = A[k, u]
            B[k, tx] = S[7 - tx]


@T.prim_func
def reverse_once(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    # What does not name a thread and writes memory of the block is done once.
    S = T.alloc_buffer(8, scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(3):
            for u in range(8):
                S[u] = A[k, u]
            B[k, tx] = S[7 - tx]


@T.prim_func
def reverse_virtual(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    S = T.alloc_buffer(8, scope="shared")
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        for vx in T.thread_binding(2, thread="vthread"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                S[vx * 4 + tx] = A[bx, vx * 4 + tx]
                T.evaluate(T.tvm_storage_sync("shared"))
                B[bx, vx * 4 + tx] = S[7 - vx * 4 - tx]


REVERSALS = [reverse, reverse_launched, reverse_shared_out, reverse_together, reverse_once, reverse_virtual]


@pytest.mark.parametrize("func", REVERSALS, ids=lambda func: func.name)
def test_threads_exchange_through_shared_memory(func):
    a, b = numbers(3, 8), np.zeros((3, 8), "float32")
    check_program(func)
    evaluate(func, a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert difference(evaluate_terms(REVERSALS[0]), evaluate_terms(func, check_races=True)) is None


WITHOUT_BARRIER = """
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(8)):
    S = T.alloc_buffer(8, scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        S[tx] = A[tx]
        B[tx] = S[7 - tx]
"""

LOOP_WITHOUT_SECOND_BARRIER = """
@T.prim_func
def main(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    S = T.alloc_buffer(8, scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(3):
            S[tx] = A[k, tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            B[k, tx] = S[7 - tx]
"""

BARRIER_SOMETIMES = """
@T.prim_func
def main(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    S = T.alloc_buffer(8, scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(3):
            S[tx] = A[k, tx]
            if k < 2:
                T.evaluate(T.tvm_storage_sync("shared"))
            B[k, tx] = S[7 - tx]
            T.evaluate(T.tvm_storage_sync("shared"))
"""

LAUNCHED_ONCE = """
@T.prim_func
def main(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    tx = T.launch_thread("threadIdx.x", 8)
    S = T.decl_buffer((1,), scope="shared")
    S[0] = A[0, 0]
    T.evaluate(T.tvm_storage_sync("shared"))
    B[0, tx] = S[0]
"""

VIRTUAL_THREADS_MEET = """
@T.prim_func
def main(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    S = T.alloc_buffer(4, scope="shared")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for vx in T.thread_binding(2, thread="vthread"):
            S[tx] = A[0, vx * 4 + tx]
            B[0, vx * 4 + tx] = S[tx]
"""

TWO_AXES = """
@T.prim_func
def main(A: T.Buffer((3, 8)), B: T.Buffer((3, 8))):
    S = T.alloc_buffer(8, scope="shared")
    for ty in T.thread_binding(3, thread="threadIdx.y"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[ty, tx]
            B[ty, tx] = S[tx]
"""

REDUCTION_WITHOUT_BARRIER = """
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(1)):
    S = T.alloc_buffer(8, scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        S[tx] = A[tx]
        T.evaluate(T.tvm_storage_sync("shared"))
        for s in range(3):
            if tx < T.shift_right(4, s):
                S[tx] = S[tx] + S[tx + T.shift_right(4, s)]
        if tx == 0:
            B[0] = S[0]
"""

RACES = {
    "no barrier": (WITHOUT_BARRIER, r"thread \(tx=3\) and thread \(tx=4\) both touch S\[4\]", True),
    "no barrier at the end of a loop": (LOOP_WITHOUT_SECOND_BARRIER, r"both touch S\[0\]", True),
    "a barrier that is not always reached": (
        BARRIER_SOMETIMES,
        r"\(tx=7\) and thread \(tx=0\) both touch S\[7\]",
        True,
    ),
    "all launched threads write one cell": (LAUNCHED_ONCE, r"\(tx=0\) and thread \(tx=1\) both touch S\[0\]", True),
    "virtual threads meet": (VIRTUAL_THREADS_MEET, r"\(tx=0, vx=0\) and thread \(tx=0, vx=1\) both touch S\[0\]", True),
    "rows of threads meet": (TWO_AXES, r"\(ty=0, tx=0\) and thread \(ty=1, tx=0\) both touch S\[0\]", True),
    "a tree without barriers": (REDUCTION_WITHOUT_BARRIER, r"both touch S\[", False),
}


@pytest.mark.parametrize("name", RACES)
def test_races_are_found_whatever_the_order(name):
    source, message, is_certain = RACES[name]
    func = from_source(source)
    arrays = [np.zeros([int(n) for n in b.shape], "float32") for b in func.argument_buffers()]
    with pytest.raises(ThreadRace, match=message) as caught:
        evaluate(func, *arrays)
    assert "no barrier between" in str(caught.value) and 'T.tvm_storage_sync("shared")' in str(caught.value)
    with pytest.raises(ThreadRace):
        evaluate_terms(func)
    if is_certain:  # the build finds it too
        with pytest.raises(CertainRace, match=r"both touch S\[\d\] between two barriers"):
            check_program(func)


def test_races_are_not_looked_for_without_checks():
    b = np.zeros(8, "float32")
    evaluate(from_source(WITHOUT_BARRIER), numbers(8), b, check=False)


def test_blocks_have_no_barrier_between_them():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        for bx in T.thread_binding(8, thread="blockIdx.x"):
            A[bx] = T.float32(1)
            B[bx] = A[7 - bx]

    with pytest.raises(ThreadRace, match=r"block \(bx=3\) and block \(bx=4\) both touch A\[4\]"):
        evaluate(func, numbers(8), numbers(8))
    with pytest.raises(ValueError, match=r"iterations bx = 0 and bx = 7 of the bound loop bx both touch A\[0\]"):
        check_program(func)


# --- barriers that threads do not reach together --------------------------------------------------------------------


UNDER_CONDITION = """
@T.prim_func
def main(A: T.Buffer(8)):
    for ty in T.thread_binding(2, thread="threadIdx.y"):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            if tx < 3:
                T.evaluate(T.tvm_storage_sync("shared"))
                A[ty * 4 + tx] = T.float32(1)
"""

IN_LOOP = """
@T.prim_func
def main(A: T.Buffer(8)):
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(tx):
            T.evaluate(T.tvm_storage_sync("shared"))
        A[tx] = T.float32(1)
"""


def test_a_barrier_under_a_condition_on_the_thread():
    func = from_source(UNDER_CONDITION)
    message = r"the condition tx < 3 is True in thread \(ty=0, tx=0\) and False in thread \(ty=0, tx=3\)"
    with pytest.raises(BarrierDivergence, match=message):
        evaluate(func, numbers(8))
    with pytest.raises(BarrierNotReached, match="tx < 3 is true for tx = 0 and false for tx = 3"):
        check_program(func)


def test_a_barrier_in_a_loop_of_another_length_for_each_thread():
    func = from_source(IN_LOOP)
    with pytest.raises(BarrierDivergence, match=r"length of loop k is 0 in thread \(tx=0\) and 1 in thread \(tx=1\)"):
        evaluate(func, numbers(8))
    with pytest.raises(BarrierNotReached, match="tx is 0 for tx = 0 and 1 for tx = 1"):
        check_program(func)


def test_a_barrier_under_a_condition_on_data():
    @T.prim_func
    def func(A: T.Buffer(8)):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            if A[tx] > 0.0:
                T.evaluate(T.tvm_storage_sync("shared"))

    check_program(func)  # nothing certain
    evaluate(func, np.ones(8, "float32"))
    with pytest.raises(BarrierDivergence, match=r"in thread \(tx=0\) and False in thread \(tx=5\)"):
        evaluate(func, np.array([1, 1, 1, 1, 1, 0, 1, 1], "float32"))


def test_a_barrier_under_a_condition_that_all_threads_share():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), B: T.Buffer((4, 8)), n: T.int32):
        S = T.alloc_buffer(8, scope="shared")
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(4):
                if k < n:
                    T.evaluate(T.tvm_storage_sync("shared"))
                    S[tx] = A[k, tx]
                    T.evaluate(T.tvm_storage_sync("shared"))
                    B[k, tx] = S[7 - tx]

    for n in (0, 1, 3, 4):
        a, b = numbers(4, 8), np.zeros((4, 8), "float32")
        evaluate(func, a, b, n)
        np.testing.assert_array_equal(b[:n], a[:n, ::-1])
        assert not b[n:].any()


# --- scopes ---------------------------------------------------------------------------------------------------------


def test_local_memory_is_one_a_thread():
    @T.prim_func
    def func(A: T.Buffer((2, 8)), B: T.Buffer((2, 8))):
        L = T.alloc_buffer(1, scope="local")
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                L[0] = A[bx, tx]
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                B[bx, tx] = L[0]

    a, b = numbers(2, 8), np.zeros((2, 8), "float32")
    check_program(func)
    evaluate(func, a, b)
    np.testing.assert_array_equal(b, a)


LOCAL_ACROSS = """
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(8)):
    L = T.alloc_buffer(8, scope="SCOPE")
    for tx in T.thread_binding(8, thread="AXIS"):
        L[tx] = A[tx]
    for tx in T.thread_binding(8, thread="AXIS"):
        B[tx] = L[7 - tx]
"""


@pytest.mark.parametrize(
    ("scope", "axis", "whose", "wider"),
    [
        ("local", "threadIdx.x", "thread", "shared"),
        ("local", "blockIdx.x", "thread", "shared"),
        ("shared", "blockIdx.x", "block", "global"),
        ("warp", "threadIdx.y", "thread", "shared"),
    ],
)
def test_memory_of_another_thread_is_out_of_reach(scope, axis, whose, wider):
    func = from_source(LOCAL_ACROSS.replace("SCOPE", scope).replace("AXIS", axis))
    with pytest.raises(PrivateMemoryShared, match=rf"reads L\[7\] in another {whose}") as caught:
        check_program(func)
    text = str(caught.value)
    assert "writes L[7] at tx = 7, and it is read at tx = 0" in text and f'put L into "{wider}" memory' in text
    with pytest.raises(UninitialisedRead, match=r"reads L\[7\] before anything has written it"):
        evaluate(func, numbers(8), numbers(8))


@pytest.mark.parametrize(
    ("scope", "axis"), [("shared", "threadIdx.x"), ("global", "blockIdx.x"), ("warp", "threadIdx.x")]
)
def test_memory_that_they_share(scope, axis):
    func = from_source(LOCAL_ACROSS.replace("SCOPE", scope).replace("AXIS", axis))
    a, b = numbers(8), np.zeros(8, "float32")
    check_program(func)
    evaluate(func, a, b)
    np.testing.assert_array_equal(b, a[::-1])


def test_extents_of_one_axis():
    @T.prim_func
    def func(A: T.Buffer(64), B: T.Buffer(32)):
        for _bx in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.thread_binding(64, thread="threadIdx.x"):
                A[i] = T.float32(1)
            for j in T.thread_binding(32, thread="threadIdx.x"):
                B[j] = T.float32(2)

    message = "loops i and j are both bound to threadIdx.x, but have 64 and 32 iterations"
    for run in (check_program, lambda func: evaluate(func, numbers(64), numbers(32))):
        with pytest.raises(ThreadExtentMismatch, match=message) as caught:
            run(func)
        assert "split i into [None, 32] and bind its inner part" in str(caught.value)


def test_kernels_of_their_own_may_differ():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(4)):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            A[i] = T.float32(1)
        for j in T.thread_binding(4, thread="threadIdx.x"):
            B[j] = A[7 - j] + T.float32(1)

    b = np.zeros(4, "float32")
    check_program(func)
    evaluate(func, np.zeros(8, "float32"), b)
    assert b.tolist() == [2.0] * 4


# --- reductions -----------------------------------------------------------------------------------------------------

TREE = """
@T.prim_func
def main(A: T.Buffer((3, 8)), B: T.Buffer(3)):
    S = T.alloc_buffer(8, scope="shared")
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
            for s in range(3):
                T.evaluate(T.tvm_storage_sync("shared"))
                if tx < T.shift_right(4, s):
                    S[tx] = S[tx] + S[tx + T.shift_right(4, s)]
            if tx == 0:
                B[bx] = S[0]
"""


def test_a_tree_of_sums_in_shared_memory():
    a, b = numbers(3, 8), np.zeros(3, "float32")
    evaluate(from_source(TREE), a, b)
    np.testing.assert_array_equal(b, a.sum(1))
    broken = from_source(re.sub(r"                T.evaluate.*\n", "", TREE))
    with pytest.raises(ThreadRace, match=r"both touch S\["):
        evaluate(broken, a, b)


@T.prim_func
def allreduce(A: T.Buffer((2, 3, 4)), B: T.Buffer((2, 3))):
    R = T.alloc_buffer(1, scope="local")
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for ty in T.thread_binding(3, thread="threadIdx.y"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                with T.attr(
                    T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                    "reduce_scope",
                    T.reinterpret("handle", T.uint64(0)),
                ):
                    T.tvm_thread_allreduce(T.uint32(1), A[bx, ty, tx], T.bool(True), R[0], tx)
                if tx == 3:
                    B[bx, ty] = R[0]


def test_reduction_over_one_axis_of_threads():
    a, b = numbers(2, 3, 4), np.zeros((2, 3), "float32")
    evaluate(allreduce, a, b)
    np.testing.assert_array_equal(b, a.sum(2))
    found = evaluate_terms(allreduce)["B"]
    assert all([f"A[1, 2, {k}]" in str(found[1, 2]) for k in range(4)])


def test_reduction_over_both_axes_where_a_condition_holds():
    @T.prim_func
    def func(A: T.Buffer((3, 4)), B: T.Buffer((3, 4))):
        R = T.alloc_buffer(1, scope="local")
        for ty in T.thread_binding(3, thread="threadIdx.y"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                with T.attr(
                    T.comm_reducer(lambda x, y: T.max(x, y), [T.float32(-1)]),
                    "reduce_scope",
                    T.reinterpret("handle", T.uint64(0)),
                ):
                    T.tvm_thread_allreduce(T.uint32(1), A[ty, tx], tx < 3, R[0], ty, tx)
                B[ty, tx] = R[0]

    a, b = numbers(3, 4), np.zeros((3, 4), "float32")
    evaluate(func, a, b)
    assert (b == a[:, :3].max()).all()


def test_a_barrier_of_all_blocks_is_not_built():
    @T.prim_func
    def func(A: T.Buffer(8)):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            A[tx] = T.float32(1)
            T.evaluate(T.tvm_storage_sync("global"))

    with pytest.raises(NotBuilt, match="a barrier of all blocks"):
        evaluate(func, numbers(8))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_symbolic_numbers_of_threads(n):
    @T.prim_func
    def func(a: T.handle, b: T.handle, n: T.int32):
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
        for bx in T.thread_binding(n, thread="blockIdx.x"):
            for _tx in T.thread_binding(1, thread="threadIdx.x"):
                B[bx] = A[bx] + T.float32(1)

    a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    evaluate(func, a, b, n)
    np.testing.assert_array_equal(b, a + 1)


def test_vector_loops_inside_threads():
    @T.prim_func
    def func(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        S = T.alloc_buffer((4, 8), scope="shared")
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for v in T.vectorized(8):
                S[tx, v] = A[tx, v]
            T.evaluate(T.tvm_storage_sync("shared"))
            for v in T.vectorized(8):
                B[tx, v] = S[3 - tx, v]

    a, b = numbers(4, 8), np.zeros((4, 8), "float32")
    check_program(func)
    evaluate(func, a, b)
    np.testing.assert_array_equal(b, a[::-1])
