"""skip_asserts and check_bounds: passes that settings switch on."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.script import tir as T
from loopwright.transform import PassContext, check_bounds, lower, skip_asserts
from tests.transform.before_after import check, unchanged


def test_asserts_are_left_out():
    @T.prim_func
    def before(A: T.Buffer((8,)), n: T.int32):
        assert n < 100, "n is small"
        for i in range(8):
            assert i < n + 8, "inside"
            A[i] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            A[i] = T.float32(1)

    check(skip_asserts, before, after)
    with PassContext(config={"tir.disable_assert": True}):
        assert "assert" not in lower(before, "llvm")["before"].script()
    assert "assert" in lower(before, "llvm")["before"].script()


def test_indices_are_checked():
    @T.prim_func
    def before(A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = A[I[i]]

    @T.prim_func
    def after(A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(8):
            assert i >= 0 and i < 8 and I[i] >= 0 and I[i] < 8 and i >= 0 and i < 8, "I, A, B: index out of bounds"
            B[i] = A[I[i]]

    check(check_bounds, before, after, again=False)
    a, b = np.ones(8, "float32"), np.zeros(8, "float32")
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        lowered = lower(before, "llvm")
    with pytest.raises(Exception, match="I, A, B: index out of bounds"):
        evaluate(lowered, a, np.array([0, 1, 2, 3, 4, 5, 6, 8], "int32"), b)


def test_a_guarded_access_is_checked_under_its_guard():
    @T.prim_func
    def func(A: T.Buffer((4,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = T.if_then_else(i < 4, A[i], T.float32(0))

    checked = check_bounds(func)
    a, b = np.ones(4, "float32"), np.zeros(8, "float32")
    evaluate(checked, a, b)
    np.testing.assert_array_equal(b, [1, 1, 1, 1, 0, 0, 0, 0])


def test_nothing_to_check():
    @T.prim_func
    def func(A: T.Buffer((4,))):
        for i in range(4):
            T.evaluate(T.call_extern("int32", "beep", i))

    unchanged(check_bounds, func)


def test_loads_outside_stores_are_checked():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            if A[A[i]] > 0:
                B[i] = 1
            for _ in range(A[B[i]]):
                with T.LetStmt(A[A[i] + 1]) as x:
                    B[0] = x

    @T.prim_func
    def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.Assert(i >= 0 and i < 8 and A[i] >= 0 and A[i] < 8, "A: index out of bounds"):
                if A[A[i]] > 0:
                    assert i >= 0 and i < 8, "B: index out of bounds"
                    B[i] = 1
            assert i >= 0 and i < 8 and B[i] >= 0 and B[i] < 8, "B, A: index out of bounds"
            for _ in range(A[B[i]]):
                assert i >= 0 and i < 8 and A[i] + 1 >= 0 and A[i] + 1 < 8, "A: index out of bounds"
                with T.LetStmt(A[A[i] + 1]) as x:
                    assert T.bool(True), "B: index out of bounds"
                    B[0] = x

    check(check_bounds, before, after, again=False)
