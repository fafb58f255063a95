"""Elements moved to other places: transpose, flip, roll, strided slices, pixel shuffles, triangles.

Distribution: 2^15 to 2^23 bytes moved (log-uniform), ranks 1 to 5, last axis by `sizes.extent`; permutations and axes
evenly; slices of each axis with a chance of one half, by steps 1, 2 or 3; blocks of 2, 3 or 4 pixels. Types: float32
55 %, uint8 12, int32 10, float64 8, int64 6, float16 5, int16 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench.case import Array
from benchmarks.sweep.case import Case, Output, Step
from benchmarks.sweep.moved import data, drawn_type, elements_moved, moved, topi
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick, shape_of


def draw(rng: Rng) -> Case:
    """A case."""
    return pick(rng, list(KINDS), list(KINDS.values()))(rng)


def _transpose(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype), (2, 3, 4, 5))
    order = [int(axis) for axis in rng.permutation(len(shape))]
    if order == sorted(order):
        order = order[::-1]
    return moved(
        "transpose",
        [data(shape, dtype)],
        lambda x: x.transpose(order),
        f"{','.join(map(str, order))}",
        lambda x: topi().transpose(x, order),
        [Step("Transpose", ["x0"], "y0", {"perm": order})],
        lambda t, x: x.permute(order),
    )


def _flip(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype), (1, 2, 3, 4))
    axis = int(rng.integers(len(shape)))
    return moved(
        "flip",
        [data(shape, dtype)],
        lambda x: np.flip(x, axis),
        f"axis {axis}",
        lambda x: topi().flip(x, axis),
        [Step("Slice", ["x0", "start", "end", "axes", "step"], "y0")],
        lambda t, x: t.flip(x, (axis,)),
        {
            "start": np.asarray([-1], "int64"),
            "end": np.asarray([-(2**31)], "int64"),
            "axes": np.asarray([axis], "int64"),
            "step": np.asarray([-1], "int64"),
        },
    )


def _roll(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype), (1, 2, 3, 4))
    axis = int(rng.integers(len(shape)))
    by = int(rng.integers(shape[axis]))
    size = shape[axis]

    def in_te(x: Any) -> Any:
        from loopwright import te

        def cell(*at: Any) -> Any:
            return x(*at[:axis], (at[axis] + (size - by)) % size, *at[axis + 1 :])

        return te.compute(shape, cell, name="roll")

    steps = [
        Step("Slice", ["x0", "cut", "end", "axes"], "tail"),
        Step("Slice", ["x0", "zero", "cut", "axes"], "head"),
        Step("Concat", ["tail", "head"], "y0", {"axis": axis}),
    ]
    numbers = {"cut": size - by, "end": size, "zero": 0, "axes": axis}
    return moved(
        "roll",
        [data(shape, dtype)],
        lambda x: np.roll(x, by, axis),
        f"by {by} along {axis}",
        in_te,
        steps if by else (),
        lambda t, x: t.roll(x, by, axis),
        {name: np.asarray([value], "int64") for name, value in numbers.items()},
        out=Output(shape, dtype),
    )


def _slice(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype, 2), (1, 2, 3, 4))
    begin, end, step = [], [], []
    for size in shape:
        is_cut = rng.random() < 0.5 and size > 2
        begin.append(int(rng.integers(max(size // 3, 1))) if is_cut else 0)
        end.append(size - int(rng.integers(max(size // 3, 1))) if is_cut else size)
        step.append(pick(rng, (1, 2, 3), (50, 35, 15)) if is_cut else 1)
    parts = tuple([slice(*part) for part in zip(begin, end, step)])
    constants = {
        "begin": np.asarray(begin, "int64"),
        "end": np.asarray(end, "int64"),
        "axes": np.arange(len(shape)),
        "step": np.asarray(step, "int64"),
    }
    return moved(
        "strided_slice",
        [data(shape, dtype)],
        lambda x: x[parts],
        ",".join([f"{a}:{b}:{s}" for a, b, s in zip(begin, end, step)]),
        lambda x: topi().strided_slice(x, begin, end, step),
        [Step("Slice", ["x0", "begin", "end", "axes", "step"], "y0")],
        lambda t, x: x[parts].clone() if x[parts].is_contiguous() else x[parts],
        constants,
    )


def _blocks(rng: Rng) -> Case:
    """space_to_depth and back: pixel shuffles."""
    block, dtype = pick(rng, (2, 3, 4)), drawn_type(rng)
    channels = max(extent(rng, 64), 1)
    pixels = max(log_uniform(rng, *elements_moved(dtype)) // (channels * block * block), 1)
    high = max(round(pixels**0.5), 1)
    wide = max(pixels // high, 1)
    if rng.random() < 0.5:
        mode = pick(rng, ("DCR", "CRD"))
        shape = (1, channels * block * block, high, wide)

        def right(x: Array) -> Array:
            inside = (block, block, channels) if mode == "DCR" else (channels, block, block)
            parts = (1, *inside, high, wide)
            order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
            return x.reshape(parts).transpose(order).reshape(1, channels, high * block, wide * block)

        return moved(
            "depth_to_space" if mode == "DCR" else "pixel_shuffle",
            [data(shape, dtype)],
            right,
            f"block {block}",
            lambda x: topi().nn.depth_to_space(x, block, "NCHW", "DCR" if mode == "DCR" else "CDR"),
            [Step("DepthToSpace", ["x0"], "y0", {"blocksize": block, "mode": mode})],
            None if mode == "DCR" else lambda t, x: t.pixel_shuffle(x, block),
            out=Output((1, channels, high * block, wide * block), dtype),
        )
    shape = (1, channels, high * block, wide * block)

    def apart(x: Array) -> Array:
        parts = x.reshape(1, channels, high, block, wide, block).transpose(0, 3, 5, 1, 2, 4)
        return parts.reshape(1, channels * block * block, high, wide)

    return moved(
        "space_to_depth",
        [data(shape, dtype)],
        apart,
        f"block {block}",
        lambda x: topi().nn.space_to_depth(x, block, "NCHW"),
        [Step("SpaceToDepth", ["x0"], "y0", {"blocksize": block})],
        None,
        out=Output((1, channels * block * block, high, wide), dtype),
    )


def _triangle(rng: Rng) -> Case:
    upper, offset, dtype = bool(rng.integers(2)), int(rng.integers(-2, 3)), drawn_type(rng)
    rows = extent(rng, 1024, 8)
    columns = rows if rng.random() < 0.6 else extent(rng, 1024, 8)
    batch = max(min(log_uniform(rng, *elements_moved(dtype)) // (rows * columns), 64), 1)
    name = "triu" if upper else "tril"
    return moved(
        name,
        [data((batch, rows, columns), dtype)],
        lambda x: getattr(np, name)(x, offset),
        f"from {offset}",
        lambda x: topi().trilu(x, offset, upper),
        [Step("Trilu", ["x0", "k"], "y0", {"upper": int(upper)})],
        lambda t, x: getattr(t, name)(x, offset),
        {"k": np.asarray(offset, "int64")},
        out=Output((batch, rows, columns), dtype),
    )


KINDS: dict[Callable[[Rng], Case], int] = {_transpose: 16, _flip: 5, _roll: 4, _slice: 8, _blocks: 5, _triangle: 3}
