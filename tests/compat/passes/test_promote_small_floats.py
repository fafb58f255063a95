"""BF16ComputeLegalize, FP8ComputeLegalize and the passes that store what is left as integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.ir import Allocate, IRModule, collect
from loopwright.script import tir as T


def program(dtype):
    @T.prim_func
    def main(A: T.Buffer((64,), dtype), B: T.Buffer((64,), dtype), D: T.Buffer((64,), dtype)):
        for i in range(64):
            C = T.decl_buffer((1,), dtype)
            C[0] = A[i] + B[i]
            D[i] = C[0] * A[i]

    return main


@pytest.mark.parametrize(
    ("dtype", "wide", "passes"),
    [
        ("bfloat16", "float32", [tir.transform.BF16ComputeLegalize(), tir.transform.BF16StorageLegalize()]),
        ("e5m2_float8", "float16", [tir.transform.FP8ComputeLegalize("float16"), tir.transform.FP8StorageLegalize()]),
        ("e4m3_float8", "float32", [tir.transform.FP8ComputeLegalize(), tir.transform.FP8StorageLegalize()]),
    ],
)
def test_values_are_those_of_the_wide_type_rounded_once(dtype, wide, passes):
    mod = IRModule({"main": program(dtype)})
    for run in passes:
        mod = run(mod)
    assert str(collect(mod["main"].body, Allocate)[0].dtype) == wide
    numpy_type = {"bfloat16": "bfloat16", "e5m2_float8": "float8_e5m2", "e4m3_float8": "float8_e4m3fn"}[dtype]
    small = np.dtype(getattr(ml_dtypes, numpy_type))
    random = np.random.default_rng(0)
    a, b = (random.uniform(-2, 2, 64).astype(small) for _ in range(2))
    a[0] = b[0] = 0  # zero stays zero
    d = np.zeros(64, small)
    evaluate(mod["main"], a, b, d)
    want = ((a.astype(wide) + b.astype(wide)) * a.astype(wide)).astype(small)
    np.testing.assert_array_equal(d.astype("float32"), want.astype("float32"))


def test_pointers_become_pointers_to_integers():
    @T.prim_func
    def main(p: T.handle("bfloat16")):
        A = T.decl_buffer((4,), "bfloat16", data=p)
        A[0] = A[1]

    stored = tir.transform.BF16StorageLegalize()(main)
    assert "A_1[0] = A_1[1]" in str(stored) or "A[0] = A[1]" in str(stored)
    assert 'T.handle("uint16")' in str(stored)
