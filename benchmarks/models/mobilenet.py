"""MobileNet-v2 as an ONNX model with seeded random weights, as exporters write it: normalization folded into weights.

    mobilenet_v2()                  1 × 3 × 224 × 224 → 1 × 1000

Between convolutions of single pixels, which change the number of channels, there is one of windows in each channel by
itself; where neither size nor channels change, the input of a block is added to its output.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from benchmarks.models.graph_builder import GraphBuilder

# By how much a block widens its channels inside, how many come out, how many such blocks, the stride of the first.
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class _Builder(GraphBuilder):
    def convolution(self, x: str, channels: int, out: int, size: int = 1, stride: int = 1, group: int = 1) -> str:
        terms = channels // group * size * size
        weight = self.weight(out, channels // group, size, size, scale=sqrt(2 / terms))
        bias = self.constant(self.random.uniform(-0.1, 0.1, out).astype(np.float32))
        pad = [size // 2] * 4
        return self.add(
            "Conv", x, weight, bias, kernel_shape=[size, size], strides=[stride, stride], pads=pad, group=group
        )

    def clipped(self, x: str) -> str:
        low, high = self.constant(np.float32(0)), self.constant(np.float32(6))
        return self.add("Clip", x, low, high)

    def block(self, x: str, channels: int, out: int, widened: int, stride: int) -> str:
        inside = channels * widened
        y = self.clipped(self.convolution(x, channels, inside)) if widened > 1 else x
        y = self.clipped(self.convolution(y, inside, inside, 3, stride, inside))
        y = self.convolution(y, inside, out)
        return self.add("Add", x, y) if stride == 1 and channels == out else y


def mobilenet_v2(batch: int = 1, size: int = 224, classes: int = 1000, seed: int = 0) -> Any:
    """MobileNet-v2 of width 1."""
    from onnx import TensorProto

    build = _Builder(seed)
    x = build.clipped(build.convolution("image", 3, 32, 3, 2))
    channels = 32
    for widened, out, count, stride in BLOCKS:
        for number in range(count):
            x = build.block(x, channels, out, widened, stride if number == 0 else 1)
            channels = out
    x = build.clipped(build.convolution(x, channels, 1280))
    x = build.add("Flatten", build.add("GlobalAveragePool", x), axis=1)
    weight = build.weight(classes, 1280, scale=1 / sqrt(1280))
    x = build.add("Gemm", x, weight, build.weight(classes, scale=0.02), transB=1)
    image = ("image", TensorProto.FLOAT, [batch, 3, size, size])
    return build.made("mobilenet_v2", [image], [(x, TensorProto.FLOAT, [batch, classes])])
