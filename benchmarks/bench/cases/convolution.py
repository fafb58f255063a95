"""Convolutions of any number of dimensions with constant weights, bias and activation; channels first.

The program is plain tensor expressions: a padded copy of the input, the sum of products, the bias and the activation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Array, Bounded, Case, Onnx, OursToo, Peer, Problem, Torch, aligned, uniform
from benchmarks.bench.cases.networks import Layer, distinct, square
from benchmarks.bench.networks import OURS_WINOGRAD
from benchmarks.bench.onnx_models import Step, model

BATCHES = (1, 4)
WINOGRAD_TILE = 4  # what `winograd=True` allows


def onnx_attributes(layer: Layer) -> dict[str, Any]:
    """What an ONNX model says of a convolution beside its operands."""
    return {
        "kernel_shape": list(layer.kernel),
        "strides": list(layer.stride),
        "pads": [*layer.padding, *layer.padding],
        "group": layer.groups,
        "dilations": [layer.dilation] * len(layer.kernel),
    }


def convolution(layer: Layer, batch: int) -> Problem:
    """activation(x ∗ w + b), where w and b are constants."""
    x = uniform((batch, layer.channels, *layer.size), seed=1)
    w, b = weights(layer)
    y = aligned((batch, layer.filters, *layer.output_size))
    terms = prod(w.shape[1:])

    def reference() -> list[Bounded]:
        shape = (1, -1, *[1] * len(layer.size))
        exact = sum_of_products(wide(x), wide(w), layer) + wide(b).reshape(shape)
        # The bound needs no more than float32; what that rounds off is made up for.
        allowed = gamma(terms + 2) * (sum_of_products(np.abs(x), np.abs(w), layer) * 1.001 + np.abs(b).reshape(shape))
        return [Bounded(activated(exact, layer.activation), allowed)]

    def onnx_model() -> bytes:
        last = {"none": "Identity", "relu": "Relu", "relu6": "Clip"}[layer.activation]
        limits = {"low": np.float32(0), "high": np.float32(6)} if last == "Clip" else {}
        conv = Step("Conv", ["x0", "w", "b"], "y0" if last == "Identity" else "c", onnx_attributes(layer))
        after = [] if last == "Identity" else [Step(last, ["c", *limits], "y0")]
        constants = {"w": w, "b": b, **{name: np.asarray(limit) for name, limit in limits.items()}}
        return model([conv, *after], {"x0": x}, {"y0": y}, constants)

    def with_torch(torch: Any, inputs: Any, out: Any) -> Any:
        return _torch_call(torch, layer, inputs[0], torch.from_numpy(w), torch.from_numpy(b))

    peers: dict[str, Peer] = {
        "onnxruntime": Onnx("onnxruntime", onnx_model),
        "openvino": Onnx("openvino", onnx_model),
        "torch": Torch(with_torch, apart=True, returns=True),
    }
    if may_be_winograd(layer) and batch:

        def by_winograd() -> list[Bounded]:
            (direct,) = reference()
            return [Bounded(direct.exact, direct.allowed + _winograd_error(layer, x, w))]

        ours = [aligned(y.shape)]
        peers[OURS_WINOGRAD] = OursToo(lambda: program(layer, batch, w, b), [x], ours, WINOGRAD_TILE, by_winograd)
    return Problem(
        lambda: program(layer, batch, w, b),
        [x],
        [y],
        reference,
        peers,
        flops=2 * y.size * terms,
        read=x.nbytes + w.nbytes + b.nbytes,
    )


def weights(layer: Layer) -> tuple[Array, Array]:
    """Random weights, so that sums are about as large as the inputs are, and a bias."""
    shape = (layer.filters, layer.channels // layer.groups, *layer.kernel)
    spread = (3 / prod(shape[1:])) ** 0.5
    return uniform(shape, -spread, spread, seed=2), uniform(layer.filters, seed=3)


def may_be_winograd(layer: Layer) -> bool:
    """Whether the rule for winograd could take it."""
    is_plain = layer.groups == 1 and layer.dilation == 1 and max(layer.stride) == 1
    return is_plain and len(layer.size) == 2 and min(layer.kernel) > 1


def _winograd_error(layer: Layer, x: Array, w: Array) -> Array:
    """What winograd's bound allows: element by element for the first image, the worst of all for the others."""
    from loopwright.schedule.winograd import error_bound, error_factor

    first = np.pad(x[:1], [(0, 0), (0, 0), *[(p, p) for p in layer.padding]])
    worst = error_factor(WINOGRAD_TILE, layer.kernel, layer.channels) * float(np.abs(x).max() * np.abs(w).max())
    allowed = np.full((x.shape[0], layer.filters, *layer.output_size), worst)
    allowed[:1] = error_bound(first, w, WINOGRAD_TILE)
    return allowed


def program(layer: Layer, batch: int, w: Array, b: Array) -> Any:
    """Our program, its weights bound to it."""
    from loopwright import te, tir

    dtype = "float32"
    X = te.placeholder((batch, layer.channels, *layer.size), dtype, name="X")
    W, B = te.placeholder(w.shape, dtype, name="W"), te.placeholder(b.shape, dtype, name="B")
    sums = te_convolution(X, W, layer)
    Y = te.compute(sums.shape, lambda n, c, *at: te_activation(sums[n, c, *at] + B[c], layer.activation), name="Y")
    return tir.bind_constants(te.create_prim_func([X, W, B, Y]), {"W": w, "B": b})


