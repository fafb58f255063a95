"""Stencils: one, two and three dimensions, tiled, fused stages, and sweeps in place that carry a dependence."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Array, Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, scheduled
from loopwright import te
from loopwright.ir import Expr, PrimFunc, Var
from loopwright.schedule import Schedule
from loopwright.script import tir as T

Taps = dict[tuple[int, ...], float]


def star(dimensions: int, reach: int = 1) -> Taps:
    """The neighbours along each axis and the point itself, with weights of all sizes."""
    taps: Taps = {(0,) * dimensions: 0.5}
    for axis, step in itertools.product(range(dimensions), [s for s in range(-reach, reach + 1) if s]):
        taps[tuple(step if d == axis else 0 for d in range(dimensions))] = 0.125 + 0.03125 * len(taps)
    return taps


def box(dimensions: int) -> Taps:
    """All neighbours."""
    points = itertools.product((-1, 0, 1), repeat=dimensions)
    return {point: 0.0625 * (1 + number) for number, point in enumerate(points)}


def _weighted(x: Array, taps: Taps, reach: int) -> Array:
    inner = [n - 2 * reach for n in x.shape]
    parts = []
    for point, weight in taps.items():
        window = tuple(slice(reach + at, reach + at + n) for at, n in zip(point, inner))
        parts.append(weight * x[window])
    return sum(parts)  # type: ignore[return-value]


def stencil(steps: Steps, taps: Taps, *shape: int) -> Loops:
    """Each point becomes a weighted sum of its neighbours; the borders are left out."""
    reach = max(abs(at) for point in taps for at in point)
    whole = tuple(n + 2 * reach for n in shape)
    X = te.placeholder(whole, name="X")

    def point(*at: Var) -> Expr:
        parts = [X[tuple(i + (reach + d) for i, d in zip(at, tap))] * weight for tap, weight in taps.items()]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    Y = te.compute(shape, point, name="Y")
    x = uniform(whole, seed=1)

    def reference() -> list[Bounded]:
        return [
            Bounded(_weighted(wide(x), taps, reach), gamma(len(taps) + 1) * _weighted(np.abs(wide(x)), taps, reach))
        ]

    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned(shape)], reference, (2 * len(taps) - 1) * int(np.prod(shape)))


def blur(steps: Steps, rows: int, columns: int) -> Loops:
    """A separable 3 × 3 blur: along rows into H, then along columns."""
    X = te.placeholder((rows + 2, columns + 2), name="X")
    H = te.compute((rows + 2, columns), lambda i, j: X[i, j] + X[i, j + 1] + X[i, j + 2], name="H")
    Y = te.compute((rows, columns), lambda i, j: (H[i, j] + H[i + 1, j] + H[i + 2, j]) * (1 / 9), name="Y")
    x = uniform((rows + 2, columns + 2), seed=1)

    def exact(x: Array) -> Array:
        h = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
        return (h[:-2] + h[1:-1] + h[2:]) / 9

    def reference() -> list[Bounded]:
        return [Bounded(exact(wide(x)), gamma(6) * exact(np.abs(wide(x))))]

    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned((rows, columns))], reference, 5 * rows * columns)


def jacobi_twice(steps: Steps, rows: int, columns: int) -> Loops:
    """Two steps of Jacobi's method, on a shrinking region."""

    def swept(x: te.Tensor, name: str) -> te.Tensor:
        shape = (int(x.shape[0]) - 2, int(x.shape[1]) - 2)
        return te.compute(
            shape,
            lambda i, j: (x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] + x[i + 1, j + 1]) * 0.2,
            name=name,
        )

    X = te.placeholder((rows + 4, columns + 4), name="X")
    H = swept(X, "H")
    Y = swept(H, "Y")
    x = uniform((rows + 4, columns + 4), seed=1)

    def exact(x: Array) -> Array:
        for _ in range(2):
            x = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[1:-1, 1:-1]) * 0.2
        return x

    def reference() -> list[Bounded]:
        return [Bounded(exact(wide(x)), gamma(14) * exact(np.abs(wide(x))))]

    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned((rows, columns))], reference, 10 * rows * columns)


def gauss_seidel(rows: int, columns: int) -> Loops:
    """A sweep down the rows that reads the row above as it is now: each row depends on the one before."""

    @T.prim_func
    def sweep(X: T.Buffer((rows, columns), "float32"), Y: T.Buffer((rows, columns), "float32")) -> None:
        T.func_attr({"tir.noalias": True})
        for j in range(columns):
            Y[0, j] = X[0, j]
        for i, j in T.grid(rows - 1, columns):
            Y[i + 1, j] = X[i + 1, j] + Y[i, j] * T.float32(0.5)

    x = uniform((rows, columns), seed=1)

    def exact(x: Array) -> Array:
        y = x.copy()
        for i in range(1, rows):
            y[i] += 0.5 * y[i - 1]
        return y

    def reference() -> list[Bounded]:
        return [Bounded(exact(wide(x)), gamma(2 * rows) * exact(np.abs(wide(x))))]

    function: PrimFunc = sweep
    return Loops(function, [x], [aligned((rows, columns))], reference, 2 * rows * columns)


