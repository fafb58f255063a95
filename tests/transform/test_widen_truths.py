"""widen_truths: truth values that loops combine are bytes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.script import tir as T
from loopwright.transform import widen_truths
from tests.transform.before_after import check, unchanged


def test_partial_results():
    @T.prim_func
    def before(A: T.Buffer((6, 4), "bool"), C: T.Buffer((4,), "bool")):
        B = T.decl_buffer((4,), "bool", scope="local")
        for i in range(4):
            B[i] = T.bool(False)
        for k, i in T.grid(6, 4):
            B[i] = B[i] or A[k, i]
        for i in range(4):
            C[i] = B[i]

    @T.prim_func
    def after(A: T.Buffer((6, 4), "bool"), C: T.Buffer((4,), "bool")):
        B = T.decl_buffer((4,), "uint8", scope="local")
        for i in range(4):
            B[i] = T.uint8(0)
        for k, i in T.grid(6, 4):
            B[i] = T.bitwise_or(B[i], T.Cast("uint8", A[k, i]))
        for i in range(4):
            C[i] = B[i] != T.uint8(0)

    check(widen_truths, before, after)


def test_memory_of_the_caller_and_memory_that_others_see_stay():
    @T.prim_func
    def outside(A: T.Buffer((6, 4), "bool"), C: T.Buffer((4,), "bool")):
        for k, i in T.grid(6, 4):
            C[i] = C[i] and A[k, i]

    @T.prim_func
    def seen(A: T.Buffer((6, 4), "bool"), C: T.Buffer((4,), "uint8")):
        B = T.decl_buffer((4,), "bool", scope="local")
        V = T.decl_buffer((4,), "uint8", data=B.data, scope="local")
        for k, i in T.grid(6, 4):
            B[i] = B[i] and A[k, i]
        for i in range(4):
            C[i] = V[i]

    unchanged(widen_truths, outside)
    unchanged(widen_truths, seen)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 127, 1000])
def test_any_and_all(size):
    data = te.placeholder((3, size), "bool", name="data")
    outputs = [topi.any(data, 1), topi.all(data, 1), topi.any(data), topi.all(data)]
    function = lw.build([data, *outputs], target="llvm", autosched=True)
    rows = np.zeros((3, size), bool)
    rows[1] = True
    rows[2, size // 2] = True
    for x in (rows, np.zeros_like(rows), np.ones_like(rows), ~rows):
        results = [np.empty(shape, bool) for shape in ((3,), (3,), (), ())]
        function(x, *results)
        for got, right in zip(results, (x.any(1), x.all(1), x.any(), x.all()), strict=True):
            np.testing.assert_array_equal(got, right)
