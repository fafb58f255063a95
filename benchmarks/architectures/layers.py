"""Layers: what the models are built of, as exporters write them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from benchmarks.models.graph_builder import GraphBuilder


class Layers(GraphBuilder):
    """Nodes that belong together; weights keep the magnitude of what passes through them."""

    def floats(self, *values: Any) -> str:
        """A constant of float32."""
        return self.constant(np.asarray(values[0] if len(values) == 1 else values, np.float32))

    def integers(self, *values: int) -> str:
        """A vector of int64: a shape, axes, ends."""
        return self.constant(np.asarray(values, np.int64))

    def several(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with several outputs."""
        from onnx import helper

        self.count += 1
        names = [f"{operator.lower()}_{self.count}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=names[0], **attributes))
        return names

    def convolution(
        self,
        x: str,
        channels: int,
        out: int,
        size: int,
        stride: int = 1,
        group: int = 1,
        dilation: int = 1,
        axes: int = 2,
        pads: Sequence[int] | None = None,
    ) -> str:
        """A convolution with bias; without `pads` the size stays as it is, but for the stride."""
        window = [size] * axes
        weight = self.weight(out, channels // group, *window, scale=sqrt(2 / (channels // group * prod(window))))
        bias = self.constant(self.random.uniform(-0.1, 0.1, out).astype(np.float32))
        around = [dilation * (size - 1) // 2] * (2 * axes) if pads is None else list(pads)
        return self.add(
            "Conv",
            x,
            weight,
            bias,
            kernel_shape=window,
            strides=[stride] * axes,
            dilations=[dilation] * axes,
            pads=around,
            group=group,
        )

    def transposed(self, x: str, channels: int, out: int, size: int, stride: int, pad: int = 0, axes: int = 2) -> str:
        """A transposed convolution with bias."""
        terms = channels * (size / stride) ** axes
        weight = self.weight(channels, out, *[size] * axes, scale=sqrt(2 / terms))
        bias = self.constant(self.random.uniform(-0.1, 0.1, out).astype(np.float32))
        window = {"kernel_shape": [size] * axes, "strides": [stride] * axes, "pads": [pad] * (2 * axes)}
        return self.add("ConvTranspose", x, weight, bias, **window)

    def batch_norm(self, x: str, channels: int) -> str:
        """With statistics of its own, as at the end of a training."""
        drawn = [self.random.uniform(*ends, channels) for ends in ((0.8, 1.2), (-0.1, 0.1), (-0.1, 0.1), (0.8, 1.2))]
        return self.add("BatchNormalization", x, *map(self.floats, drawn), epsilon=1e-5)

    def group_norm(self, x: str, channels: int, groups: int) -> str:
        """As torch exports it: an instance norm of groups, then scale and shift of channels."""
        parted = self.add("Reshape", x, self.integers(0, groups, -1))
        ones, zeros = self.floats(np.ones(groups)), self.floats(np.zeros(groups))
        normal = self.add("InstanceNormalization", parted, ones, zeros, epsilon=1e-5)
        whole = self.add("Reshape", normal, self.add("Shape", x))
        scaled = self.add("Mul", whole, self.floats(self.random.uniform(0.8, 1.2, (channels, 1, 1))))
        return self.add("Add", scaled, self.floats(self.random.uniform(-0.1, 0.1, (channels, 1, 1))))

    def layer_norm(self, x: str, wide: int) -> str:
        """Over the last axis."""
        gain = self.floats(self.random.uniform(0.8, 1.2, wide))
        return self.add("LayerNormalization", x, gain, self.weight(wide, scale=0.02), axis=-1, epsilon=1e-5)

    def linear(self, x: str, wide: int, out: int) -> str:
        """A product with weights, and a bias."""
        product = self.add("MatMul", x, self.weight(wide, out, scale=1 / sqrt(wide)))
        return self.add("Add", product, self.weight(out, scale=0.02))

    def silu(self, x: str) -> str:
        """x · sigmoid(x)."""
        return self.add("Mul", x, self.add("Sigmoid", x))

    def gated(self, x: str, axis: int) -> str:
        """GLU: one half times the sigmoid of the other."""
        kept, gate = self.several("Split", 2, x, axis=axis)
        return self.add("Mul", kept, self.add("Sigmoid", gate))

    def heads(self, x: str, count: int, size: int, perm: Sequence[int]) -> str:
        """(batch, sequence, wide) as heads."""
        return self.add("Transpose", self.add("Reshape", x, self.integers(0, 0, count, size)), perm=list(perm))

    def attended(self, query: str, key: str, value: str, size: int) -> str:
        """softmax(q · k / sqrt(size)) · v; keys come transposed."""
        scores = self.add("Mul", self.add("MatMul", query, key), self.floats(1 / sqrt(size)))
        return self.add("MatMul", self.add("Softmax", scores, axis=-1), value)

    def slice(self, x: str, start: int, end: int, axis: int) -> str:
        """Part of an axis."""
        return self.add("Slice", x, self.integers(start), self.integers(end), self.integers(axis))

    def resized(self, x: str, scale: Sequence[float], mode: str = "linear", corners: str = "half_pixel") -> str:
        """Larger or smaller, by factors."""
        how = {"mode": mode, "coordinate_transformation_mode": corners}
        how |= {"nearest_mode": "floor"} if mode == "nearest" else {}
        return self.add("Resize", x, "", self.floats(scale), **how)
