"""Elements found by indices: take, embedding, gather, scatter, one_hot.

Distribution: 2^15 to 2^23 bytes of the result (log-uniform); rows of a table (10 to 50,000 rows, width by
`sizes.extent`) or elements along the last axis; gather and scatter along any axis, or along the last, with or without
sums; indices uniform, int64 or int32. Types: float32 55 %, uint8 12, int32 10, float64 8, int64 6, float16 5, int16 4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.bench.case import Array
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.moved import data, drawn_type, elements_moved, moved, topi
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick, shape_of


def draw(rng: Rng) -> Case:
    """A case."""
    return pick(rng, list(KINDS), list(KINDS.values()))(rng)


def _indices(shape: tuple[int, ...], high: int, dtype: str = "int64") -> Input:
    return Input(shape, dtype, 0, high - 1)


def _take(rng: Rng) -> Case:
    """Rows of a table (an embedding), or elements along another axis."""
    dtype = drawn_type(rng)
    is_embedding = rng.random() < 0.5
    width = extent(rng, 1024)
    total = log_uniform(rng, *elements_moved(dtype))
    if is_embedding:
        count = max(total // width, 1)
        axis, shape = 0, (min(log_uniform(rng, 10, 50000), max(2**22 // width, 1)), width)
    else:
        count = extent(rng, 512)
        rows = max(total // max(count, width), 1)
        axis, shape = 1, (rows, max(width, 2))
    indices = (count,) if rng.random() < 0.5 or count % 2 else (2, count // 2)
    kind = pick(rng, ("int64", "int32"))
    return moved(
        "embedding" if is_embedding else "take",
        [data(shape, dtype), _indices(indices, shape[axis], kind)],
        lambda x, i: np.take(x, i, axis),
        f"axis {axis}",
        lambda x, i: topi().take(x, i, axis),
        [Step("Gather", ["x0", "x1"], "y0", {"axis": axis})],
        lambda t, x, i: t.nn.functional.embedding(i, x) if is_embedding else x[:, i],
        out=Output((*indices, width) if is_embedding else (shape[0], *indices), dtype),
        # Without a mode it would copy the result once more, lest an error leave half of one.
        into=lambda x, i, out: np.take(x, i, axis, out=out, mode="clip"),
    )


def _gather(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype), (1, 2, 3))
    axis = int(rng.integers(len(shape)))
    return moved(
        "gather",
        [data(shape, dtype), _indices(shape, shape[axis])],
        lambda x, i: np.take_along_axis(x, i, axis),
        f"axis {axis}",
        lambda x, i: topi().gather(x, axis, i),
        [Step("GatherElements", ["x0", "x1"], "y0", {"axis": axis})],
        lambda t, x, i: t.gather(x, axis, i),
        out=Output(shape, dtype),
    )


def _scatter(rng: Rng) -> Case:
    """Each update at a place of its own along the last axis, or added where they meet."""
    columns = extent(rng, 1024, 2)
    dtype = pick(rng, ("float32", "int32", "int64"))
    rows = max(log_uniform(rng, *elements_moved(dtype)) // 2 // columns, 1)
    count = max(columns // int(rng.integers(1, 5)), 1)
    is_sum = rng.random() < 0.4

    def places(generator: np.random.Generator) -> Array:
        return np.argsort(generator.random((rows, columns)), axis=1)[:, :count]

    def right(x: Array, i: Array, u: Array) -> Array:
        found = np.array(x)
        if is_sum:
            np.add.at(found, (np.arange(rows)[:, None], i), u)
        else:
            np.put_along_axis(found, i, u, 1)
        return found

    return moved(
        "scatter add" if is_sum else "scatter",
        [data((rows, columns), dtype), Input((rows, count), "int64", make=places), data((rows, count), dtype)],
        right,
        "axis 1",
        lambda x, i, u: topi().scatter_elements(x, i, u, 1, "add" if is_sum else "update"),
        [Step("ScatterElements", ["x0", "x1", "x2"], "y0", {"axis": 1, **({"reduction": "add"} if is_sum else {})})],
        lambda t, x, i, u: t.scatter_add(x, 1, i, u) if is_sum else t.scatter(x, 1, i, u),
        out=Output((rows, columns), dtype),
    )


def _one_hot(rng: Rng) -> Case:
    depth = extent(rng, 1000, 2)
    count = max(log_uniform(rng, *elements_moved("float32")) // depth, 1)
    return moved(
        "one_hot",
        [_indices((count,), depth)],
        lambda i: (i[:, None] == np.arange(depth)).astype("float32"),
        f"depth {depth}",
        lambda i: topi().one_hot(i, 1.0, 0.0, depth, -1, "float32"),
        [Step("OneHot", ["x0", "depth", "values"], "y0", {"axis": -1})],
        lambda t, i: t.nn.functional.one_hot(i, depth).float(),
        {"depth": np.asarray(depth, "int64"), "values": np.asarray([0, 1], "float32")},
        lambda i: np.eye(depth, dtype="float32")[i],
        Output((count, depth)),
    )


KINDS: dict[Callable[[Rng], Case], int] = {_take: 9, _gather: 5, _scatter: 4, _one_hot: 3}
