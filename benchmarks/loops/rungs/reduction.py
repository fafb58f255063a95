"""Reductions: rows, columns, everything; sums, maxima, argmax, dot products, matrix times vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, scheduled
from loopwright import te
from loopwright.ir import Expr
from loopwright.schedule import Schedule


def along(axis: int, steps: Steps, rows: int, columns: int, dtype: str = "float32") -> Loops:
    """Sums along an axis of a matrix."""
    shape = (rows, columns)
    X = te.placeholder(shape, dtype, name="X")
    k = te.reduce_axis((0, shape[axis]), name="k")
    at = (lambda i: X[k, i]) if axis == 0 else (lambda i: X[i, k])
    Y = te.compute((shape[1 - axis],), lambda i: te.sum(at(i), axis=k), name="Y")
    x = uniform(shape, seed=1, dtype=dtype)

    def reference() -> list[Bounded]:
        return [Bounded(wide(x).sum(axis), gamma(shape[axis] + 1, dtype) * np.abs(wide(x)).sum(axis))]

    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned((shape[1 - axis],), dtype)], reference, rows * columns)


def maximum(axis: int, steps: Steps, rows: int, columns: int) -> Loops:
    """Maxima along an axis of a matrix."""
    shape = (rows, columns)
    X = te.placeholder(shape, name="X")
    k = te.reduce_axis((0, shape[axis]), name="k")
    at = (lambda i: X[k, i]) if axis == 0 else (lambda i: X[i, k])
    Y = te.compute((shape[1 - axis],), lambda i: te.max(at(i), axis=k), name="Y")
    x = uniform(shape, seed=1)
    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned((shape[1 - axis],))], lambda: [Bounded(wide(x).max(axis), 0)], rows * columns)


def argmax(rows: int, columns: int) -> Loops:
    """The first largest element of each row, and where it is."""

    def combine(left: tuple[Expr, Expr], right: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        keeps = te.any(left[1] > right[1], te.all(left[1] == right[1], left[0] < right[0]))
        return te.if_then_else(keeps, left[0], right[0]), te.if_then_else(left[1] > right[1], left[1], right[1])

    def identity(index: str, value: str) -> tuple[Expr, Expr]:
        return te.const((1 << 31) - 1, index), te.min_value(value)

    reducer = te.comm_reducer(combine, identity, name="argmax")
    X = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((0, columns), name="k")
    at, value = te.compute((rows,), lambda i: reducer((k, X[i, k]), axis=k), name="Y")
    x = uniform((rows, columns), seed=1)

    def reference() -> list[Bounded]:
        return [Bounded(x.argmax(1).astype("int64"), 0), Bounded(wide(x).max(1), 0)]

    function = te.create_prim_func([X, at, value])
    return Loops(function, [x], [aligned((rows,), "int32"), aligned((rows,))], reference, rows * columns)


def dot(steps: Steps, n: int, dtype: str = "float32") -> Loops:
    """The dot product of two vectors."""
    X, Y = te.placeholder((n,), dtype, name="X"), te.placeholder((n,), dtype, name="Y")
    k = te.reduce_axis((0, n), name="k")
    Z = te.compute((1,), lambda i: te.sum(X[k] * Y[k], axis=k), name="Z")
    x, y = uniform((n,), seed=1, dtype=dtype), uniform((n,), seed=2, dtype=dtype)

    def reference() -> list[Bounded]:
        return [Bounded(np.array([wide(x) @ wide(y)]), gamma(n + 1, dtype) * (np.abs(wide(x)) @ np.abs(wide(y))))]

    function = scheduled(te.create_prim_func([X, Y, Z]), steps)
    return Loops(function, [x, y], [aligned((1,), dtype)], reference, 2 * n)


def whole(steps: Steps, rows: int, columns: int) -> Loops:
    """The sum of a matrix."""
    X = te.placeholder((rows, columns), name="X")
    r, c = te.reduce_axis((0, rows), name="r"), te.reduce_axis((0, columns), name="c")
    Z = te.compute((1,), lambda i: te.sum(X[r, c], axis=[r, c]), name="Z")
    x = uniform((rows, columns), seed=1)

    def reference() -> list[Bounded]:
        return [Bounded(np.array([wide(x).sum()]), gamma(x.size + 1) * np.abs(wide(x)).sum())]

    function = scheduled(te.create_prim_func([X, Z]), steps)
    return Loops(function, [x], [aligned((1,))], reference, rows * columns)


def whole_int8(rows: int, columns: int) -> Loops:
    """The sum of a matrix of int8, where any order gives the same bits."""
    X = te.placeholder((rows, columns), "int8", name="X")
    r, c = te.reduce_axis((0, rows), name="r"), te.reduce_axis((0, columns), name="c")
    Z = te.compute((1,), lambda i: te.sum(X[r, c].astype("int32"), axis=[r, c]), name="Z")
    x = np.random.default_rng(0).integers(-128, 128, (rows, columns)).astype("int8")
    total = np.array([x.sum(dtype="int64")])
    return Loops(
        te.create_prim_func([X, Z]), [x], [aligned((1,), "int32")], lambda: [Bounded(total, 0)], rows * columns
    )


def gemv(transposed: bool, steps: Steps, rows: int, columns: int) -> Loops:
    """y = A · x, or Aᵀ · x."""
    A = te.placeholder((rows, columns), name="A")
    length, sums = (columns, rows) if transposed else (rows, columns)
    X = te.placeholder((sums,), name="X")
    k = te.reduce_axis((0, sums), name="k")
    at = (lambda i: A[k, i]) if transposed else (lambda i: A[i, k])
    Y = te.compute((length,), lambda i: te.sum(at(i) * X[k], axis=k), name="Y")
    a, x = uniform((rows, columns), seed=1), uniform((sums,), seed=2)

    def reference() -> list[Bounded]:
        matrix = wide(a).T if transposed else wide(a)
        return [Bounded(matrix @ wide(x), gamma(sums + 1) * (np.abs(matrix) @ np.abs(wide(x))))]

    function = scheduled(te.create_prim_func([A, X, Y]), steps)
    return Loops(function, [a, x], [aligned((length,))], reference, 2 * rows * columns)


# --- schedules ------------------------------------------------------------------------------------------------------


def rows_outside(sch: Schedule) -> None:
    """The matrix is walked in the order of memory."""
    i, k = sch.get_loops("Y")
    sch.reorder(k, i)


def partial_sums(lanes: int, vectorize: bool = False) -> Steps:
    """So many sums side by side, added up at the end."""

    def factor(sch: Schedule) -> None:
        _, lane = sch.split(sch.get_loops("Z")[-1], [None, lanes])
        sums = sch.rfactor(lane, 0)
        if vectorize:
            sch.vectorize(sch.get_loops(sums)[-1])

    return factor


def column_tiles(sch: Schedule) -> None:
    """Sums of 64 columns at a time stay in L1."""
    i, k = sch.get_loops("Y")
    i_0, i_1 = sch.split(i, [None, 64])
    sch.reorder(i_0, k, i_1)


MATRIX, SMALL = (1024, 2048), (19, 37)


def _rung(
    name: str,
    make: Callable[..., Loops],
    *before: object,
    shape: tuple[int, ...] = MATRIX,
    small: tuple[int, ...] = SMALL,
) -> Rung:
    return Rung(name, lambda *sizes: make(*before, *sizes), shape, small)


RUNGS = [
    _rung("row sums", along, 1, as_written),
    _rung("column sums, as written", along, 0, as_written, shape=(512, 1024)),
    _rung("column sums, rows outside", along, 0, rows_outside),
    _rung("column sums, tiles of 64", along, 0, column_tiles),
    _rung("row maxima", maximum, 1, as_written),
    _rung("column maxima, rows outside", maximum, 0, rows_outside),
    _rung("row argmax", argmax),
    _rung("sum of all", whole, as_written),
    _rung("sum of all, int8", whole_int8),
    _rung("dot", dot, as_written, shape=(1 << 20,), small=(1003,)),
    _rung("dot, 64 partial sums", dot, partial_sums(64), shape=(1 << 20,), small=(1024,)),
    _rung("dot, 64 partial sums in vectors", dot, partial_sums(64, vectorize=True), shape=(1 << 20,), small=(1024,)),
    _rung("matrix · vector", gemv, False, as_written),
    _rung("matrixᵀ · vector, rows outside", gemv, True, rows_outside),
]
