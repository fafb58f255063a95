"""Transposes: float32, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.case import Bounded, Case, CLoop, Numpy, Problem, Torch, aligned, uniform


def permute(order: tuple[int, ...], *shape: int) -> Problem:
    """y[i_order[0], i_order[1], …] = x[i_0, i_1, …]."""
    x = uniform(shape)
    out_shape = tuple([shape[axis] for axis in order])
    back = [order.index(axis) for axis in range(len(order))]

    def program() -> Any:
        from loopwright import te

        X = te.placeholder(shape, name="X")
        return [X, te.compute(out_shape, lambda *at: X[tuple([at[axis] for axis in back])], name="Y")]

    return Problem(
        program,
        [x],
        [aligned(out_shape)],
        lambda: [Bounded(x.transpose(order).astype("float64"), 0.0)],
        {
            "C": _loop(order, shape),
            "numpy": Numpy(lambda x, out: lambda: np.copyto(out[0], x[0].transpose(order))),
            "torch": Torch(lambda torch, x, out: lambda: out[0].copy_(x[0].permute(order))),
        },
    )


def _loop(order: tuple[int, ...], shape: tuple[int, ...]) -> CLoop:
    if order == (2, 1, 0):
        return CLoop("c_transpose_210", shape)
    if order == (0, 2, 1):
        return CLoop("c_transpose", (*shape, 1))
    return CLoop("c_transpose", (1, *shape) if order == (1, 0, 2) else (1, *shape, 1))


_FLAT = [((1, 0), *near) for near in ((17, 33), (1, 1), (1, 37), (63, 65), (131, 7))]


def _row(order: tuple[int, ...], *shape: int, quick: bool = False) -> Case:
    square = len(shape) == 2 and shape[0] == shape[1]
    name = f"{shape[0]}²" if square else "×".join(map(str, shape))
    if len(order) == 2:
        return Case(name, permute, (order, *shape), _FLAT, quick)
    near = [(order, *small) for small in ((3, 17, 33), (1, 1, 1), (31, 5, 65), (65, 7, 1))]
    return Case(f"{name} to ({' '.join(map(str, order))})", permute, (order, *shape), near, quick)


CASES = [
    *[_row((1, 0), n, n, quick=n == 512) for n in (512, 1024, 4096)],
    _row((1, 0), 1000, 3000),
    _row((0, 2, 1), 64, 256, 384),
    _row((2, 1, 0), 128, 192, 256),
    _row((1, 0, 2), 256, 384, 64),
]
