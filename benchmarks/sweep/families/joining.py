"""Tensors joined, cut, padded and repeated: concat, split, stack, pad, tile, repeat.

Distribution: 2^15 to 2^23 bytes of the result (log-uniform), ranks 1 to 4, last axis by `sizes.extent`, axes evenly.
concat of 2 to 60 parts (log-uniform), equal ones for half of them; split into 2 to 16; stack of 2 to 30; pad with zeros
(70 %), reflected or by the edge, up to 8 cells along the last two axes; 2 to 8 times for tile and repeat. Types:
float32 55 %, uint8 12, int32 10, float64 8, int64 6, float16 5, int16 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.sweep.case import Case, Output, Step
from benchmarks.sweep.moved import data, drawn_type, elements_moved, moved, topi
from benchmarks.sweep.sizes import Rng, log_uniform, pick, shape_of


def draw(rng: Rng) -> Case:
    """A case."""
    return pick(rng, list(KINDS), list(KINDS.values()))(rng)


def _concat(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    count = log_uniform(rng, 2, 60)
    shape = shape_of(rng, elements_moved(dtype, 1 / count), (1, 2, 3, 4))  # of one part
    axis = int(rng.integers(len(shape)))
    sizes = [shape[axis]] * count
    if rng.random() < 0.5:
        sizes = [log_uniform(rng, 1, 2 * size) for size in sizes]
    inputs = [data((*shape[:axis], size, *shape[axis + 1 :]), dtype) for size in sizes]
    return moved(
        "concat",
        inputs,
        lambda *x: np.concatenate(x, axis),
        f"{count} parts along {axis}",
        lambda *x: topi().concatenate(x, axis),
        [Step("Concat", [f"x{k}" for k in range(count)], "y0", {"axis": axis})],
        lambda t, *x: t.cat(x, axis),
        out=Output((*shape[:axis], sum(sizes), *shape[axis + 1 :]), dtype),
        into=lambda *x, out: np.concatenate(x, axis, out=out),
    )


def _split(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = list(shape_of(rng, elements_moved(dtype), (1, 2, 3, 4)))
    axis, count = int(rng.integers(len(shape))), log_uniform(rng, 2, 16)
    shape[axis] = max(shape[axis] // count, 1) * count
    outputs = " ".join([f"y{k}" for k in range(count)])
    return moved(
        "split",
        [data(tuple(shape), dtype)],
        lambda x: np.split(x, count, axis),
        f"{count} parts along {axis}",
        lambda x: topi().split(x, count, axis),
        [Step("Split", ["x0"], outputs, {"axis": axis, "num_outputs": count})],
        lambda t, x: t.split(x, shape[axis] // count, axis),
    )


def _stack(rng: Rng) -> Case:
    count = log_uniform(rng, 2, 30)
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype, 1 / count), (1, 2, 3))
    axis = int(rng.integers(len(shape) + 1))
    names = [f"u{k}" for k in range(count)]
    steps = [Step("Unsqueeze", [f"x{k}", "axes"], name) for k, name in enumerate(names)]
    return moved(
        "stack",
        [data(shape, dtype)] * count,
        lambda *x: np.stack(x, axis),
        f"{count} along {axis}",
        lambda *x: topi().stack(x, axis),
        [*steps, Step("Concat", names, "y0", {"axis": axis})],
        lambda t, *x: t.stack(x, axis),
        {"axes": np.asarray([axis], "int64")},
        out=Output((*shape[:axis], count, *shape[axis:]), dtype),
        into=lambda *x, out: np.stack(x, axis, out=out),
    )


def _pad(rng: Rng) -> Case:
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype), (1, 2, 3, 4))
    mode = pick(rng, ("constant", "reflect", "edge"), (70, 15, 15))
    amounts = [(0, 0)] * len(shape)
    for axis in range(max(len(shape) - 2, 0), len(shape)):
        most = min(shape[axis] - 1, 8) if mode == "reflect" else 8
        amounts[axis] = (int(rng.integers(most + 1)), int(rng.integers(most + 1)))
    before, after = [first for first, _ in amounts], [last for _, last in amounts]

    def in_te(x: Any) -> Any:
        if mode == "reflect":
            return topi().nn.mirror_pad(x, before, after, "REFLECT")
        return topi().nn.pad(x, before, after, 0)

    def with_torch(t: Any, x: Any) -> Any:
        if mode == "constant":
            return t.nn.functional.pad(x, [amount for pair in reversed(amounts) for amount in pair])
        # It pads the last one or two axes of tensors that have a batch and channels.
        padded = amounts[-2:]
        lead = x.shape[: len(shape) - len(padded)]
        whole = x.reshape(1, -1, *shape[-len(padded) :])
        flat = [amount for pair in reversed(padded) for amount in pair]
        found = t.nn.functional.pad(whole, flat, "replicate" if mode == "edge" else mode)
        return found.reshape(*lead, *found.shape[2:])

    return moved(
        f"pad {mode}",
        [data(shape, dtype)],
        lambda x: np.pad(x, amounts, mode=mode),
        f"{','.join([f'{a}+{b}' for a, b in amounts])}",
        None if mode == "edge" else in_te,
        [Step("Pad", ["x0", "pads"], "y0", {"mode": mode})],
        with_torch,
        {"pads": np.asarray([*before, *after], "int64")},
        out=Output(tuple([a + size + b for (a, b), size in zip(amounts, shape)]), dtype),
    )


def _tile(rng: Rng) -> Case:
    times = int(rng.integers(2, 9))
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype, 1 / times), (1, 2, 3))
    reps = [1] * len(shape)
    reps[int(rng.integers(len(shape)))] = times
    return moved(
        "tile",
        [data(shape, dtype)],
        lambda x: np.tile(x, reps),
        f"{','.join(map(str, reps))}",
        lambda x: topi().tile(x, reps),
        [Step("Tile", ["x0", "reps"], "y0")],
        lambda t, x: x.repeat(reps),
        {"reps": np.asarray(reps, "int64")},
        out=Output(tuple([size * n for size, n in zip(shape, reps)]), dtype),
    )


def _repeat(rng: Rng) -> Case:
    times = int(rng.integers(2, 9))
    dtype = drawn_type(rng)
    shape = shape_of(rng, elements_moved(dtype, 1 / times), (1, 2, 3))
    axis = int(rng.integers(len(shape)))
    return moved(
        "repeat",
        [data(shape, dtype)],
        lambda x: np.repeat(x, times, axis),
        f"{times} along {axis}",
        lambda x: topi().repeat(x, times, axis),
        (),
        lambda t, x: t.repeat_interleave(x, times, axis),
        out=Output((*shape[:axis], shape[axis] * times, *shape[axis + 1 :]), dtype),
    )


KINDS: dict[Callable[[Rng], Case], int] = {_concat: 12, _split: 6, _stack: 5, _pad: 8, _tile: 5, _repeat: 4}
