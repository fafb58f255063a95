"""Small graphs that should be one kernel: what users write in a line or two.

Distribution: the graphs of `KINDS` evenly; 2^13 to 2^21 elements (log-uniform), last axis by `sizes.extent`. Images are
H × W × 3 of bytes; the convolution is 3 × 3 or 1 × 1 with batch norm and relu, 2^18 to 2^26 multiplications.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench.case import Bounded
from benchmarks.sweep.activations import ACTIVATIONS
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded
from benchmarks.sweep.families.convolutions import gamma_of
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick, shape_of
from benchmarks.sweep.windows import Window, convolution

ELEMENTS = (2**13, 2**21)
EPSILON = 2.0**-17  # which float32 has: ONNX keeps attributes in it
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GELU = next(one for one in ACTIVATIONS if one.name == "gelu")


def draw(rng: Rng) -> Case:
    """A case."""
    return pick(rng, KINDS)(rng)


def _topi() -> Any:
    from loopwright import topi

    return topi


def _gelu_add(rng: Rng) -> Case:
    """An activation of x, plus y."""
    made = pick(rng, ACTIVATIONS)
    shape = shape_of(rng, ELEMENTS, (1, 2, 3, 4))

    def with_numpy(x: Any, out: Any) -> Any:
        if made.numpy is None:
            raise NotImplementedError(made.name)
        return np.add(made.numpy(x[0]), x[1], out=out[0])

    return Case(
        f"{made.name} + y",
        [Input(shape, "float32", -4, 4), Input(shape)],
        [Output(shape)],
        lambda x: [(made.exact(Rounded.of(x[0])) + Rounded.of(x[1])).bounded(2)],
        "",
        lambda x, y: _topi().add(made.te(x), y),
        [*made.onnx("x0", "a"), Step("Add", ["a", "x1"], "y0")],
        made.constants("float32"),
        with_numpy,
        lambda t, x, out: t.add(made.torch(t, x[0]), x[1], out=out[0]),
    )


def _bias_relu_residual(rng: Rng) -> Case:
    """relu(x + b) + y, the bias along the last axis or along channels."""
    shape = shape_of(rng, ELEMENTS, (2, 3, 4))
    axis = len(shape) - 1 if rng.random() < 0.5 else 1 if len(shape) > 2 else 0
    bias = tuple([size if at == axis else 1 for at, size in enumerate(shape)])

    def with_numpy(x: Any, out: Any) -> Any:
        found = np.add(x[0], x[1], out=out[0])
        np.maximum(found, 0, out=found)
        return np.add(found, x[2], out=found)

    return Case(
        "relu(x + b) + y",
        [Input(shape), Input(bias), Input(shape)],
        [Output(shape)],
        lambda x: [((Rounded.of(x[0]) + Rounded.of(x[1])).maximum(0.0) + Rounded.of(x[2])).bounded()],
        f"bias along {axis}",
        lambda x, b, y: _topi().add(_topi().nn.relu(_topi().add(x, b)), y),
        [Step("Add", ["x0", "x1"], "s"), Step("Relu", ["s"], "r"), Step("Add", ["r", "x2"], "y0")],
        {},
        with_numpy,
        lambda t, x, out: t.relu_(x[0] + x[1]).add_(x[2]),
    )


def _normalise(rng: Rng) -> Case:
    """A picture of bytes, H × W × 3, as floats: (x / 255 - mean) / deviation, channels first for three of four."""
    total = log_uniform(rng, *ELEMENTS)
    wide = max(min(extent(rng, 2048, 16), total // 48), 1)
    high = max(total // (3 * wide), 1)
    is_first = rng.random() < 0.75
    mean, deviation = np.asarray(MEAN, "float32"), np.asarray(DEVIATION, "float32")
    order = (2, 0, 1)

    def exact(x: Any) -> list[Bounded]:
        r = Rounded.of(x[0], "float32") * Rounded.of(np.asarray(1 / 255, "float32"))
        r = (r - Rounded.of(mean)) / Rounded.of(deviation)
        return [(r.move(lambda v: np.ascontiguousarray(v.transpose(order))) if is_first else r).bounded(3)]

    def in_te(x: Any, m: Any, d: Any) -> Any:
        topi = _topi()
        y = topi.divide(topi.subtract(topi.multiply(topi.cast(x, "float32"), 1 / 255), m), d)
        return topi.transpose(y, order) if is_first else y

    def with_numpy(x: Any, out: Any) -> Any:
        y = (x[0].astype("float32") * np.float32(1 / 255) - x[1]) / x[2]
        return np.ascontiguousarray(y.transpose(order)) if is_first else y

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        y = x[0].to(t.float32).mul_(1 / 255).sub_(x[1]).div_(x[2])
        return y.permute(order).contiguous() if is_first else y

    steps = [
        Step("Cast", ["x0"], "f", {"to": 1}),
        Step("Mul", ["f", "scale"], "s"),
        Step("Sub", ["s", "x1"], "c"),
        Step("Div", ["c", "x2"], "d" if is_first else "y0"),
    ]
    steps += [Step("Transpose", ["d"], "y0", {"perm": order})] if is_first else []
    return Case(
        "normalise image",
        [
            Input((high, wide, 3), "uint8", 0, 255),
            Input((3,), make=lambda _: mean, constant=True),
            Input((3,), make=lambda _: deviation, constant=True),
        ],
        [Output((3, high, wide) if is_first else (high, wide, 3))],
        exact,
        "to channels first" if is_first else "",
        in_te,
        steps,
        {"scale": np.asarray(1 / 255, "float32")},
        with_numpy,
        with_torch,
    )


def _conv_bn_relu(rng: Rng) -> Case:
    """A convolution, batch norm and relu; weights are constants of the model."""
    work = log_uniform(rng, 2**18, 2**26)
    size = pick(rng, (1, 3))
    inner, outer = extent(rng, 256, 3), extent(rng, 256, 3)
    side = max(round((work / (inner * outer * size * size)) ** 0.5), 2)
    side = min(side, round((2**21 / max(inner, outer)) ** 0.5))
    window = Window((size, size), (1, 1), (1, 1), (size // 2, size // 2))
    own = Input((outer,), "float32", 0.5, 1.5, constant=True)

    def exact(x: Any) -> list[Bounded]:
        wide = [value.astype("float64") for value in x[:2]]
        right = convolution(*wide, window, 1)
        error = gamma_of(inner * size * size + 2, "float32") * convolution(*map(np.abs, wide), window, 1)
        g, b, m, v = [Rounded.of(value.reshape(-1, 1, 1)) for value in x[2:]]
        made = (Rounded(right, error, "float32") - m) / (v + EPSILON).sqrt() * g + b
        return [made.maximum(0.0).bounded(64 if size == 3 else 8)]

    def in_te(x: Any, w: Any, g: Any, b: Any, m: Any, v: Any) -> Any:
        topi = _topi()
        made = topi.nn.conv2d_nchw(x, w, 1, size // 2, 1)
        return topi.nn.relu(topi.nn.batch_norm(made, g, b, m, v, 1, EPSILON)[0])

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        f = t.nn.functional
        return f.batch_norm(f.conv2d(x[0], x[1], None, 1, size // 2), x[4], x[5], x[2], x[3], eps=EPSILON).relu_()

    steps = [
        Step("Conv", ["x0", "x1"], "c", {"pads": [size // 2] * 4, "kernel_shape": [size, size]}),
        Step("BatchNormalization", ["c", "x2", "x3", "x4", "x5"], "n", {"epsilon": EPSILON}),
        Step("Relu", ["n"], "y0"),
    ]
    return Case(
        "conv + bn + relu",
        [Input((1, inner, side, side)), Input((outer, inner, size, size), constant=True), own, own, own, own],
        [Output((1, outer, side, side))],
        exact,
        window.text(),
        in_te,
        steps,
        torch=with_torch,
    )


def _distance(rng: Rng) -> Case:
    """√ Σ (x - y)² along the last axis: a reduction of what is computed on the way."""
    shape = shape_of(rng, ELEMENTS, (2, 3))

    def exact(x: Any) -> list[Bounded]:
        d = Rounded.of(x[0]) - Rounded.of(x[1])
        return [(d * d).sum(-1, keepdims=False).sqrt().bounded(2)]

    def in_te(x: Any, y: Any) -> Any:
        topi = _topi()
        d = topi.subtract(x, y)
        return topi.sqrt(topi.sum(topi.multiply(d, d), len(shape) - 1))

    return Case(
        "distance",
        [Input(shape), Input(shape)],
        [Output(shape[:-1])],
        exact,
        "",
        in_te,
        [Step("Sub", ["x0", "x1"], "d"), Step("ReduceL2", ["d", "last"], "y0", {"keepdims": 0})],
        {"last": np.asarray([-1], "int64")},
        lambda x, out: np.sqrt(np.square(x[0] - x[1]).sum(axis=-1), out=out[0]),
        lambda t, x, out: t.linalg.vector_norm(x[0] - x[1], dim=-1),
    )


def _mask_softmax(rng: Rng) -> Case:
    """softmax(where(mask, x, -1e9)) along the last axis."""
    shape = shape_of(rng, ELEMENTS, (2, 3, 4))

    def exact(x: Any) -> list[Bounded]:
        r = Rounded.of(np.where(x[0], x[1], np.float32(-1e9)))
        e = (r - r.max(-1)).exp()
        return [(e / e.sum(-1)).bounded(8)]

    def in_te(m: Any, x: Any) -> Any:
        topi = _topi()
        return topi.nn.softmax(topi.where(m, x, -1e9), len(shape) - 1)

    def with_numpy(x: Any, out: Any) -> Any:
        y = np.where(x[0], x[1], np.float32(-1e9))
        e = np.exp(y - y.max(axis=-1, keepdims=True))
        return np.divide(e, e.sum(axis=-1, keepdims=True), out=out[0])

    return Case(
        "softmax of masked",
        [Input(shape, "bool"), Input(shape, "float32", -4, 4)],
        [Output(shape)],
        exact,
        "",
        in_te,
        [Step("Where", ["x0", "x1", "low"], "m"), Step("Softmax", ["m"], "y0", {"axis": -1})],
        {"low": np.asarray(-1e9, "float32")},
        with_numpy,
        lambda t, x, out: t.softmax(t.where(x[0], x[1], -1e9), -1),
    )


KINDS: list[Callable[[Rng], Case]] = [
    _gelu_add, _bias_relu_residual, _normalise, _conv_bn_relu, _distance, _mask_softmax
]  # fmt: skip
