"""allreduce_threads: a reduction over threads becomes partial results, and one call that joins them."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.evaluator import evaluate

TX = te.thread_axis("threadIdx.x")


def row_sums(predicate=None, factor=16, columns=64):
    A = te.placeholder((8, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.reduce_axis[0], factor=factor)
    BF = s.rfactor(B, inner)
    outer, rows = s[B].split(s[B].op.axis[0], factor=4)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(rows, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], TX)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    if predicate is not None:
        s[B].set_store_predicate(predicate)
    return s, [A, B]


def check(function, expected, *inputs):
    result = np.zeros_like(expected)
    evaluate(function, *inputs, result)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def matrix(columns=64):
    return np.random.default_rng(0).standard_normal((8, columns)).astype("float32")


@pytest.mark.parametrize(
    "predicate, text",
    [
        (None, "if threadIdx_x == 0:"),
        (TX.var.equal(3), "if threadIdx_x == 3:"),
        (TX.var > 8, "if threadIdx_x == 9:"),  # one of them is enough
    ],
)
def test_rfactor_on_threads(predicate, text):
    """A thread has one part; one that set_store_predicate chose stores the sum."""
    function = loopwright.lower(*row_sums(predicate))["main"]
    lines = [line.strip() for line in function.script().splitlines()]
    assert "T.tvm_thread_allreduce(T.uint32(1), B_rf_1[0], T.bool(True), reduce_temp0_1[0], threadIdx_x)" in lines
    assert any(["T.comm_reducer(lambda x, y: x + y, [T.float32(0)])" in line for line in lines])
    assert lines[-2:] == [text, "B[blockIdx_x * 4 + threadIdx_y] = reduce_temp0_1[0]"]
    check(function, matrix().sum(1), matrix())


def test_each_thread_adds_up_its_parts_first():
    A = te.placeholder((8, 60), name="A")
    k = te.reduce_axis((0, 60), name="k")
    B = te.compute((8,), lambda i: te.max(A[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, k = sch.get_loops("B")
    _, inner = sch.split(k, [None, 16])  # with a guard of the parts
    _, rows = sch.split(i, [None, 3])  # and one of the results
    sch.bind(rows, "threadIdx.y")
    sch.bind(inner, "threadIdx.x")
    function = loopwright.lower(sch.mod)["main"]
    call = "T.tvm_thread_allreduce(T.uint32(1), in_thread_B_1[0], T.bool(True), cross_thread_B_1[0], threadIdx_x)"
    assert call in function.script()
    check(function, matrix(60).max(1), matrix(60))


def test_threads_of_other_reductions_take_turns():
    """A reduction that does not start at the identity."""
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k, init=5.0), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.reduce_axis[0], TX)
    function = loopwright.lower(s, [A, B])["main"]
    assert "tvm_thread_allreduce" not in function.script() and "tvm_storage_sync" in function.script()
    check(function, matrix(16).sum(1) + 5, matrix(16))


def test_a_loop_around_that_belongs_to_the_reduction():
    A = te.placeholder((4, 16), name="A")
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 16), name="r")
    B = te.compute((1,), lambda i: te.sum(A[k, r], axis=[k, r]), name="B")
    C = te.compute((1,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[B].reorder(*s[B].op.reduce_axis, s[B].op.axis[0])  # a loop over results inside: one partial sum is not enough
    s[B].bind(s[B].op.reduce_axis[1], TX)
    function = loopwright.lower(s, [A, C])["main"]
    A_values = matrix(8).reshape(4, 16)
    check(function, A_values.sum(keepdims=True).reshape(1) + 1, A_values)
