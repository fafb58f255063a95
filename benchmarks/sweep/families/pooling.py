"""Pooling: greatest and mean, 1-D to 3-D, overlapping or not, padded or not, global.

Distribution: 2^14 to 2^21 elements of input (log-uniform); 1-D 15 %, 2-D 75, 3-D 10; channels by `sizes.extent` up to
512, batch 1 to 4; kernels 2 (40 %), 3 (40), 5, 7 or one side of each, stride 1, 2 or the kernel, padding half of the
kernel for half of them; one in six is global. float32 85 %, float64 10, uint8 and int32 (greatest) 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.case import Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded, exactly
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick
from benchmarks.sweep.windows import Window

ELEMENTS = (2**14, 2**21)


def draw(rng: Rng) -> Case:
    """A case."""
    rank = pick(rng, (1, 2, 3), (15, 75, 10))
    kind = pick(rng, ("max", "avg"))
    dtype = pick(rng, ("float32", "float64", "uint8"), (85, 10, 5 if kind == "max" else 0))
    total = log_uniform(rng, *ELEMENTS)
    batch = pick(rng, (1, 2, 4), (70, 20, 10))
    size = pick(rng, (2, 3, 5, 7), (40, 40, 12, 8))
    channels = min(extent(rng, 512), max(total // batch // (size + 1) ** rank, 1))
    side = max(round((total / batch / channels) ** (1 / rank)), size)
    sizes = [side] * rank
    if rank > 1 and rng.random() < 0.25:
        sizes[-1] = max(extent(rng, 4 * side, size), size)
    if rng.random() < 1 / 6:
        return whole(kind, batch, channels, sizes, dtype)
    kernel = [size] * rank
    if rank > 1 and rng.random() < 0.15:
        kernel[int(rng.integers(rank))] = 1
    stride = pick(rng, (1, 2, size))
    padding = tuple([k // 2 if rng.random() < 0.5 else 0 for k in kernel])
    return pooled(kind, batch, channels, sizes, Window(tuple(kernel), (stride,) * rank, (1,) * rank, padding), dtype)


def pooled(kind: str, batch: int, channels: int, sizes: list[int], window: Window, dtype: str) -> Case:
    """A window without weights; a mean counts only cells of the image."""
    rank = len(sizes)
    places = window.out(sizes)
    both = (*window.padding, *window.padding)

    def exact(x: Any) -> list[Bounded]:
        if kind == "max":
            least = -np.inf if x[0].dtype.kind == "f" else np.iinfo(x[0].dtype).min
            return [exactly(np.max(window.taps(x[0], least), axis=0))]
        value = x[0].astype("float64")
        count = np.sum(window.taps(np.ones_like(value)), axis=0)
        stacked = Rounded.of(np.asarray(window.taps(x[0])))
        total = stacked.sum(0, keepdims=False)
        return [(total / Rounded.of(count, dtype)).bounded(2)]

    def in_te(x: Any) -> Any:
        from loopwright import topi

        function = getattr(topi.nn, f"pool{rank}d")
        layout = "NC" + "DHW"[3 - rank :]
        return function(x, window.kernel, window.stride, window.dilation, both, kind, False, layout, False)

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        f = t.nn.functional
        if kind == "max":
            return getattr(f, f"max_pool{rank}d")(x[0], window.kernel, window.stride, window.padding)
        function = getattr(f, f"avg_pool{rank}d")
        return function(x[0], window.kernel, window.stride, window.padding, count_include_pad=False)

    attributes = {"kernel_shape": window.kernel, "strides": window.stride, "pads": both}
    return Case(
        f"{kind}_pool",
        [Input((batch, channels, *sizes), dtype, 0 if dtype == "uint8" else -1, 255 if dtype == "uint8" else 1)],
        [Output((batch, channels, *places), dtype)],
        exact,
        window.text(),
        in_te,
        [Step("MaxPool" if kind == "max" else "AveragePool", ["x0"], "y0", attributes)],
        torch=with_torch,
    )


def whole(kind: str, batch: int, channels: int, sizes: list[int], dtype: str) -> Case:
    """Pooling over the whole image."""
    rank = len(sizes)
    axes = tuple(range(2, rank + 2))

    def exact(x: Any) -> list[Bounded]:
        if kind == "max":
            return [exactly(x[0].max(axis=axes, keepdims=True))]
        return [Rounded.of(x[0]).mean(axes).bounded(2)]

    def in_te(x: Any) -> Any:
        from loopwright import topi

        return topi.nn.global_pool(x, kind, "NC" + "DHW"[3 - rank :])

    return Case(
        f"global_{kind}_pool",
        [Input((batch, channels, *sizes), dtype, 0 if dtype == "uint8" else -1, 255 if dtype == "uint8" else 1)],
        [Output((batch, channels, *[1] * rank), dtype)],
        exact,
        "",
        in_te,
        [Step("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", ["x0"], "y0")],
        numpy=lambda x, out: (np.max if kind == "max" else np.mean)(x[0], axis=axes, keepdims=True, out=out[0]),
        torch=lambda t, x, out: (t.amax if kind == "max" else t.mean)(x[0], dim=axes, keepdim=True),
    )
