"""Other kinds: a step of a decoder, a cloud of points, a block of a diffusion model.

    decoder_step()          one token against the cache of those before it; the next one's best candidates
    points()                neighbours by distance, edges between them, their greatest
    diffusion()             group norm, convolutions, a time that shifts channels, attention over pixels
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.architectures.layers import Layers


def decoder_step(past: int = 255, wide: int = 384, heads: int = 6, layers: int = 4, vocabulary: int = 8000) -> Any:
    """A decoder with a cache: keys and values of the past come in, those with the new token go out."""
    from onnx import TensorProto

    build, size = Layers(30), wide // heads
    x = build.add("Gather", build.weight(vocabulary, wide, scale=0.5), "token")
    given: list[Any] = [("token", TensorProto.INT64, [1, 1])]
    found: list[Any] = []
    for layer in range(layers):
        y = build.layer_norm(x, wide)
        query, key, value = [build.heads(build.linear(y, wide, wide), heads, size, (0, 2, 1, 3)) for _ in range(3)]
        kept = []
        for kind, new in (("keys", key), ("values", value)):
            given.append((f"{kind}{layer}", TensorProto.FLOAT, [1, heads, past, size]))
            kept.append(build.add("Concat", f"{kind}{layer}", new, axis=2))
            found.append((kept[-1], TensorProto.FLOAT, [1, heads, past + 1, size]))
        turned = build.add("Transpose", kept[0], perm=[0, 1, 3, 2])
        mixed = build.add("Transpose", build.attended(query, turned, kept[1], size), perm=[0, 2, 1, 3])
        x = build.add("Add", x, build.linear(build.add("Reshape", mixed, build.integers(0, 0, wide)), wide, wide))
        hidden = build.silu(build.linear(build.layer_norm(x, wide), wide, 4 * wide))
        x = build.add("Add", x, build.linear(hidden, 4 * wide, wide))
    logits = build.add("MatMul", build.layer_norm(x, wide), build.weight(wide, vocabulary, scale=wide**-0.5))
    values, places = build.several("TopK", 2, logits, build.integers(40), axis=-1)
    chance = build.add("Softmax", values, axis=-1)
    best = [(chance, TensorProto.FLOAT, [1, 1, 40]), (places, TensorProto.INT64, [1, 1, 40])]
    return build.made("decoder_step", given, [*best, *found])


def points(count: int = 512, near: int = 16, classes: int = 10) -> Any:
    """After DGCNN: edges to the nearest neighbours, anew after each layer."""
    from onnx import TensorProto

    build = Layers(31)

    def edges(x: str, channels: int, out: int) -> str:
        """(1, points, channels) → (1, points, out)."""
        square = build.add("ReduceSum", build.add("Mul", x, x), build.integers(2), keepdims=1)
        inner = build.add("MatMul", x, build.add("Transpose", x, perm=[0, 2, 1]))
        apart = build.add("Sub", square, build.add("Mul", inner, build.floats(2.0)))
        apart = build.add("Add", apart, build.add("Transpose", square, perm=[0, 2, 1]))
        _, places = build.several("TopK", 2, apart, build.integers(near), axis=2, largest=0)
        flat = build.add("Reshape", x, build.integers(count, channels))
        others = build.add("Gather", flat, build.add("Squeeze", places, build.integers(0)), axis=0)
        self_ = build.add("Expand", build.add("Reshape", x, build.integers(count, 1, channels)),
                          build.integers(count, near, channels))  # fmt: skip
        pairs = build.add("Concat", build.add("Sub", others, self_), self_, axis=2)
        joined = build.add("LeakyRelu", build.linear(pairs, 2 * channels, out), alpha=0.25)
        best = build.add("ReduceMax", joined, axes=[1], keepdims=0)
        return build.add("Unsqueeze", best, build.integers(0))

    first = edges("points", 3, 32)
    second = edges(first, 32, 64)
    whole = build.add("LeakyRelu", build.linear(build.add("Concat", first, second, axis=2), 96, 256), alpha=0.25)
    most = build.add("ReduceMax", whole, axes=[1], keepdims=0)
    mean = build.add("ReduceMean", whole, axes=[1], keepdims=0)
    x = build.add("Relu", build.linear(build.add("Concat", most, mean, axis=1), 512, 128))
    x = build.add("Softmax", build.linear(x, 128, classes), axis=1)
    cloud = ("points", TensorProto.FLOAT, [1, count, 3])
    return build.made("points", [cloud], [(x, TensorProto.FLOAT, [1, classes])])


def diffusion(side: int = 32, channels: int = 64, out: int = 128, heads: int = 4) -> Any:
    """After Ho et al.: a residual block that knows the time, and attention."""
    from onnx import TensorProto

    build = Layers(32)
    steps = np.exp(-np.log(10000) * np.arange(32) / 32)
    angle = build.add("Mul", "time", build.floats(steps.reshape(1, 32)))
    time = build.add("Concat", build.add("Sin", angle), build.add("Cos", angle), axis=1)
    time = build.silu(build.linear(build.silu(build.linear(time, 64, 256)), 256, 256))
    x = build.convolution(build.silu(build.group_norm("image", channels, 8)), channels, out, 3)
    shift = build.add("Reshape", build.linear(time, 256, out), build.integers(1, out, 1, 1))
    x = build.add("Add", x, shift)
    x = build.convolution(build.silu(build.group_norm(x, out, 8)), out, out, 3)
    x = build.add("Add", x, build.convolution("image", channels, out, 1))
    y = build.add("Reshape", build.convolution(build.group_norm(x, out, 8), out, 3 * out, 1),
                  build.integers(1, 3 * heads, out // heads, side * side))  # fmt: skip
    query, key, value = build.several("Split", 3, y, axis=1)
    query, value = [build.add("Transpose", each, perm=[0, 1, 3, 2]) for each in (query, value)]
    mixed = build.add("Transpose", build.attended(query, key, value, out // heads), perm=[0, 1, 3, 2])
    mixed = build.add("Reshape", mixed, build.integers(1, out, side, side))
    x = build.add("Add", x, build.convolution(mixed, out, out, 1))
    given = [("image", TensorProto.FLOAT, [1, channels, side, side]), ("time", TensorProto.FLOAT, [1, 1])]
    return build.made("diffusion", given, [(x, TensorProto.FLOAT, [1, out, side, side])])
