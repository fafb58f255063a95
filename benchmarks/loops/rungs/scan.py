"""Prefix sums: along a vector, along rows, down columns."""

from __future__ import annotations

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung
from loopwright.ir import PrimFunc
from loopwright.script import tir as T


def _loops(function: PrimFunc, axis: int, rows: int, columns: int) -> Loops:
    x = uniform((rows, columns), seed=1)

    def reference() -> list[Bounded]:
        bound = gamma((rows, columns)[axis] + 1) * np.cumsum(np.abs(wide(x)), axis)
        return [Bounded(np.cumsum(wide(x), axis), bound)]

    return Loops(function, [x], [aligned((rows, columns))], reference, rows * columns)


def rows(m: int, n: int) -> Loops:
    """Running sums along each row: the innermost loop carries the dependence."""

    @T.prim_func
    def scan(X: T.Buffer((m, n), "float32"), Y: T.Buffer((m, n), "float32")) -> None:
        T.func_attr({"tir.noalias": True})
        for i in range(m):
            Y[i, 0] = X[i, 0]
            for j in range(n - 1):
                Y[i, j + 1] = Y[i, j] + X[i, j + 1]

    return _loops(scan, 1, m, n)


def columns(m: int, n: int) -> Loops:
    """Running sums down each column, rows outside: the innermost loop carries nothing."""

    @T.prim_func
    def scan(X: T.Buffer((m, n), "float32"), Y: T.Buffer((m, n), "float32")) -> None:
        T.func_attr({"tir.noalias": True})
        for j in range(n):
            Y[0, j] = X[0, j]
        for i, j in T.grid(m - 1, n):
            Y[i + 1, j] = Y[i, j] + X[i + 1, j]

    return _loops(scan, 0, m, n)


def columns_inside(m: int, n: int) -> Loops:
    """The same, one column after the other."""

    @T.prim_func
    def scan(X: T.Buffer((m, n), "float32"), Y: T.Buffer((m, n), "float32")) -> None:
        T.func_attr({"tir.noalias": True})
        for j in range(n):
            Y[0, j] = X[0, j]
            for i in range(m - 1):
                Y[i + 1, j] = Y[i, j] + X[i + 1, j]

    return _loops(scan, 0, m, n)


RUNGS = [
    Rung("along rows", rows, (512, 1024), (17, 33)),
    Rung("down columns, rows outside", columns, (1024, 1024), (17, 33)),
    Rung("down columns, one by one", columns_inside, (512, 512), (17, 33)),
]
