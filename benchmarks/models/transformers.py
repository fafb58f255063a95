"""Transformers as ONNX models: an encoder of the size of MiniLM, a decoder of the size of GPT-2, seeded random weights.

    encoder()                       6 layers, 384 wide, 12 heads
    decoder()                       12 layers, 768 wide, 12 heads, causal

Inputs are token numbers `(batch, sequence)`; both sizes may be left open (`batch=None`), so that one model serves all.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from benchmarks.models.graph_builder import GraphBuilder


class _Builder(GraphBuilder):
    """What transformers are made of."""

    def linear(self, x: str, wide: int, out: int) -> str:
        product = self.add("MatMul", x, self.weight(wide, out, scale=1 / sqrt(wide)))
        return self.add("Add", product, self.weight(out, scale=0.02))

    def norm(self, x: str, wide: int) -> str:
        gain = self.constant(self.random.uniform(0.8, 1.2, wide).astype(np.float32))
        return self.add("LayerNormalization", x, gain, self.weight(wide, scale=0.02), axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        """x · Φ(x), written out with erf as exporters do."""
        inner = self.add("Erf", self.add("Div", x, self.constant(np.float32(sqrt(2)))))
        one = self.add("Add", inner, self.constant(np.float32(1)))
        return self.add("Mul", self.add("Mul", x, one), self.constant(np.float32(0.5)))

    def attention(self, x: str, wide: int, heads: int, mask: str | None) -> str:
        shape = self.constant(np.array([0, 0, heads, wide // heads], np.int64))
        turned = []
        for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)):
            parted = self.add("Reshape", self.linear(x, wide, wide), shape)
            turned.append(self.add("Transpose", parted, perm=list(perm)))
        query, key, value = turned
        scores = self.add("MatMul", query, key)
        scores = self.add("Mul", scores, self.constant(np.float32(1 / sqrt(wide // heads))))
        if mask is not None:
            scores = self.add("Add", scores, mask)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        joined = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        flat = self.add("Reshape", joined, self.constant(np.array([0, 0, wide], np.int64)))
        return self.linear(flat, wide, wide)

    def model(self, output: str, wide: int, batch: int | None, sequence: int | None) -> Any:
        from onnx import TensorProto

        sizes = ["batch" if batch is None else batch, "sequence" if sequence is None else sequence]
        tokens = ("tokens", TensorProto.INT64, sizes)
        return self.made("transformer", [tokens], [(output, TensorProto.FLOAT, [*sizes, wide])])


def encoder(
    layers: int = 6,
    wide: int = 384,
    heads: int = 12,
    vocabulary: int = 30522,
    batch: int | None = 1,
    sequence: int | None = 128,
    seed: int = 0,
) -> Any:
    """An encoder of the size of MiniLM: normalization after each part."""
    build = _Builder(seed)
    x = build.add("Gather", build.weight(vocabulary, wide, scale=0.5), "tokens")
    x = build.norm(x, wide)
    for _ in range(layers):
        x = build.norm(build.add("Add", x, build.attention(x, wide, heads, None)), wide)
        hidden = build.linear(build.gelu(build.linear(x, wide, 4 * wide)), 4 * wide, wide)
        x = build.norm(build.add("Add", x, hidden), wide)
    return build.model(x, wide, batch, sequence)


def decoder(
    layers: int = 12,
    wide: int = 768,
    heads: int = 12,
    vocabulary: int = 50257,
    batch: int | None = 1,
    sequence: int = 128,
    seed: int = 0,
) -> Any:
    """A decoder of the size of GPT-2: normalization before each part, no token sees a later one."""
    build = _Builder(seed)
    x = build.add("Gather", build.weight(vocabulary, wide, scale=0.5), "tokens")
    x = build.add("Add", x, build.weight(sequence, wide, scale=0.1))
    mask = build.constant(np.triu(np.full((sequence, sequence), -1e9, np.float32), 1))
    for _ in range(layers):
        x = build.add("Add", x, build.attention(build.norm(x, wide), wide, heads, mask))
        hidden = build.linear(build.gelu(build.linear(build.norm(x, wide), wide, 4 * wide)), 4 * wide, wide)
        x = build.add("Add", x, hidden)
    return build.model(build.norm(x, wide), wide, batch, sequence)
