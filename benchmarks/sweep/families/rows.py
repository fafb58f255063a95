"""What runs along rows: softmax, log_softmax, and layer, RMS, group, instance and batch norms.

Distribution: 2^12 to 2^21 elements (log-uniform). softmax and log_softmax: ranks 1 to 4, any axis (the last for 70 %).
Layer and RMS norms: ranks 2 to 4, the last axis by `sizes.extent`. Group, instance and batch norms: images of 1 to 3
spatial axes, channels by `sizes.extent` up to 512, groups that divide them. float32 88 %, float64 12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.case import Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick, shape_of

ELEMENTS = (2**12, 2**21)
EPSILON = 2.0**-17  # which float32 has: ONNX keeps attributes in it
KINDS = {
    "softmax": 25, "log_softmax": 12, "layer_norm": 20, "rms_norm": 12, "group_norm": 10, "instance_norm": 9,
    "batch_norm": 12,
}  # fmt: skip
# Variances by one pass or two, sums rescaled on the way: the same order of error as the steps that are followed here.
FACTOR = 8.0


def draw(rng: Rng) -> Case:
    """A case."""
    kind = pick(rng, list(KINDS), list(KINDS.values()))
    dtype = "float32" if rng.random() < 0.88 else "float64"
    if kind in ("softmax", "log_softmax"):
        shape = shape_of(rng, ELEMENTS, (1, 2, 2, 3, 4))
        axis = len(shape) - 1 if rng.random() < 0.7 else int(rng.integers(len(shape)))
        return softmax(kind, shape, axis, dtype)
    if kind in ("layer_norm", "rms_norm"):
        return row_norm(kind, shape_of(rng, ELEMENTS, (2, 2, 3, 4)), dtype)
    rank = pick(rng, (1, 2, 3), (20, 70, 10))
    total = log_uniform(rng, *ELEMENTS)
    batch = pick(rng, (1, 2, 8), (60, 25, 15))
    channels = max(min(extent(rng, 512, 2), total // batch // 4), 1)
    side = max(round((total / batch / channels) ** (1 / rank)), 1)
    shape = (batch, channels, *[side] * rank)
    divisors = [d for d in (2, 3, 4, 8, 16, 32) if channels % d == 0] or [1]
    return image_norm(kind, shape, pick(rng, divisors), dtype)


def softmax(kind: str, shape: tuple[int, ...], axis: int, dtype: str) -> Case:
    """e^(x - max) over its sum, or the logarithm of that."""

    def exact(x: Any) -> list[Bounded]:
        r = Rounded.of(x[0])
        d = r - r.max(axis)
        e = d.exp()
        total = e.sum(axis)
        found = e / total if kind == "softmax" else d - total.monotone("log", np.log)
        return [found.bounded(FACTOR)]

    def with_numpy(x: Any, out: Any) -> Any:
        d = x[0] - x[0].max(axis=axis, keepdims=True)
        e = np.exp(d)
        total = e.sum(axis=axis, keepdims=True)
        return np.divide(e, total, out=out[0]) if kind == "softmax" else np.subtract(d, np.log(total), out=out[0])

    def in_te(x: Any) -> Any:
        from loopwright import topi

        return getattr(topi.nn, kind)(x, axis)

    return Case(
        kind,
        [Input(shape, dtype, -4, 4)],
        [Output(shape, dtype)],
        exact,
        f"axis {axis}",
        in_te,
        [Step("Softmax" if kind == "softmax" else "LogSoftmax", ["x0"], "y0", {"axis": axis})],
        numpy=with_numpy,
        torch=lambda t, x, out: getattr(t, kind)(x[0], axis),
    )


def _normal(x: Rounded, axes: tuple[int, ...]) -> Rounded:
    d = x - x.mean(axes)
    return d / ((d * d).mean(axes) + EPSILON).sqrt()


def row_norm(kind: str, shape: tuple[int, ...], dtype: str) -> Case:
    """Layer or RMS norm over the last axis."""
    is_layer = kind == "layer_norm"
    own = Input(shape[-1:], dtype, 0.5, 1.5, constant=True)
    inputs = [Input(shape, dtype), own, *([own] if is_layer else [])]

    def exact(x: Any) -> list[Bounded]:
        r, g = Rounded.of(x[0]), Rounded.of(x[1])
        if is_layer:
            return [(_normal(r, (-1,)) * g + Rounded.of(x[2])).bounded(FACTOR)]
        return [(r / ((r * r).mean(-1) + EPSILON).sqrt() * g).bounded(FACTOR)]

    def in_te(x: Any, g: Any, b: Any = None) -> Any:
        from loopwright import topi

        axis = [len(shape) - 1]
        return topi.nn.layer_norm(x, g, b, axis, EPSILON) if is_layer else topi.nn.rms_norm(x, g, axis, EPSILON)

    def with_numpy(x: Any, out: Any) -> Any:
        epsilon = x[0].dtype.type(EPSILON)
        if is_layer:
            d = x[0] - x[0].mean(axis=-1, keepdims=True)
            scaled = d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + epsilon)
            return np.add(scaled * x[1], x[2], out=out[0])
        return np.multiply(x[0] / np.sqrt(np.mean(x[0] * x[0], axis=-1, keepdims=True) + epsilon), x[1], out=out[0])

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        f = t.nn.functional
        return (f.layer_norm if is_layer else f.rms_norm)(x[0], shape[-1:], *x[1:], EPSILON)

    model = [Step("LayerNormalization", ["x0", "x1", "x2"], "y0", {"axis": -1, "epsilon": EPSILON})]
    if not is_layer:  # there is an operator of its own only since opset 23
        model = [
            Step("Mul", ["x0", "x0"], "squares"),
            Step("ReduceMean", ["squares", "last"], "mean", {"keepdims": 1}),
            Step("Add", ["mean", "epsilon"], "shifted"),
            Step("Sqrt", ["shifted"], "root"),
            Step("Div", ["x0", "root"], "normal"),
            Step("Mul", ["normal", "x1"], "y0"),
        ]
    constants = {} if is_layer else {"last": np.asarray([-1], "int64"), "epsilon": np.asarray(EPSILON, dtype)}
    return Case(
        kind, inputs, [Output(shape, dtype)], exact, "", in_te, model, constants, with_numpy, with_torch
    )


def image_norm(kind: str, shape: tuple[int, ...], groups: int, dtype: str) -> Case:
    """Group, instance or batch norm of images, channels first."""
    channels, rank = shape[1], len(shape)
    own = Input((channels,), dtype, 0.5, 1.5, constant=True)
    inputs = [Input(shape, dtype), own, own, *([own, own] if kind == "batch_norm" else [])]
    axes = tuple(range(2, rank))
    folded = (shape[0], groups, channels // groups, *shape[2:])

    def exact(x: Any) -> list[Bounded]:
        r = Rounded.of(x[0])
        g, b, *moving = [Rounded.of(value.reshape(-1, *[1] * (rank - 2))) for value in x[1:]]
        if kind == "batch_norm":
            normal = (r - moving[0]) / (moving[1] + EPSILON).sqrt()
        elif kind == "group_norm":
            normal = _normal(r.move(lambda v: v.reshape(folded)), tuple(range(2, rank + 1)))
            normal = normal.move(lambda v: v.reshape(shape))
        else:
            normal = _normal(r, axes)
        # A batch norm may be folded into one product and one sum, whose parts cancel.
        extra = 4.0 if kind == "batch_norm" else 1.0
        return [(normal * g + b).bounded(FACTOR * extra)]

    def in_te(x: Any, g: Any, b: Any, mean: Any = None, variance: Any = None) -> Any:
        from loopwright import topi

        if kind == "batch_norm":
            return topi.nn.batch_norm(x, g, b, mean, variance, 1, EPSILON)[0]
        if kind == "group_norm":
            return topi.nn.group_norm(x, g, b, groups, 1, list(axes), EPSILON)
        return topi.nn.instance_norm(x, g, b, list(axes), EPSILON, channel_axis=1)

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        f = t.nn.functional
        if kind == "batch_norm":
            return f.batch_norm(x[0], x[3], x[4], x[1], x[2], eps=EPSILON)
        if kind == "group_norm":
            return f.group_norm(x[0], groups, x[1], x[2], EPSILON)
        return f.instance_norm(x[0], None, None, x[1], x[2], eps=EPSILON)

    names = [f"x{k}" for k in range(len(inputs))]
    operators = {
        "batch_norm": ("BatchNormalization", {"epsilon": EPSILON}),
        "group_norm": ("GroupNormalization", {"epsilon": EPSILON, "num_groups": groups}),
        "instance_norm": ("InstanceNormalization", {"epsilon": EPSILON}),
    }
    operator, attributes = operators[kind]
    return Case(
        kind,
        inputs,
        [Output(shape, dtype)],
        exact,
        f"{groups} groups" if kind == "group_norm" else "",
        in_te,
        [Step(operator, names, "y0", attributes)],
        torch=with_torch,
    )
