"""A running extremum is a branch that is nearly always predicted; other choices stay selects."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, topi
from loopwright.build import build
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.script import tir as T
from loopwright.target import Target, describe
from loopwright.transform import lower

AVX2 = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell")


def text_of(func) -> str:
    return emit_module(lower(func, AVX2), describe(AVX2))


@pytest.mark.parametrize("keeps_first", [True, False])
def test_a_running_maximum_keeps_what_it_has(keeps_first):
    @T.prim_func
    def first(A: T.Buffer((64,)), best: T.Buffer((1,)), at: T.Buffer((1,), "int32")):
        for k in range(64):
            at[0] = T.Select(best[0] >= A[k], at[0], k)
            best[0] = T.Select(best[0] >= A[k], best[0], A[k])

    @T.prim_func
    def second(A: T.Buffer((64,)), best: T.Buffer((1,)), at: T.Buffer((1,), "int32")):
        for k in range(64):
            at[0] = T.if_then_else(A[k] > best[0], k, at[0])
            best[0] = T.if_then_else(A[k] > best[0], A[k], best[0])

    text = text_of(first if keeps_first else second)
    assert ("i32 2000, i32 1" if keeps_first else "i32 1, i32 2000") in text
    assert text.count("!prof") == 2


def test_element_wise_choices_have_no_odds():
    @T.prim_func
    def relu(A: T.Buffer((64, 64)), B: T.Buffer((64,)), C: T.Buffer((64, 64))):
        for i, j in T.grid(64, 64):
            C[i, j] = T.Select(A[i, j] > 0.0, A[i, j], T.float32(0))
        for i, j in T.grid(64, 64):
            C[i, j] = T.Select(B[i] > A[i, j], B[i], A[i, j])

    @T.prim_func
    def positives(A: T.Buffer((64,)), C: T.Buffer((1,))):
        for k in range(64):
            C[0] = T.Select(A[k] > 0.0, C[0] + A[k], C[0])

    assert "!prof" not in text_of(relu)
    assert "!prof" not in text_of(positives)


@pytest.mark.parametrize("values", ["random", "rising", "falling", "equal", "nan"])
def test_argmax_by_branches_is_argmax(values):
    x = {
        "random": np.random.default_rng(3).integers(0, 9, (5, 40)).astype("float32"),
        "rising": np.tile(np.arange(40, dtype="float32"), (5, 1)),
        "falling": np.tile(-np.arange(40, dtype="float32"), (5, 1)),
        "equal": np.ones((5, 40), "float32"),
        "nan": np.where(np.arange(40) % 7 == 6, np.nan, np.arange(40)).astype("float32")[None].repeat(5, 0),
    }[values]
    A = te.placeholder((5, 40), name="A")
    out = np.zeros(5, "int32")
    build([A, topi.argmax(A, axis=1)])(x, out)
    np.testing.assert_array_equal(out, x.argmax(1))
