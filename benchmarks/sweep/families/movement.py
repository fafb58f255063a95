"""Elements moved: joined, cut, turned, padded, repeated, gathered, scattered, resized, rearranged.

Distribution: 2^12 to 2^21 elements moved (log-uniform), ranks 1 to 5, last axis by `sizes.extent`; every operation of
`KINDS` with its weight, axes and permutations evenly, 2 to 60 parts (log-uniform), indices uniform. Types: float32
55 %, uint8 12, int32 10, float64 8, int64 6, float16 5, int16 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import exactly
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick, shape_of

ELEMENTS = (2**12, 2**21)
TYPES = {"float32": 55, "uint8": 12, "int32": 10, "float64": 8, "int64": 6, "float16": 5, "int16": 4}


def draw(rng: Rng) -> Case:
    """A case."""
    return pick(rng, list(KINDS), list(KINDS.values()))(rng)


def _type(rng: Rng) -> str:
    return pick(rng, list(TYPES), list(TYPES.values()))


def _data(shape: tuple[int, ...], dtype: str) -> Input:
    return Input(shape, dtype, 0 if dtype[0] in "ui" else -1, 100 if dtype[0] in "ui" else 1)


def _topi() -> Any:
    from loopwright import topi

    return topi


def moved(
    name: str,
    inputs: Sequence[Input],
    right: Callable[..., Any],
    details: str,
    kernel: Callable[..., Any] | None,
    model: Sequence[Step],
    torch: Callable[..., Any] | None,
    constants: dict[str, Array] | None = None,
    numpy: Callable[..., Any] | None = None,
    out: Output | None = None,
) -> Case:
    """A case whose result is exact; `right` is numpy's function, which returns views where it can (then copied).

    Without `out` it is run at once for the shapes of its results.
    """
    shapes = out or right(*[np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in inputs])
    several = list(shapes) if isinstance(shapes, (list, tuple)) else [shapes]

    def exact(x: Any) -> list[Bounded]:
        found = right(*x)
        return [exactly(np.asarray(y)) for y in (found if isinstance(found, (list, tuple)) else [found])]

    def with_numpy(x: Any, out: Any) -> Any:
        found = (numpy or right)(*x)
        if isinstance(found, (list, tuple)):
            return [_copied(y, room) for y, room in zip(found, out)]
        return _copied(found, out[0])

    return Case(
        name,
        inputs,
        [Output(y.shape, str(y.dtype)) for y in several],
        exact,
        details,
        kernel,
        model,
        constants or {},
        with_numpy,
        None if torch is None else lambda t, x, out: _contiguous(torch(t, *x)),
    )


def _copied(found: Array, room: Array | None) -> Array:
    """A view is no result yet: its elements are where they were."""
    if room is not None and not found.flags.owndata:
        np.copyto(room, found)
        return room
    return np.ascontiguousarray(found) if found.flags.owndata else found.copy()


def _contiguous(found: Any) -> Any:
    return [y.contiguous() for y in found] if isinstance(found, (list, tuple)) else found.contiguous()


def _concat(rng: Rng) -> Case:
    shape, dtype = shape_of(rng, ELEMENTS, (1, 2, 3, 4)), _type(rng)
    axis, count = int(rng.integers(len(shape))), log_uniform(rng, 2, 60)
    sizes = [max(shape[axis] // count, 1)] * count
    if rng.random() < 0.5:
        sizes = [log_uniform(rng, 1, 2 * size) for size in sizes]
    inputs = [_data((*shape[:axis], size, *shape[axis + 1 :]), dtype) for size in sizes]
    return moved(
        "concat",
        inputs,
        lambda *x: np.concatenate(x, axis),
        f"{count} parts along {axis}",
        lambda *x: _topi().concatenate(x, axis),
        [Step("Concat", [f"x{k}" for k in range(count)], "y0", {"axis": axis})],
        lambda t, *x: t.cat(x, axis),
        out=Output((*shape[:axis], sum(sizes), *shape[axis + 1 :]), dtype),
    )


def _stack(rng: Rng) -> Case:
    count = log_uniform(rng, 2, 30)
    shape, dtype = shape_of(rng, (ELEMENTS[0] / count, ELEMENTS[1] / count), (1, 2, 3)), _type(rng)
    axis = int(rng.integers(len(shape) + 1))
    names = [f"u{k}" for k in range(count)]
    steps = [Step("Unsqueeze", [f"x{k}", "axes"], name) for k, name in enumerate(names)]
    return moved(
        "stack",
        [_data(shape, dtype)] * count,
        lambda *x: np.stack(x, axis),
        f"{count} along {axis}",
        lambda *x: _topi().stack(x, axis),
        [*steps, Step("Concat", names, "y0", {"axis": axis})],
        lambda t, *x: t.stack(x, axis),
        {"axes": np.asarray([axis], "int64")},
        out=Output((*shape[:axis], count, *shape[axis:]), dtype),
    )


def _split(rng: Rng) -> Case:
    shape, dtype = list(shape_of(rng, ELEMENTS, (1, 2, 3, 4))), _type(rng)
    axis, count = int(rng.integers(len(shape))), log_uniform(rng, 2, 16)
    shape[axis] = max(shape[axis] // count, 1) * count
    outputs = " ".join([f"y{k}" for k in range(count)])
    return moved(
        "split",
        [_data(tuple(shape), dtype)],
        lambda x: np.split(x, count, axis),
        f"{count} parts along {axis}",
        lambda x: _topi().split(x, count, axis),
        [Step("Split", ["x0"], outputs, {"axis": axis, "num_outputs": count})],
        lambda t, x: t.split(x, shape[axis] // count, axis),
    )


def _transpose(rng: Rng) -> Case:
    shape, dtype = shape_of(rng, ELEMENTS, (2, 3, 4, 5)), _type(rng)
    order = [int(axis) for axis in rng.permutation(len(shape))]
    if order == sorted(order):
        order = order[::-1]
    return moved(
        "transpose",
        [_data(shape, dtype)],
        lambda x: x.transpose(order),
        f"{','.join(map(str, order))}",
        lambda x: _topi().transpose(x, order),
        [Step("Transpose", ["x0"], "y0", {"perm": order})],
        lambda t, x: x.permute(order),
    )


def _flip(rng: Rng) -> Case:
    shape, dtype = shape_of(rng, ELEMENTS, (1, 2, 3, 4)), _type(rng)
    axis = int(rng.integers(len(shape)))
    return moved(
        "flip",
        [_data(shape, dtype)],
        lambda x: np.flip(x, axis),
        f"axis {axis}",
        lambda x: _topi().flip(x, axis),
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
    shape, dtype = shape_of(rng, ELEMENTS, (1, 2, 3, 4)), _type(rng)
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
        [_data(shape, dtype)],
        lambda x: np.roll(x, by, axis),
        f"by {by} along {axis}",
        in_te,
        steps if by else (),
        lambda t, x: t.roll(x, by, axis),
        {name: np.asarray([value], "int64") for name, value in numbers.items()},
        out=Output(shape, dtype),
    )


def _pad(rng: Rng) -> Case:
    shape, dtype = shape_of(rng, ELEMENTS, (1, 2, 3, 4)), _type(rng)
    mode = pick(rng, ("constant", "reflect", "edge"), (70, 15, 15))
    amounts = [(0, 0)] * len(shape)
    for axis in range(max(len(shape) - 2, 0), len(shape)):
        most = min(shape[axis] - 1, 8) if mode == "reflect" else 8
        amounts[axis] = (int(rng.integers(most + 1)), int(rng.integers(most + 1)))
    before, after = [first for first, _ in amounts], [last for _, last in amounts]

    def in_te(x: Any) -> Any:
        if mode == "reflect":
            return _topi().nn.mirror_pad(x, before, after, "REFLECT")
        return _topi().nn.pad(x, before, after, 0)

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
        [_data(shape, dtype)],
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
    shape, dtype = shape_of(rng, (ELEMENTS[0] / times, ELEMENTS[1] / times), (1, 2, 3)), _type(rng)
    reps = [1] * len(shape)
    reps[int(rng.integers(len(shape)))] = times
    return moved(
        "tile",
        [_data(shape, dtype)],
        lambda x: np.tile(x, reps),
        f"{','.join(map(str, reps))}",
        lambda x: _topi().tile(x, reps),
        [Step("Tile", ["x0", "reps"], "y0")],
        lambda t, x: x.repeat(reps),
        {"reps": np.asarray(reps, "int64")},
        out=Output(tuple([size * n for size, n in zip(shape, reps)]), dtype),
    )


def _repeat(rng: Rng) -> Case:
    times = int(rng.integers(2, 9))
    shape, dtype = shape_of(rng, (ELEMENTS[0] / times, ELEMENTS[1] / times), (1, 2, 3)), _type(rng)
    axis = int(rng.integers(len(shape)))
    return moved(
        "repeat",
        [_data(shape, dtype)],
        lambda x: np.repeat(x, times, axis),
        f"{times} along {axis}",
        lambda x: _topi().repeat(x, times, axis),
        (),
        lambda t, x: t.repeat_interleave(x, times, axis),
        out=Output((*shape[:axis], shape[axis] * times, *shape[axis + 1 :]), dtype),
    )


def _slice(rng: Rng) -> Case:
    shape, dtype = shape_of(rng, (ELEMENTS[0] * 2, ELEMENTS[1] * 2), (1, 2, 3, 4)), _type(rng)
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
        [_data(shape, dtype)],
        lambda x: x[parts],
        ",".join([f"{a}:{b}:{s}" for a, b, s in zip(begin, end, step)]),
        lambda x: _topi().strided_slice(x, begin, end, step),
        [Step("Slice", ["x0", "begin", "end", "axes", "step"], "y0")],
        lambda t, x: x[parts].clone() if x[parts].is_contiguous() else x[parts],
        constants,
    )


def _indices(shape: tuple[int, ...], high: int, dtype: str = "int64") -> Input:
    return Input(shape, dtype, 0, high - 1)


def _take(rng: Rng) -> Case:
    """Rows of a table (an embedding), or elements along another axis."""
    dtype = _type(rng)
    is_embedding = rng.random() < 0.5
    width = extent(rng, 1024)
    count = max(log_uniform(rng, *ELEMENTS) // width, 1)
    rows = log_uniform(rng, 10, 50000)
    table = (min(rows, max(2**22 // width, 1)), width)
    if is_embedding:
        axis, shape = 0, table
    else:
        axis, shape = 1, (count, max(width, 2))
        count = extent(rng, 512)
    indices = (count,) if rng.random() < 0.5 or count % 2 else (2, count // 2)
    kind = pick(rng, ("int64", "int32"))
    return moved(
        "embedding" if is_embedding else "take",
        [_data(shape, dtype), _indices(indices, shape[axis], kind)],
        lambda x, i: np.take(x, i, axis),
        f"axis {axis}",
        lambda x, i: _topi().take(x, i, axis),
        [Step("Gather", ["x0", "x1"], "y0", {"axis": axis})],
        lambda t, x, i: t.nn.functional.embedding(i, x) if is_embedding else x[:, i],
        out=Output((*indices, width) if is_embedding else (shape[0], *indices), dtype),
    )


def _gather(rng: Rng) -> Case:
    shape, dtype = shape_of(rng, ELEMENTS, (1, 2, 3)), _type(rng)
    axis = int(rng.integers(len(shape)))
    return moved(
        "gather",
        [_data(shape, dtype), _indices(shape, shape[axis])],
        lambda x, i: np.take_along_axis(x, i, axis),
        f"axis {axis}",
        lambda x, i: _topi().gather(x, axis, i),
        [Step("GatherElements", ["x0", "x1"], "y0", {"axis": axis})],
        lambda t, x, i: t.gather(x, axis, i),
        out=Output(shape, dtype),
    )


def _scatter(rng: Rng) -> Case:
    """Each update at a place of its own along the last axis, or added where they meet."""
    columns = extent(rng, 1024, 2)
    rows = max(log_uniform(rng, *ELEMENTS) // 2 // columns, 1)
    count = max(columns // int(rng.integers(1, 5)), 1)
    is_sum = rng.random() < 0.4
    dtype = pick(rng, ("float32", "int32", "int64"))

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
        [_data((rows, columns), dtype), Input((rows, count), "int64", make=places), _data((rows, count), dtype)],
        right,
        "axis 1",
        lambda x, i, u: _topi().scatter_elements(x, i, u, 1, "add" if is_sum else "update"),
        [Step("ScatterElements", ["x0", "x1", "x2"], "y0", {"axis": 1, **({"reduction": "add"} if is_sum else {})})],
        lambda t, x, i, u: t.scatter_add(x, 1, i, u) if is_sum else t.scatter(x, 1, i, u),
        out=Output((rows, columns), dtype),
    )


def _blocks(rng: Rng) -> Case:
    """space_to_depth and back: pixel shuffles."""
    block, dtype = pick(rng, (2, 3, 4)), _type(rng)
    channels = max(extent(rng, 64), 1)
    pixels = max(log_uniform(rng, *ELEMENTS) // (channels * block * block), 1)
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
            [_data(shape, dtype)],
            right,
            f"block {block}",
            lambda x: _topi().nn.depth_to_space(x, block, "NCHW", "DCR" if mode == "DCR" else "CDR"),
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
        [_data(shape, dtype)],
        apart,
        f"block {block}",
        lambda x: _topi().nn.space_to_depth(x, block, "NCHW"),
        [Step("SpaceToDepth", ["x0"], "y0", {"blocksize": block})],
        None,
        out=Output((1, channels * block * block, high, wide), dtype),
    )


def _one_hot(rng: Rng) -> Case:
    depth = extent(rng, 1000, 2)
    count = max(log_uniform(rng, *ELEMENTS) // depth, 1)
    return moved(
        "one_hot",
        [_indices((count,), depth)],
        lambda i: (i[:, None] == np.arange(depth)).astype("float32"),
        f"depth {depth}",
        lambda i: _topi().one_hot(i, 1.0, 0.0, depth, -1, "float32"),
        [Step("OneHot", ["x0", "depth", "values"], "y0", {"axis": -1})],
        lambda t, i: t.nn.functional.one_hot(i, depth).float(),
        {"depth": np.asarray(depth, "int64"), "values": np.asarray([0, 1], "float32")},
        lambda i: np.eye(depth, dtype="float32")[i],
        Output((count, depth)),
    )


def _triangle(rng: Rng) -> Case:
    upper, offset, dtype = bool(rng.integers(2)), int(rng.integers(-2, 3)), _type(rng)
    rows = extent(rng, 1024, 8)
    columns = rows if rng.random() < 0.6 else extent(rng, 1024, 8)
    batch = max(min(log_uniform(rng, *ELEMENTS) // (rows * columns), 64), 1)
    name = "triu" if upper else "tril"
    return moved(
        name,
        [_data((batch, rows, columns), dtype)],
        lambda x: getattr(np, name)(x, offset),
        f"from {offset}",
        lambda x: _topi().trilu(x, offset, upper),
        [Step("Trilu", ["x0", "k"], "y0", {"upper": int(upper)})],
        lambda t, x: getattr(t, name)(x, offset),
        {"k": np.asarray(offset, "int64")},
        out=Output((batch, rows, columns), dtype),
    )


KINDS: dict[Callable[[Rng], Case], int] = {
    _concat: 12, _split: 6, _stack: 5, _transpose: 16, _flip: 5, _roll: 4, _pad: 8, _tile: 5, _repeat: 4, _slice: 8,
    _take: 9, _gather: 5, _scatter: 4, _blocks: 5, _one_hot: 3, _triangle: 3,
}  # fmt: skip
