"""Random convolutions in one to three dimensions, dense, grouped, depthwise or transposed; pooling; in any layout."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from loopwright import te
from loopwright.autosched.rules.winograd.allowed import TILES
from loopwright.schedule.winograd import error_factor
from loopwright.schedule.winograd.matrices import MOST_POINTS
from tests.autosched.fuzz.approx import Approx, extreme, sum_of_products
from tests.autosched.fuzz.draft import LONGEST, MOST, TYPES, Draft, Value, after, before
from tests.autosched.fuzz.images import Layout, Windows, padded_tensor, random_layout, random_windows, taken


def convolution(draft: Draft) -> Value:
    """A convolution of a random input."""
    rng = draft.rng
    rank = rng.choice([1, 2, 2, 2, 2, 3])
    left_type, right_type, dtype = rng.choice(TYPES)
    if draft.winograd and draft.chance(0.25):
        rank, windows, (groups, depth, width) = _for_winograd(draft)
        left_type = right_type = dtype = rng.choice(["float32", "float32", "float64"])
    else:
        windows = random_windows(draft, rank)
        longest = LONGEST // prod(windows.kernel) if dtype == "float16" else MOST
        groups, depth, width = _channels(draft, windows, longest)
    images = rng.choice([1, 1, 1, 2, 3])
    layout = random_layout(draft, rank, groups * depth)
    sizes = {"n": images, "c": groups * depth, **{str(axis): size for axis, size in enumerate(windows.size)}}
    x = draft.input(layout.shape(sizes), left_type, "X")
    is_transposed = draft.chance(0.12) and groups == 1
    draft.note(f"{rank}-D {layout} {left_type}·{right_type} {windows} groups {groups} × {depth} → {width}, n {images}")
    if is_transposed:
        x, windows = _dilated(draft, x, layout, windows)
    else:
        x = before(draft, x, "X")
    return _convolve(draft, x, layout, windows, (groups, depth, width), right_type, dtype)


def _for_winograd(draft: Draft) -> tuple[int, Windows, tuple[int, int, int]]:
    """What winograd is made for: more channels than other programs have, and strides of one."""
    rng = draft.rng
    kernel = rng.choice([[3, 3], [3, 3], [5, 5], [3, 5], [2, 2]])
    size = [rng.randint(5, 11), rng.randint(5, 11)]
    pad = rng.choice([[0, 0], [1, 1], [1, 1], [2, 1]])
    windows = Windows(size, kernel, [1, 1], [1, 1], pad, pad)
    return 2, windows, (1, rng.choice([16, 24, 32, 33]), rng.choice([16, 32, 48, 17]))


def _channels(draft: Draft, windows: Windows, longest: int) -> tuple[int, int, int]:
    """Groups, and the channels and filters of each; no more than there is time for, nor channels than the longest."""
    rng = draft.rng
    room = max(1, MOST // (3 * prod(windows.count) * prod(windows.kernel)))
    sizes = [size for size in (1, 2, 3, 4, 5, 8, 15, 16, 17, 32, 33, 64) if size <= room]
    kind = rng.choice(["dense", "dense", "dense", "grouped", "depthwise"])
    if kind == "depthwise":
        return rng.choice(sizes), 1, rng.choice([1, 1, 1, 2])
    groups = rng.choice([size for size in (2, 3, 4) if size <= room] or [1]) if kind == "grouped" else 1
    depth = rng.choice([size for size in sizes if size * groups <= room and size <= longest] or [1])
    return groups, depth, rng.choice([size for size in sizes if size * groups * depth <= room] or [1])


def _dilated(draft: Draft, x: Value, layout: Layout, windows: Windows) -> tuple[Value, Windows]:
    """Zeros between the pixels: what a transposed convolution convolves."""
    draft.note("transposed")
    rank, step = len(windows.size), draft.rng.choice([2, 2, 3])
    spread = [(size - 1) * step + 1 for size in windows.size]
    sizes = {str(axis): size for axis, size in enumerate(spread)}
    shape = [sizes.get(axis, size) for axis, size in zip(layout.order, x.shape)]
    shape += [layout.block] if layout.block else []
    at_image = [layout.order.index(str(axis)) for axis in range(rank)]

    def cell(*at: Any) -> Any:
        inner = [i // step if axis in at_image else i for axis, i in enumerate(at)]
        hit = te.all(*[at[axis] % step == 0 for axis in at_image])
        return te.if_then_else(hit, x.tensor[inner], te.const(0, x.dtype))

    def numbers(v: np.ndarray) -> np.ndarray:
        out = np.zeros(shape, v.dtype)
        out[tuple([slice(None, None, step) if axis in at_image else slice(None) for axis in range(len(shape))])] = v
        return out

    one = [1] * rank
    moved = Windows(spread, windows.kernel, one, windows.dilation, windows.pad_before, windows.pad_after)
    return Value(te.compute(shape, cell, name="dilated"), x.approx.moved(numbers)), moved


def _convolve(
    draft: Draft,
    x: Value,
    layout: Layout,
    windows: Windows,
    channels: tuple[int, int, int],
    weight_type: str,
    dtype: str,
) -> Value:
    rng = draft.rng
    rank, (groups, depth, width) = len(windows.size), channels
    axes = "fc" + "012"[:rank]
    weight_axes = rng.choice([axes, "012"[:rank] + "cf", "".join(rng.sample(axes, rank + 2))])
    weight_sizes = {"f": groups * width, "c": depth, **{str(axis): k for axis, k in enumerate(windows.kernel)}}
    w = draft.input([weight_sizes[axis] for axis in weight_axes], weight_type, "W", constant=draft.chance(0.5))
    draft.note(f"weights {weight_axes}{' constant' if draft.bound else ''}")
    is_padded = any(windows.pad_before) or any(windows.pad_after)
    source = padded_tensor(x, layout, windows) if is_padded else x.tensor
    taps: list[Any] = [te.reduce_axis((0, k), f"k{axis}") for axis, k in enumerate(windows.kernel)]
    channel = te.reduce_axis((0, depth), "rc")
    # A depthwise convolution is mostly written without the axis of its one channel.
    has_channel = depth > 1 or groups == 1 or draft.chance(0.3)
    reduce_axes = [*([channel] if has_channel else []), *taps]
    rng.shuffle(reduce_axes)
    out_layout = layout if not layout.block else random_layout(draft, rank, groups * width)

    def cell(*at: Any) -> Any:
        place = dict(zip(out_layout.order, at))
        if out_layout.block:
            place["c"] = place["c"] * out_layout.block + at[-1]
        group = place["c"] if width == 1 else place["c"] // width
        inside: Any = channel if has_channel else 0
        read = inside if groups == 1 else group * depth + inside if depth > 1 or has_channel else group
        image = {
            str(axis): place[str(axis)] * windows.stride[axis] + taps[axis] * windows.dilation[axis]
            for axis in range(rank)
        }
        left = source[layout.index({"n": place["n"], "c": read, **image})]
        weight = {"f": place["c"], "c": inside, **{str(axis): tap for axis, tap in enumerate(taps)}}
        right = w.tensor[[weight[axis] for axis in weight_axes]]
        if left.dtype != dtype or right.dtype != dtype:
            left, right = left.astype(dtype), right.astype(dtype)
        return te.sum(left * right, axis=reduce_axes)

    sizes = {"n": x.shape[layout.order.index("n")], "c": groups * width}
    sizes.update({str(axis): count for axis, count in enumerate(windows.count)})
    tensor = te.compute(out_layout.shape(sizes), cell, name="conv")
    plain = taken(x.approx.moved(lambda v: layout.plain(v, rank)), windows)
    grouped = plain.moved(lambda v: v.reshape(v.shape[0], groups, depth, *v.shape[2:]))
    ordered = w.approx.moved(lambda v: v.transpose([weight_axes.index(axis) for axis in "fc" + "012"[:rank]]))
    weights = ordered.moved(lambda v: v.reshape(groups, width, *v.shape[1:]))
    pixels, window = "xyz"[:rank], "uvw"[:rank]
    both = "".join(p + t for p, t in zip(pixels, window, strict=True))
    sums = sum_of_products(f"ngc{both},gfc{window}->ngf{pixels}", [grouped, weights], dtype)
    if draft.winograd and rank == 2 and dtype in ("float32", "float64"):
        draft.note(f"winograd up to {draft.winograd}")
        sums = _rounded_by_winograd(sums, grouped, weights, draft.winograd, depth)
    together = sums.moved(lambda v: out_layout.stored(v.reshape(v.shape[0], groups * width, *v.shape[3:]), rank))
    return after(draft, Value(tensor, together), out_layout.order.index("c") if not out_layout.block else 0)


def _rounded_by_winograd(sums: Approx, x: Approx, w: Approx, largest: int, depth: int) -> Approx:
    """The sums with what winograd may add to their error, for any tile that is allowed."""
    taps = w.value.shape[3:]
    greatest = [float(np.max(np.abs(operand.value) + operand.error, initial=0.0)) for operand in (x, w)]
    tiles = [tile for tile in TILES if tile <= largest and tile + max(taps) - 1 <= MOST_POINTS]
    factor = max([error_factor(tile, taps, depth, sums.dtype) for tile in tiles], default=0.0)
    return Approx(sums.value, sums.error + factor * prod(greatest), sums.dtype)


def pooling(draft: Draft) -> Value:
    """The greatest, least, sum or mean of windows, or of whole images."""
    rng = draft.rng
    rank = rng.choice([1, 2, 2, 2, 3])
    dtype = rng.choice(["float32", "float32", "float32", "float64", "int32", "float16"])
    kind = rng.choice(["max", "max", "min", "sum", "mean"])
    windows = random_windows(draft, rank)
    if draft.chance(0.15):
        draft.note("global")
        none = [0] * rank
        windows = Windows(windows.size, windows.size, [1] * rank, [1] * rank, none, none)
    if dtype == "int32" and kind == "mean":
        kind = "sum"
    channels = rng.choice([1, 2, 3, 8, 16, 17, 32])
    layout = random_layout(draft, rank, channels)
    draft.note(f"{kind} pooling {dtype} {layout} {windows} channels {channels}")
    sizes = {"n": rng.choice([1, 1, 2]), "c": channels, **{str(axis): n for axis, n in enumerate(windows.size)}}
    x = before(draft, draft.input(layout.shape(sizes), dtype, "X"), "X")
    fill = {"max": -1000.0, "min": 1000.0}.get(kind, 0.0)
    is_padded = any(windows.pad_before) or any(windows.pad_after)
    source = padded_tensor(x, layout, windows, fill) if is_padded else x.tensor
    taps: list[Any] = [te.reduce_axis((0, k), f"k{axis}") for axis, k in enumerate(windows.kernel)]
    combine = {"max": te.max, "min": te.min}.get(kind, te.sum)

    def cell(*at: Any) -> Any:
        place = dict(zip(layout.order, at))
        values = {
            str(axis): place[str(axis)] * windows.stride[axis] + taps[axis] * windows.dilation[axis]
            for axis in range(rank)
        }
        index = [values.get(axis, place[axis]) for axis in layout.order] + ([at[-1]] if layout.block else [])
        return combine(source[index], axis=taps)

    out_sizes = {**sizes, **{str(axis): count for axis, count in enumerate(windows.count)}}
    tensor = te.compute(layout.shape(out_sizes), cell, name="pooled")
    plain = taken(x.approx.moved(lambda v: layout.plain(v, rank)), windows, fill)
    if kind in ("max", "min"):
        approx = extreme(plain, tuple([3 + 2 * axis for axis in range(rank)]), kind == "max")
    else:
        both = "".join(p + t for p, t in zip("xyz"[:rank], "uvw"[:rank], strict=True))
        approx = sum_of_products(f"nc{both}->nc{'xyz'[:rank]}", [plain], dtype)
    pooled = Value(tensor, approx.moved(lambda v: layout.stored(v, rank)))
    if kind == "mean":
        share = 1.0 / prod(windows.kernel)
        factor = te.const(share, dtype)
        mean = te.compute(pooled.shape, lambda *at: pooled.tensor[at] * factor, name="mean")
        rounded = float(np.asarray(share, dtype))
        pooled = Value(mean, pooled.approx.scaled(rounded, 0))
    return after(draft, pooled, 0) if draft.chance(0.4) else pooled
