"""expand_powers: a power with a small constant exponent becomes products, a quotient or a square root."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.script import tir as T
from loopwright.transform import expand_powers
from tests.transform.before_after import check, unchanged

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-40, 1e-38, 3.4e38, -3.4e38, 1e-20, 2.0, 0.5]


def test_a_cube():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = T.pow(A[i], T.float32(3))

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = A[i] * A[i] * A[i]

    check(expand_powers, before, after, exact=False)


def test_a_base_that_is_computed_is_computed_once():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = T.pow(T.exp(A[i]), T.float32(2))

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            x = T.float32()
            B[i] = T.Let(x * x, where={x: T.exp(A[i])})

    check(expand_powers, before, after, exact=False)


@pytest.mark.parametrize("exponent", [0.0, 2.5, 5.0, -2.0, 0.25])
def test_others_stay(exponent):
    @T.prim_func
    def stays(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = T.pow(A[i], T.float32(exponent))

    unchanged(expand_powers, stays)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0, 4.0, -1.0, 0.5, -0.5])
def test_values_are_those_of_the_power(exponent, dtype):
    """Within 1.5 ulp of the power in twice the precision, and the special values of C."""
    from loopwright.runtime.dtype import DataType

    kind = DataType(dtype).numpy()
    random = np.random.default_rng(3)
    span = {"float16": 8, "bfloat16": 60, "float32": 60, "float64": 200}[dtype]
    with np.errstate(over="ignore", under="ignore"):
        given = (np.exp(random.uniform(-span, span, 500)) * random.choice([-1, 1], 500)).astype(kind)
        given[: len(SPECIAL)] = np.array(SPECIAL).astype(kind)
    A = te.placeholder(given.shape, dtype, name="A")
    B = te.compute(A.shape, lambda i: te.power(A[i], te.const(exponent, dtype)), name="B")
    function = lw.build(te.create_prim_func([A, B]), "llvm")
    got = np.empty_like(given)
    function(given, got)
    wide = np.longdouble if dtype == "float64" else np.float64
    with np.errstate(all="ignore"):
        exact = np.power(given.astype(wide), np.full(given.shape, exponent, wide))  # an array: no shortcut for 0.5
        rounded = exact.astype(kind)
        error = np.abs(got.astype(wide) - exact) / np.abs(np.spacing(rounded)).astype(wide)
        right = (got == rounded) | (np.isnan(got) & np.isnan(rounded)) | (error <= 1.5)
    assert right.all(), (given[~right], got[~right], rounded[~right])
    signs = np.isnan(rounded) | (np.signbit(got) == np.signbit(rounded))
    assert signs.all(), given[~signs]
