"""Element-wise loops: arithmetic, conversions, conditions, broadcasts."""

from __future__ import annotations

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Array, Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung
from loopwright import te
from loopwright.ir import Expr


def polynomial(n: int) -> Loops:
    """A polynomial of degree 6 by Horner's rule."""
    factors = [0.5, -1.25, 2.0, 0.75, -0.5, 1.5, -0.25]
    X = te.placeholder((n,), name="X")

    def value(x: Expr) -> Expr:
        total = te.const(factors[0], "float32")
        for factor in factors[1:]:
            total = total * x + te.const(factor, "float32")
        return total

    Y = te.compute((n,), lambda i: value(X[i]), name="Y")
    x = uniform((n,), seed=1)

    def reference() -> list[Bounded]:
        return [Bounded(np.polyval(factors, wide(x)), gamma(13) * np.polyval(np.abs(factors), np.abs(wide(x))))]

    return Loops(te.create_prim_func([X, Y]), [x], [aligned((n,))], reference, 12 * n)


def scaled_rows(rows: int, columns: int) -> Loops:
    """relu(x · scale + shift), the factors broadcast along columns."""
    X, A, B = (
        te.placeholder((rows, columns), name="X"),
        te.placeholder((rows,), name="A"),
        te.placeholder((rows,), name="B"),
    )
    Y = te.compute((rows, columns), lambda i, j: te.max(X[i, j] * A[i] + B[i], te.const(0.0, "float32")), name="Y")
    x, a, b = uniform((rows, columns), seed=1), uniform((rows,), seed=2), uniform((rows,), seed=3)

    def reference() -> list[Bounded]:
        value, size = (
            wide(x) * wide(a)[:, None] + wide(b)[:, None],
            np.abs(wide(x) * wide(a)[:, None]) + np.abs(b)[:, None],
        )
        return [Bounded(np.maximum(value, 0), gamma(2) * size)]

    return Loops(
        te.create_prim_func([X, A, B, Y]), [x, a, b], [aligned((rows, columns))], reference, 3 * rows * columns
    )


def quantize(n: int) -> Loops:
    """float32 to int8: scaled, clipped, truncated."""
    X = te.placeholder((n,), name="X")
    low, high = te.const(-127.0, "float32"), te.const(127.0, "float32")
    Y = te.compute((n,), lambda i: te.min(te.max(X[i] * 100.0, low), high).astype("int8"), name="Y")
    x = uniform((n,), -2, 2, seed=1)

    def exact(x: Array) -> Array:
        return np.trunc(np.clip(x * np.float32(100.0), -127, 127)).astype("int64")

    return Loops(te.create_prim_func([X, Y]), [x], [aligned((n,), "int8")], lambda: [Bounded(exact(x), 0)], n)


def selected(n: int) -> Loops:
    """One of two formulas, by the sign."""
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: te.if_then_else(X[i] > 0, X[i] * X[i], X[i] * -0.125), name="Y")
    x = uniform((n,), seed=1)

    def reference() -> list[Bounded]:
        exact = np.where(x > 0, wide(x) ** 2, wide(x) * -0.125)
        return [Bounded(exact, gamma(1) * np.abs(exact))]

    return Loops(te.create_prim_func([X, Y]), [x], [aligned((n,))], reference, n)


RUNGS = [
    Rung("polynomial of degree 6", polynomial, (1 << 18,), (1003,)),
    Rung("scale, shift, relu by rows", scaled_rows, (512, 1024), (17, 33)),
    Rung("float32 to int8", quantize, (1 << 19,), (1003,)),
    Rung("one of two formulas", selected, (1 << 18,), (1003,)),
]
