"""ResNet-50 in int8: all its distinct convolutions, quantized, beside ours in float32.

Images are uint8 with zero point 0, as they are after a relu; weights are int8 with a scale for each filter, both
constant; sums are int32 with an int32 bias, scaled, rounded and cut to uint8, which is the relu as well. Peers get the
model in the form that both recognise: dequantized operands, a convolution in float32, a quantized result.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from benchmarks.bench.case import Array, Bounded, Case, Onnx, OursToo, Problem, aligned
from benchmarks.bench.cases import networks
from benchmarks.bench.cases.convolution import boundary, convolution, onnx_attributes, sum_of_products, te_convolution
from benchmarks.bench.cases.networks import Layer
from benchmarks.bench.networks import OURS_FLOAT32
from benchmarks.bench.onnx_models import Step, model

X_SCALE, Y_SCALE = np.float32(0.02), np.float32(0.05)


def quantized_convolution(layer: Layer, batch: int) -> Problem:
    """uint8(x ∗ w + b), each filter with its scale."""
    x, w, b, scale = _numbers(layer, batch)
    y = aligned((batch, layer.filters, *layer.output_size), "uint8")

    def reference() -> list[Bounded]:
        shape = (1, -1, *[1] * len(layer.size))
        sums = sum_of_products(x.astype("float64"), w.astype("float64"), layer) + b.reshape(shape)
        scaled = sums * scale.astype("float64").reshape(shape)
        # Rounding moves by a half; before it a sum may have been rounded to float32, and so was its product.
        return [Bounded(np.clip(scaled, 0, 255), 0.5 + np.abs(scaled) * 2.0**-22)]

    def onnx_model() -> bytes:
        weight_scale = (scale * (Y_SCALE / X_SCALE)).astype("float32")
        steps = [
            Step("DequantizeLinear", ["x0", "x_scale", "zero"], "x"),
            Step("DequantizeLinear", ["w", "w_scale", "w_zero"], "wf", {"axis": 0}),
            Step("DequantizeLinear", ["b", "b_scale", "b_zero"], "bf", {"axis": 0}),
            Step("Conv", ["x", "wf", "bf"], "c", onnx_attributes(layer)),
            Step("QuantizeLinear", ["c", "y_scale", "zero"], "y0"),
        ]
        constants = {
            **{"w": w, "b": b, "w_scale": weight_scale, "b_scale": weight_scale * X_SCALE},
            **{"x_scale": np.asarray(X_SCALE), "y_scale": np.asarray(Y_SCALE), "zero": np.asarray(0, "uint8")},
            **{"w_zero": np.zeros(layer.filters, "int8"), "b_zero": np.zeros(layer.filters, "int32")},
        }
        return model(steps, {"x0": x}, {"y0": y}, constants)

    in_float32 = convolution(layer, batch)
    return Problem(
        lambda: _program(layer, batch, w, b, scale),
        [x],
        [y],
        reference,
        {
            "onnxruntime": Onnx("onnxruntime", onnx_model),
            "openvino": Onnx("openvino", onnx_model),
            OURS_FLOAT32: OursToo(in_float32.program, in_float32.inputs, in_float32.outputs),
        },
        flops=in_float32.flops,
        read=x.nbytes + w.nbytes + b.nbytes + scale.nbytes,
    )


def _numbers(layer: Layer, batch: int) -> tuple[Array, Array, Array, Array]:
    """The image, weights, bias and scales; sums are spread over the bytes, and some are cut off."""
    rng = np.random.default_rng(0)
    x = aligned((batch, layer.channels, *layer.size), "uint8")
    x[:] = rng.integers(0, 256, x.shape)
    w = rng.integers(-127, 128, (layer.filters, layer.channels // layer.groups, *layer.kernel)).astype("int8")
    b = rng.integers(-1000, 1001, layer.filters).astype("int32")
    spread = 128.0 * 74.0 * prod(w.shape[1:]) ** 0.5  # of sums of random bytes
    scale = (rng.random(layer.filters) * 0.5 + 0.75) * (128.0 / spread)
    return x, w, b, scale.astype("float32")


def _program(layer: Layer, batch: int, w: Array, b: Array, scale: Array) -> Any:
    from loopwright import te, tir

    X = te.placeholder((batch, layer.channels, *layer.size), "uint8", name="X")
    W, B = te.placeholder(w.shape, "int8", name="W"), te.placeholder(b.shape, "int32", name="B")
    S = te.placeholder(scale.shape, "float32", name="S")
    sums = te_convolution(X, W, layer, te.const(0, "uint8"), "int32")

    def quantized(n: Any, c: Any, *at: Any) -> Any:
        scaled = te.nearbyint((sums[n, c, *at] + B[c]).astype("float32") * S[c])
        return te.min(te.max(scaled, 0.0), 255.0).astype("uint8")

    Y = te.compute(sums.shape, quantized, name="Y")
    return tir.bind_constants(te.create_prim_func([X, W, B, S, Y]), {"W": w, "B": b, "S": scale})


_LAYERS = networks.distinct(networks.resnet50())
_QUICK = ("56² 64→64, 3×3",)

CASES = [
    Case(
        f"{layer}, batch 1",
        quantized_convolution,
        (layer, 1),
        boundary(list(_LAYERS)),
        str(layer) in _QUICK,
        frozenset({"int8"}),
        count,
        "batch 1",
    )
    for layer, count in _LAYERS.items()
]