# --- schedules ------------------------------------------------------------------------------------------------------


def tiles(*sizes: int | None) -> Steps:
    """Tiles of those sizes; None leaves an axis whole."""

    def tile(sch: Schedule) -> None:
        outer, inner = [], []
        for loop, size in zip(sch.get_loops("Y"), sizes, strict=True):
            if size is None:
                inner.append(loop)
            else:
                several, one = sch.split(loop, [None, size])
                outer.append(several)
                inner.append(one)
        sch.reorder(*outer, *inner)

    return tile


def vectors(lanes: int) -> Steps:
    """The innermost loop in vectors."""

    def vectorize(sch: Schedule) -> None:
        _, lane = sch.split(sch.get_loops("Y")[-1], [None, lanes])
        sch.vectorize(lane)

    return vectorize


def columns_first(sch: Schedule) -> None:
    """The innermost loop walks down a column."""
    i, j = sch.get_loops("Y")
    sch.reorder(j, i)


def fused_rows(sch: Schedule) -> None:
    """The three rows of the first stage that a row needs are computed right before it."""
    sch.compute_at("H", sch.get_loops("Y")[0])
    sch.sink_alloc("H", "H")


def inlined(sch: Schedule) -> None:
    """The first stage is computed wherever it is read."""
    sch.compute_inline("H")


def fused_tiles(height: int, width: int) -> Steps:
    """The first stage is computed for a tile at a time, halo and all."""

    def fuse(sch: Schedule) -> None:
        i, j = sch.get_loops("Y")
        i_0, i_1 = sch.split(i, [None, height])
        j_0, j_1 = sch.split(j, [None, width])
        sch.reorder(i_0, j_0, i_1, j_1)
        sch.compute_at("H", j_0)
        sch.sink_alloc("H", "H")

    return fuse


def _rung(name: str, make: Callable[..., Loops], shape: Sequence[int], small: Sequence[int]) -> Rung:
    return Rung(name, make, tuple(shape), tuple(small))


def _stencil(name: str, taps: Taps, steps: Steps, shape: Sequence[int], small: Sequence[int]) -> Rung:
    return _rung(name, lambda *sizes: stencil(steps, taps, *sizes), shape, small)


PLANE, SMALL_PLANE = (1024, 1024), (35, 67)
CUBE, SMALL_CUBE = (128, 128, 128), (9, 10, 37)
STAR_2, BOX_2, STAR_3 = star(2), box(2), star(3)

RUNGS = [
    _stencil("1-D, 5 points", star(1, 2), as_written, (1 << 18,), (1003,)),
    _stencil("1-D, 5 points, vectors", star(1, 2), vectors(16), (1 << 18,), (1003,)),
    _stencil("2-D, 5 points", STAR_2, as_written, PLANE, SMALL_PLANE),
    _stencil("2-D, 5 points, columns first", STAR_2, columns_first, (512, 512), SMALL_PLANE),
    _stencil("2-D, 5 points, tiled 32 × 128", STAR_2, tiles(32, 128), PLANE, SMALL_PLANE),
    _stencil("2-D, 5 points, tiled 30 × 100", STAR_2, tiles(30, 100), PLANE, SMALL_PLANE),
    _stencil("2-D, 9 points", BOX_2, as_written, PLANE, SMALL_PLANE),
    _stencil("3-D, 7 points", STAR_3, as_written, CUBE, SMALL_CUBE),
    _stencil("3-D, 7 points, tiled 8 × 16", STAR_3, tiles(8, 16, None), CUBE, SMALL_CUBE),
    _rung("blur, two passes", lambda *s: blur(as_written, *s), PLANE, SMALL_PLANE),
    _rung("blur, inlined", lambda *s: blur(inlined, *s), PLANE, SMALL_PLANE),
    _rung("blur, fused by rows", lambda *s: blur(fused_rows, *s), PLANE, SMALL_PLANE),
    _rung("blur, fused by tiles 32 × 128", lambda *s: blur(fused_tiles(32, 128), *s), PLANE, SMALL_PLANE),
    _rung("Jacobi twice, two passes", lambda *s: jacobi_twice(as_written, *s), PLANE, SMALL_PLANE),
    _rung("Jacobi twice, fused by tiles 32 × 64", lambda *s: jacobi_twice(fused_tiles(32, 64), *s), PLANE, SMALL_PLANE),
    _rung("sweep down the rows, loop-carried", gauss_seidel, PLANE, SMALL_PLANE),
]
