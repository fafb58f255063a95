"""Convolutions: 1-D, 2-D and 3-D; grouped, depthwise, dilated, strided, transposed; long kernels, flat ones, 1 × 1.

Distribution: 2^18 to 2^28 multiplications (log-uniform; the number of pixels follows from the rest, 2^22 elements at
most). Kinds: 2-D 35 %, depthwise 15, 1-D 12, pointwise 10, transposed 10, 3-D 8, long kernels on one channel (1-D, 9 to
255 taps) 5, k × 1 and 1 × k 5. Kernels 1, 2, 3, 5, 7 (3 most often), stride 1 (70 %) or 2, dilation 1 (85 %), 2 or 3,
groups 1 (80 %), 2, 4 or 8, padding half of the kernel (70 %) or none; channels by `sizes.extent` up to 512; batch 1 (70
%), 2 to 8; square images for three of four. float32 92 %, float64 8. Half have a bias, some of those a relu (constant
weights in models). Kernels of ours are channels first (85 %) or last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma
from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick
from benchmarks.sweep.windows import Window, convolution, transposed_convolution

WORK = (2**18, 2**28)
MOST = 2**22  # elements of an image or a result
KINDS = {
    "conv2d": 35, "depthwise": 15, "conv1d": 12, "pointwise": 10, "transposed": 10, "conv3d": 8, "long": 5, "flat": 5,
}  # fmt: skip


def draw(rng: Rng) -> Case:
    """A case."""
    kind = pick(rng, list(KINDS), list(KINDS.values()))
    rank = {"conv1d": 1, "long": 1, "conv3d": 3}.get(kind, 2)
    if kind in ("depthwise", "transposed", "pointwise"):
        rank = pick(rng, (1, 2, 3), (15, 75, 10))
    work = log_uniform(rng, *WORK)
    batch = 1 if rng.random() < 0.7 else int(rng.integers(2, 9))
    dtype = "float32" if rng.random() < 0.92 else "float64"
    window = _window(rng, kind, rank)
    inner, outer, groups = _channels(rng, kind)
    # Pixels follow from the work: out · in / groups · taps · pixels · batch.
    each = outer * (inner // groups) * int(np.prod(window.kernel)) * batch
    pixels = min(max(work // each, 1), MOST // (batch * max(inner * int(np.prod(window.stride)), outer)))
    side = max(round(pixels ** (1 / rank)), 1)
    places = [side] * rank
    if rank > 1 and rng.random() < 0.25:
        places[-1] = extent(rng, 2 * side)
    if kind == "transposed":
        return transposed(rng, batch, inner, outer, groups, places, window, dtype)
    reach = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilation)]
    sizes = [max((n - 1) * s + r - 2 * p, r) for n, s, r, p in zip(places, window.stride, reach, window.padding)]
    end = pick(rng, ("", "bias", "bias relu"), (50, 25, 25))
    is_last = rng.random() < 0.15 and kind != "depthwise"
    return forward(kind, batch, inner, outer, groups, sizes, window, dtype, end, is_last)


def _window(rng: Rng, kind: str, rank: int) -> Window:
    size = pick(rng, (1, 2, 3, 5, 7), (15, 8, 52, 15, 10))
    kernel = [size] * rank
    if kind == "pointwise":
        kernel = [1] * rank
    elif kind == "long":
        kernel = [log_uniform(rng, 9, 255)]
    elif kind == "flat":
        kernel = pick(rng, ([1, size], [size, 1]))
    elif kind == "conv3d":
        kernel = [min(size, 3)] * 3
    stride = 1 if rng.random() < 0.7 else 2
    dilation = 1 if rng.random() < 0.85 else pick(rng, (2, 3))
    is_padded = rng.random() < 0.7
    padding = [(k - 1) * dilation // 2 if is_padded else 0 for k in kernel]
    return Window(tuple(kernel), (stride,) * rank, (dilation,) * rank, tuple(padding))


def _channels(rng: Rng, kind: str) -> tuple[int, int, int]:
    """Input channels, output channels, groups."""
    if kind == "depthwise":
        channels = extent(rng, 768, 3)
        return channels, channels, channels
    if kind == "long":
        return 1, pick(rng, (1, extent(rng, 64))), 1
    inner = 3 if rng.random() < 0.1 else extent(rng, 512)
    outer = extent(rng, 512)
    groups = 1 if rng.random() < 0.8 else pick(rng, (2, 4, 8))
    return max(inner // groups, 1) * groups, max(outer // groups, 1) * groups, groups


def forward(
    kind: str, batch: int, inner: int, outer: int, groups: int, sizes: list[int], window: Window, dtype: str,
    end: str, is_last: bool,
) -> Case:  # fmt: skip
    """A convolution, perhaps with bias and relu; `is_last` has channels last in kernels."""
    rank = len(sizes)
    spatial = "DHW"[3 - rank :]
    places = window.out(sizes)
    inputs = [
        Input((batch, inner, *sizes), dtype),
        Input((outer, inner // groups, *window.kernel), dtype, constant=True),
    ]
    inputs += [Input((outer,), dtype, constant=True)] if end else []
    layout = f"N{spatial}C" if is_last else f"NC{spatial}"

    def exact(x: Any) -> list[Bounded]:
        wide = [value.astype("float64") for value in x]
        right = convolution(wide[0], wide[1], window, groups)
        count = inner // groups * int(np.prod(window.kernel)) + 2
        found = Rounded(right, gamma_of(count, dtype) * convolution(*map(np.abs, wide[:2]), window, groups), dtype)
        if end:
            found = found + Rounded.of(x[2].reshape(-1, *[1] * rank))
        if end == "bias relu":
            found = found.maximum(0.0)
        # 3 × 3 convolutions of models may be done by winograd, whose constants are larger.
        factor = 64.0 if max(window.kernel) == 3 and rank == 2 and groups == 1 and max(window.stride) == 1 else 2.0
        return [found.bounded(factor)]

    def in_te(x: Any, w: Any, b: Any = None) -> Any:
        from loopwright import topi

        if kind == "depthwise" and rank == 2:
            made = topi.nn.depthwise_conv2d_nchw(x, w, window.stride, _both(window), window.dilation)
        else:
            made = topi.nn.conv(
                x, w, window.stride, _both(window), window.dilation, groups, layout, f"OI{spatial}", None, layout
            )
        if b is not None:
            made = topi.nn.bias_add(made, b, axis=layout.index("C"))
        return topi.nn.relu(made) if end == "bias relu" else made

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        made = getattr(t.nn.functional, f"conv{rank}d")(
            x[0], x[1], x[2] if end else None, window.stride, window.padding, window.dilation, groups
        )
        return made.relu_() if end == "bias relu" else made

    def with_numpy(x: Any, out: Any) -> Any:
        if batch != 1 or inner != 1 or outer != 1 or end or window.stride != (1,) or max(window.dilation) > 1:
            raise NotImplementedError("one channel only")
        padded = np.pad(x[0][0, 0], window.padding[0]) if window.padding[0] else x[0][0, 0]
        return np.correlate(padded, x[1][0, 0], "valid").reshape(1, 1, -1)

    steps = [
        Step(
            "Conv",
            ["x0", "x1", *(["x2"] if end else [])],
            "c" if end == "bias relu" else "y0",
            {
                "kernel_shape": window.kernel,
                "strides": window.stride,
                "dilations": window.dilation,
                "pads": _both(window),
                "group": groups,
            },
        )
    ]
    steps += [Step("Relu", ["c"], "y0")] if end == "bias relu" else []
    details = " ".join([window.text(), *([f"groups {groups}"] if groups > 1 else []), *([end] if end else [])])
    made = Case(
        kind,
        inputs,
        [Output((batch, outer, *places), dtype)],
        exact,
        details,
        kernel=in_te,
        model=steps,
        numpy=with_numpy if kind == "long" else None,
        torch=with_torch,
    )
    return channels_last(made, rank) if is_last else made


def channels_last(case: Case, rank: int) -> Case:
    """The same with channels last: peers in torch get channels-last tensors, ONNX has no such convolution."""
    back = (0, rank + 1, *range(1, rank + 1))
    batch, inner, *sizes = case.inputs[0].shape
    _, outer, *places = case.outputs[0].shape
    torch, exact = case.torch, case.exact
    assert torch is not None

    def first(x: Any) -> list[Array]:
        return [x[0].transpose(back), *x[1:]]

    def last(found: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(found, 1, -1))

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        return torch(t, [x[0].permute(back), *x[1:]], out).permute(0, *range(2, rank + 2), 1)

    return replace(
        case,
        inputs=[replace(case.inputs[0], shape=(batch, *sizes, inner)), *case.inputs[1:]],
        outputs=[Output((batch, *places, outer), case.outputs[0].dtype)],
        exact=lambda x: [Bounded(last(found.exact), last(np.asarray(found.allowed))) for found in exact(first(x))],
        details=f"{case.details} channels last",
        model=(),
        numpy=None,
        torch=with_torch,
    )


def transposed(
    rng: Rng, batch: int, inner: int, outer: int, groups: int, sizes: list[int], window: Window, dtype: str
) -> Case:
    """A transposed convolution, strided for most."""
    rank = len(sizes)
    stride = 2 if rng.random() < 0.75 else 1
    padding = tuple([min(p, k - 1) for p, k in zip(window.padding, window.kernel)])
    window = replace(window, stride=(stride,) * rank, dilation=(1,) * rank, padding=padding)
    extra = (int(stride > 1 and rng.random() < 0.4),) * rank
    places = [
        (n - 1) * s - 2 * p + k + e for n, s, p, k, e in zip(sizes, window.stride, padding, window.kernel, extra)
    ]
    sizes = [n if place > 0 else n + 2 * p for n, place, p in zip(sizes, places, padding)]
    places = [
        (n - 1) * s - 2 * p + k + e for n, s, p, k, e in zip(sizes, window.stride, padding, window.kernel, extra)
    ]

    def exact(x: Any) -> list[Bounded]:
        wide = [value.astype("float64") for value in x]
        count = inner // groups * int(np.prod(window.kernel)) + 2
        size = transposed_convolution(*map(np.abs, wide), window, groups, extra)
        right = transposed_convolution(wide[0], wide[1], window, groups, extra)
        return [Rounded(right, gamma_of(count, dtype) * size, dtype).bounded(2)]

    def in_te(x: Any, w: Any) -> Any:
        from loopwright import topi

        name = f"conv{rank}d_transpose_nc{'dhw'[3 - rank :]}"
        if groups > 1:
            return getattr(topi.nn, f"group_{name}")(x, w, window.stride, _both(window), None, extra, groups)
        return getattr(topi.nn, name)(x, w, window.stride, _both(window), None, extra)

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        function = getattr(t.nn.functional, f"conv_transpose{rank}d")
        return function(x[0], x[1], None, window.stride, padding, extra, groups)

    attributes = {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "pads": _both(window),
        "output_padding": extra,
        "group": groups,
    }
    return Case(
        "transposed",
        [Input((batch, inner, *sizes), dtype), Input((inner, outer // groups, *window.kernel), dtype, constant=True)],
        [Output((batch, outer, *places), dtype)],
        exact,
        f"{window.text()}{f' groups {groups}' if groups > 1 else ''}",
        in_te,
        [Step("ConvTranspose", ["x0", "x1"], "y0", attributes)],
        torch=with_torch,
    )


def gamma_of(count: int, dtype: str) -> float:
    """The bound of a sum of so many products, against a reference in float64."""
    return gamma(count, dtype) + (gamma(count, "float64") if dtype == "float64" else 0.0)


def _both(window: Window) -> tuple[int, ...]:
    return (*window.padding, *window.padding)