def te_convolution(X: Any, W: Any, layer: Layer, zero: Any = 0.0, dtype: str = "float32") -> Any:
    """The sums of products; in `dtype`, where that is wider than the operands."""
    from loopwright import te

    padded = X
    if any(layer.padding):
        sizes = [n + 2 * p for n, p in zip(layer.size, layer.padding)]

        def pad(n: Any, c: Any, *at: Any) -> Any:
            inside = [
                condition
                for i, p, size in zip(at, layer.padding, layer.size)
                if p
                for condition in (i >= p, i < size + p)
            ]
            return te.if_then_else(te.all(*inside), X[n, c, *[i - p for i, p in zip(at, layer.padding)]], zero)

        padded = te.compute((*X.shape[:2], *sizes), pad, name="padded")
    taps: list[Any] = [te.reduce_axis((0, k), f"k{axis}") for axis, k in enumerate(layer.kernel)]
    depth, width = layer.channels // layer.groups, layer.filters // layer.groups
    channel: list[Any] = [te.reduce_axis((0, depth), "c")] if depth > 1 or layer.groups == 1 else []

    def element(n: Any, f: Any, *at: Any) -> Any:
        group = 0 if layer.groups == 1 else f if width == 1 else f // width
        read = group * depth + channel[0] if channel and layer.groups > 1 else channel[0] if channel else group
        where = [i * s + k * layer.dilation for i, s, k in zip(at, layer.stride, taps)]
        left, right = padded[n, read, *where], W[f, channel[0] if channel else 0, *taps]
        if left.dtype != dtype:
            left, right = left.astype(dtype), right.astype(dtype)
        return te.sum(left * right, axis=[*channel, *taps])

    return te.compute((X.shape[0], layer.filters, *layer.output_size), element, name="C")


def te_activation(value: Any, activation: str) -> Any:
    """The activation of a value."""
    from loopwright import te

    if activation == "none":
        return value
    value = te.max(value, 0.0)
    return te.min(value, 6.0) if activation == "relu6" else value


def activated(x: Array, activation: str) -> Array:
    """The same on arrays."""
    return x if activation == "none" else np.clip(x, 0, 6 if activation == "relu6" else None)


def sum_of_products(x: Array, w: Array, layer: Layer) -> Array:
    """The convolution itself, in the type of its operands: one product of matrices a tap, image and group."""
    around = [(0, 0), (0, 0), *[(p, p) for p in layer.padding]]
    padded = np.pad(x, around)
    sizes = layer.output_size
    groups, depth, width = layer.groups, layer.channels // layer.groups, layer.filters // layer.groups
    out = np.zeros((x.shape[0], groups, width, prod(sizes)), x.dtype)
    for tap in product(*[range(k) for k in layer.kernel]):
        first = [k * layer.dilation for k in tap]
        window = [slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(first, sizes, layer.stride)]
        at: Any = (..., *tap)
        matrix = w[at].reshape(groups, width, depth)
        for image, sums in zip(padded, out):
            sums += matrix @ image[(slice(None), *window)].reshape(groups, depth, -1)
    return out.reshape(x.shape[0], layer.filters, *sizes)


def _torch_call(torch: Any, layer: Layer, x: Any, w: Any, b: Any) -> Any:
    """The convolution and its activation, in place."""
    convolve = (torch.conv1d, torch.conv2d, torch.conv3d)[len(layer.size) - 1]
    settings = (w, b, layer.stride, layer.padding, layer.dilation, layer.groups)
    relu6 = torch.nn.functional.relu6
    if layer.activation == "none":
        return lambda: convolve(x, *settings)
    if layer.activation == "relu":
        return lambda: torch.relu_(convolve(x, *settings))
    return lambda: relu6(convolve(x, *settings), inplace=True)


_ODD: Sequence[Layer] = (
    Layer(17, 33, (9, 7), (3, 3), (1, 1), (1, 1)),
    square(5, 7, 11, 3, 2),
    square(31, 65, 5, 1),
    square(15, 15, 9, 3, 1, 15, "relu6"),
    Layer(6, 4, (7, 9), (5, 3), (2, 1), (2, 0), 2),
    square(1, 1, 1, 1),
    Layer(3, 9, (3, 5, 6), (3, 3, 3), (1, 2, 1), (1, 1, 0), activation="none"),
)


def boundary(like: Sequence[Layer]) -> list[tuple[Layer, int]]:
    """Small layers of the kinds that are there: odd numbers of channels and pixels, one of each, no image at all."""
    ranks, kinds = {len(layer.size) for layer in like}, {layer.is_depthwise for layer in like}
    chosen = [layer for layer in _ODD if len(layer.size) in ranks and (not layer.is_depthwise or True in kinds)]
    return [*[(layer, 2) for layer in chosen], (chosen[0], 0)]


def rows(layers: Iterator[Layer], quick: Sequence[str]) -> list[Case]:
    """A row for each distinct layer and batch; `quick` are the names of those that `--quick` runs, on one image."""
    found = distinct(layers)
    near = boundary(list(found))
    return [
        Case(
            f"{layer}, batch {batch}",
            convolution,
            (layer, batch),
            near,
            batch == 1 and str(layer) in quick,
            frozenset({"bar"}),
            count,
            f"batch {batch}",
        )
        for batch in BATCHES
        for layer, count in found.items()
    ]
