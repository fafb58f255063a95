"""legalize_low_precision: small floats compute in float32 and round back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.script import tir as T
from loopwright.transform import legalize_low_precision
from tests.transform.before_after import ARM, PLAIN, check, unchanged


def test_each_operation_rounds_to_its_type():
    @T.prim_func
    def before(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "bfloat16")):
        for i in range(8):
            B[i] = A[i] * B[i] + A[i]

    @T.prim_func
    def after(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "bfloat16")):
        for i in range(8):
            B[i] = T.Cast(
                "bfloat16",
                T.Cast("float32", T.Cast("bfloat16", T.Cast("float32", A[i]) * T.Cast("float32", B[i])))
                + T.Cast("float32", A[i]),
            )

    check(legalize_low_precision, before, after)


def test_float16_is_native_where_the_machine_has_it():
    @T.prim_func
    def before(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.exp(A[i] + B[i])

    @T.prim_func
    def after_arm(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.Cast("float16", T.exp(T.Cast("float32", A[i] + B[i])))

    @T.prim_func
    def after_plain(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.Cast(
                "float16",
                T.exp(T.Cast("float32", T.Cast("float16", T.Cast("float32", A[i]) + T.Cast("float32", B[i])))),
            )

    check(legalize_low_precision, before, after_arm, ARM)
    check(legalize_low_precision, before, after_plain, PLAIN)


def test_comparisons_and_predicates_give_truth_values():
    @T.prim_func
    def before(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.Select(A[i] < B[i] and not T.isnan(A[i]), A[i], B[i])

    @T.prim_func
    def after(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.Select(
                T.Cast("float32", A[i]) < T.Cast("float32", B[i]) and not T.isnan(T.Cast("float32", A[i])), A[i], B[i]
            )

    check(legalize_low_precision, before, after)


def test_casts_go_by_float32():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "bfloat16"), C: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.Cast("bfloat16", A[i])
            C[i] = T.Cast("float16", B[i])

    @T.prim_func
    def after(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "bfloat16"), C: T.Buffer((8,), "float16")):
        for i in range(8):
            B[i] = T.Cast("bfloat16", T.Cast("float32", A[i]))
            C[i] = T.Cast("float16", T.Cast("float32", B[i]))

    check(legalize_low_precision, before, after)


def test_literals_are_converted():
    @T.prim_func
    def before(A: T.Buffer((8,), "float16")):
        for i in range(8):
            A[i] = A[i] * T.float16(0.5)

    @T.prim_func
    def after(A: T.Buffer((8,), "float16")):
        for i in range(8):
            A[i] = T.Cast("float16", T.Cast("float32", A[i]) * T.float32(0.5))

    check(legalize_low_precision, before, after)


def test_other_types_and_moves_stay():
    @T.prim_func
    def func(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "bfloat16"), C: T.Buffer((8,))):
        for i in range(8):
            B[i] = T.if_then_else(i < 4, A[i], T.bfloat16(0))
            C[i] = C[i] * C[i] + T.Cast("float32", A[i])

    unchanged(legalize_low_precision, func)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_rounding_twice_is_rounding_once(sign):
    """Every pair of some float16 values: through float32 and back is the float16 result itself."""
    random = np.random.default_rng(1)
    a = random.integers(0, 1 << 16, 4000, dtype="uint16").view("float16")
    b = random.integers(0, 1 << 16, 4000, dtype="uint16").view("float16")
    with np.errstate(all="ignore"):
        wide = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[sign]
        exact = wide(a.astype("float64"), b.astype("float64")).astype("float16")
        through = wide(a.astype("float32"), b.astype("float32")).astype("float16")
    np.testing.assert_array_equal(exact, through)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "e4m3_float8", "e5m2_float8"])
def test_all_small_types_keep_their_values(dtype):
    @T.prim_func
    def before(A: T.Buffer((64,), dtype), B: T.Buffer((64,), dtype)):
        for i in range(64):
            B[i] = T.max(A[i] + B[i], A[i] * B[i]) - T.abs(A[i])

    numpy_type = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}.get(dtype)
    if numpy_type is None:
        numpy_type = ml_dtypes.float8_e4m3fn if "e4m3" in dtype else ml_dtypes.float8_e5m2
    random = np.random.default_rng(2)
    a, b = (random.standard_normal(64).astype(numpy_type) for _ in range(2))
    with PLAIN:
        after = legalize_low_precision(before)
    b_after = b.copy()
    evaluate(before, a, b)
    evaluate(after, a, b_after)
    np.testing.assert_array_equal(b.astype("float32"), b_after.astype("float32"))
