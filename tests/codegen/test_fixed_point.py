"""q_multiply_shift in native code against the evaluator, at the ends of the range and in vectors."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import ir
from loopwright.build import build
from loopwright.evaluator import evaluate
from loopwright.script import tir as T

EDGES = [0, 1, -1, 2, -2, 3, 2**31 - 1, -(2**31), 2**30, -(2**30), 12345, -98765, 715827883]


def _multiply_shift(*args: object) -> ir.Expr:
    return ir.Call("int32", ir.Op.get("tir.q_multiply_shift"), tuple(ir.as_expr(arg) for arg in args))


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.array(EDGES, "int32"), np.array(EDGES, "int32"))
    return x.ravel().copy(), y.ravel().copy()


def _both(function: ir.PrimFunc, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    native, oracle = np.zeros_like(inputs[0]), np.zeros_like(inputs[0])
    build(function)(*inputs, native)
    evaluate(function, *inputs, oracle)
    return native, oracle


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize(("q", "s"), [(31, 0), (31, -3), (31, 1), (31, 7), (0, 0), (1, 0), (31, -31), (15, 2)])
def test_constant_shifts(q, s, vector):
    kind = T.vectorized if vector else T.serial
    x, y = _pairs()
    n = len(x)

    @T.prim_func
    def func(X: T.Buffer((n,), "int32"), Y: T.Buffer((n,), "int32"), Z: T.Buffer((n,), "int32")):
        for i in kind(n):
            Z[i] = _multiply_shift(X[i], Y[i], q, s)

    native, oracle = _both(func, x, y)
    np.testing.assert_array_equal(native, oracle)


def test_shifts_known_only_at_run_time():
    x, y = _pairs()
    shifts = np.resize(np.array([-40, -31, -1, 0, 1, 5, 30], "int32"), len(x))
    n = len(x)

    @T.prim_func
    def func(
        X: T.Buffer((n,), "int32"), Y: T.Buffer((n,), "int32"), S: T.Buffer((n,), "int32"), Z: T.Buffer((n,), "int32")
    ):
        for i in range(n):
            Z[i] = _multiply_shift(X[i], Y[i], 31, S[i])

    native, oracle = _both(func, x, y, shifts)
    np.testing.assert_array_equal(native, oracle)


@pytest.mark.parametrize("flags", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_per_axis(flags):
    x, y = _pairs()
    n = len(x)
    left, right = (np.resize(np.array(values, "int32"), n) for values in ([0, 1, 4, 9], [0, 3, 7, 1, 2]))
    shifts_left, shifts_right = flags

    @T.prim_func
    def func(
        X: T.Buffer((n,), "int32"),
        Y: T.Buffer((n,), "int32"),
        L: T.Buffer((n,), "int32"),
        R: T.Buffer((n,), "int32"),
        Z: T.Buffer((n,), "int32"),
    ):
        for i in range(n):
            Z[i] = T.q_multiply_shift_per_axis(X[i], Y[i], L[i], R[i], 31, shifts_left, shifts_right)

    native, oracle = _both(func, x, y, left, right)
    np.testing.assert_array_equal(native, oracle)
