"""Scans: cumulative sums, along rows (each row a chain of its own) and down columns."""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, Case, Numpy, Problem, Torch, aligned, uniform


def cumulative_sum(axis: int, rows: int, columns: int) -> Problem:
    """Every element is the sum of those up to it."""
    x = uniform((rows, columns))

    def program() -> Any:
        return _down_columns(rows, columns) if axis == 0 else _along_rows(rows, columns)

    def reference() -> list[Bounded]:
        value = wide(x)
        return [Bounded(np.cumsum(value, axis), gamma(x.shape[axis]) * np.cumsum(np.abs(value), axis))]

    return Problem(
        program,
        [x],
        [aligned((rows, columns))],
        reference,
        {
            "numpy": Numpy(lambda x, out: lambda: np.cumsum(x[0], axis=axis, out=out[0])),
            "torch": Torch(lambda torch, x, out: lambda: torch.cumsum(x[0], axis, out=out[0])),
        },
        flops=rows * columns,
    )


def _down_columns(rows: int, columns: int) -> Any:
    from loopwright import te

    X = te.placeholder((rows, columns), name="X")
    S = te.placeholder((rows, columns), name="S")
    first = te.compute((1, columns), lambda _, j: X[0, j], name="first")
    step = te.compute((rows, columns), lambda t, j: S[t - 1, j] + X[t, j], name="step")
    return [X, te.scan(first, step, S, name="Y")]


@no_type_check  # the inner function is script, not Python
def _along_rows(rows: int, columns: int) -> Any:
    from loopwright.script import tir as T

    @T.prim_func
    def main(X: T.Buffer((rows, columns), "float32"), Y: T.Buffer((rows, columns), "float32")):  # type: ignore[valid-type]
        for i in range(rows):
            with T.block("first"):
                vi = T.axis.spatial(rows, i)
                Y[vi, 0] = X[vi, 0]
        for i, t in T.grid(rows, columns - 1):
            with T.block("step"):
                vi = T.axis.spatial(rows, i)
                vt = T.axis.scan((1, columns), t + 1)
                Y[vi, vt] = Y[vi, vt - 1] + X[vi, vt]

    return main


_NEAR = [(17, 31), (2, 1), (1, 2), (65, 129)]

CASES = [
    Case(
        f"cumulative sum {text}, 1024²",
        cumulative_sum,
        (axis, 1024, 1024),
        [(axis, *near) for near in _NEAR],
        quick=axis == 1,
    )
    for axis, text in ((1, "along rows"), (0, "down columns"))
]
