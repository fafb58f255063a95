"""Models of audio: one axis of time.

    mel()                   a waveform as the logarithm of its mel spectrogram
    keywords()              separable convolutions over a spectrogram, which word it is
    wavenet()               gated convolutions, each dilated twice as far as the one before
    conformer()             attention and convolution by turns, over frames of speech
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.architectures.layers import Layers


def mel(length: int = 16000, window: int = 400, hop: int = 160, size: int = 512, bands: int = 80) -> Any:
    """Frames, a Hann window, a Fourier transform as two products, power, mel bands, logarithm."""
    from onnx import TensorProto

    build = Layers(20)
    frames = 1 + (length - window) // hop
    places = np.arange(frames)[:, None] * hop + np.arange(window)
    x = build.add("Gather", "waves", build.constant(places), axis=1)
    x = build.add("Mul", x, build.floats(np.hanning(window + 1)[:-1]))
    angle = 2 * np.pi * np.outer(np.arange(window), np.arange(size // 2 + 1)) / size
    parts = [build.add("MatMul", x, build.floats(values)) for values in (np.cos(angle), -np.sin(angle))]
    power = build.add("Add", *[build.add("Mul", part, part) for part in parts])
    x = build.add("MatMul", power, build.floats(_mel_bands(bands, size, 16000)))
    x = build.add("Log", build.add("Max", x, build.floats(1e-6)))
    x = build.add("Transpose", x, perm=[0, 2, 1])
    waves = ("waves", TensorProto.FLOAT, [1, length])
    return build.made("mel", [waves], [(x, TensorProto.FLOAT, [1, bands, frames])])


def _mel_bands(bands: int, size: int, rate: int) -> np.ndarray:
    """Triangles of equal width on the mel scale: frequencies × bands."""
    ends = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    ends = 700 * (10 ** (ends / 2595) - 1)
    here = np.linspace(0, rate / 2, size // 2 + 1)[:, None]
    rise, fall = (here - ends[:-2]) / np.diff(ends)[:-1], (ends[2:] - here) / np.diff(ends)[1:]
    return np.maximum(0, np.minimum(rise, fall))


def keywords(frames: int = 98, bands: int = 40, wide: int = 128, words: int = 12) -> Any:
    """After MatchboxNet: separable convolutions in time with shortcuts."""
    from onnx import TensorProto

    build = Layers(21)
    x = build.add("Relu", build.batch_norm(build.convolution("frames", bands, wide, 11, 2, axes=1), wide))
    for size in (13, 15, 17):
        shortcut = build.batch_norm(build.convolution(x, wide, wide, 1, axes=1), wide)
        for number in range(2):
            x = build.convolution(x, wide, wide, size, group=wide, axes=1)
            x = build.batch_norm(build.convolution(x, wide, wide, 1, axes=1), wide)
            x = build.add("Relu", x if number == 0 else build.add("Add", x, shortcut))
    x = build.add("Relu", build.convolution(x, wide, wide, 29, dilation=2, group=wide, axes=1))
    x = build.add("Relu", build.convolution(x, wide, wide, 1, axes=1))
    x = build.add("Flatten", build.add("GlobalAveragePool", x), axis=1)
    weight = build.weight(words, wide, scale=wide**-0.5)
    x = build.add("Softmax", build.add("Gemm", x, weight, build.weight(words, scale=0.02), transB=1), axis=1)
    given = ("frames", TensorProto.FLOAT, [1, bands, frames])
    return build.made("keywords", [given], [(x, TensorProto.FLOAT, [1, words])])


def wavenet(length: int = 2048, wide: int = 32, layers: int = 16) -> Any:
    """After van den Oord et al.: a distribution over 256 levels at each sample, from those before it."""
    from onnx import TensorProto

    build = Layers(22)
    x = build.convolution("waves", 1, wide, 1, axes=1)
    skipped = []
    for layer in range(layers):
        dilation = 1 << (layer % 8)
        y = build.convolution(x, wide, 2 * wide, 2, dilation=dilation, axes=1, pads=(dilation, 0))
        signal, gate = build.several("Split", 2, y, axis=1)
        y = build.add("Mul", build.add("Tanh", signal), build.add("Sigmoid", gate))
        skipped.append(build.convolution(y, wide, 2 * wide, 1, axes=1))
        x = build.add("Add", x, build.convolution(y, wide, wide, 1, axes=1))
    total = skipped[0]
    for part in skipped[1:]:
        total = build.add("Add", total, part)
    x = build.add("Relu", build.convolution(build.add("Relu", total), 2 * wide, 2 * wide, 1, axes=1))
    x = build.add("Softmax", build.convolution(x, 2 * wide, 256, 1, axes=1), axis=1)
    waves = ("waves", TensorProto.FLOAT, [1, 1, length])
    return build.made("wavenet", [waves], [(x, TensorProto.FLOAT, [1, 256, length])])


def conformer(frames: int = 100, wide: int = 144, heads: int = 4, blocks: int = 2) -> Any:
    """After Gulati et al.: half a feed-forward, attention, convolution, the other half."""
    from onnx import TensorProto

    build, size = Layers(23), wide // heads

    def forward(x: str) -> str:
        y = build.silu(build.linear(build.layer_norm(x, wide), wide, 4 * wide))
        return build.add("Add", x, build.add("Mul", build.linear(y, 4 * wide, wide), build.floats(0.5)))

    def attention(x: str) -> str:
        y = build.layer_norm(x, wide)
        query, key, value = [
            build.heads(build.linear(y, wide, wide), heads, size, perm)
            for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
        ]
        mixed = build.add("Transpose", build.attended(query, key, value, size), perm=[0, 2, 1, 3])
        return build.add("Add", x, build.linear(build.add("Reshape", mixed, build.integers(0, 0, wide)), wide, wide))

    def convolution(x: str) -> str:
        y = build.add("Transpose", build.layer_norm(x, wide), perm=[0, 2, 1])
        y = build.gated(build.convolution(y, wide, 2 * wide, 1, axes=1), 1)
        y = build.silu(build.batch_norm(build.convolution(y, wide, wide, 31, group=wide, axes=1), wide))
        y = build.convolution(y, wide, wide, 1, axes=1)
        return build.add("Add", x, build.add("Transpose", y, perm=[0, 2, 1]))

    x = "frames"
    for _ in range(blocks):
        x = build.layer_norm(forward(convolution(attention(forward(x)))), wide)
    given = ("frames", TensorProto.FLOAT, [1, frames, wide])
    return build.made("conformer", [given], [(x, TensorProto.FLOAT, [1, frames, wide])])
