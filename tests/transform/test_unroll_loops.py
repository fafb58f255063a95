"""unroll_loops: loops written out."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.transform import PassContext, UnrollExtentUnknown, unroll_loops
from tests.transform.before_after import check, unchanged


def test_marked_loops_are_written_out():
    @T.prim_func
    def before(A: T.Buffer((6,)), B: T.Buffer((6,))):
        for o in range(2):
            for i in T.unroll(3):
                B[o * 3 + i] = A[i * 2]

    @T.prim_func
    def after(A: T.Buffer((6,)), B: T.Buffer((6,))):
        for o in range(2):
            B[o * 3] = A[0]
            B[o * 3 + 1] = A[2]
            B[o * 3 + 2] = A[4]

    check(unroll_loops, before, after)


def test_each_copy_has_its_own_variables():
    @T.prim_func
    def before(A: T.Buffer((6,))):
        for i in T.unroll(2):
            for j in range(3):
                with T.LetStmt(i * 3 + j) as x:
                    A[x] = T.Cast("float32", x)

    @T.prim_func
    def after(A: T.Buffer((6,))):
        for j in range(3):
            with T.LetStmt(j) as x:
                A[x] = T.Cast("float32", x)
        for j in range(3):
            with T.LetStmt(3 + j) as x:
                A[x] = T.Cast("float32", x)

    check(unroll_loops, before, after)


def test_serial_loops_on_request():
    @T.prim_func
    def before(A: T.Buffer((8,))):
        for i in range(2):
            A[i] = T.float32(1)
        for i in range(8):
            A[i] = A[i] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,))):
        A[0] = T.float32(1)
        A[1] = T.float32(1)
        for i in range(8):
            A[i] = A[i] + T.float32(1)

    unchanged(unroll_loops, before)
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 4}}):
        check(unroll_loops, before, after)
    with PassContext(config={"tir.UnrollLoop": {"auto_max_extent": 4}}):
        check(unroll_loops, before, after)


def test_marks_may_be_left_to_the_code_generator():
    @T.prim_func
    def func(A: T.Buffer((8,))):
        for i in T.unroll(8):
            A[i] = T.float32(1)

    with PassContext(config={"tir.UnrollLoop": {"explicit_unroll": False}}):
        unchanged(unroll_loops, func)


def test_the_extent_must_be_known():
    @T.prim_func
    def func(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in T.unroll(n):
            A[i] = T.float32(0)

    with pytest.raises(UnrollExtentUnknown, match="unrolled loop i has extent n, which is not a constant"):
        unroll_loops(func)


def test_a_loop_of_no_iterations():
    @T.prim_func
    def before(A: T.Buffer((8,))):
        for i in T.unroll(0):
            A[i] = T.float32(1)
        A[0] = T.float32(2)

    @T.prim_func
    def after(A: T.Buffer((8,))):
        A[0] = T.float32(2)

    got = unroll_loops(before)
    assert "T.unroll" not in got.script()
