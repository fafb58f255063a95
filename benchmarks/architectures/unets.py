"""U-Nets: down to a sixteenth and up again, with what was on the way down joined on the way up.

    unet()                  transposed convolutions on the way up, batch norm, max pooling
    unet_resized()          bilinear resizing on the way up, strided convolutions on the way down
    wave_unet()             a waveform: one axis, windows of 15 down and 5 up, two sources out
"""

from __future__ import annotations

from typing import Any

from benchmarks.architectures.layers import Layers


def unet(size: int = 128, base: int = 16, depth: int = 4) -> Any:
    """After Ronneberger et al.: segments an image into two classes."""
    from onnx import TensorProto

    build = Layers(0)

    def pair(x: str, channels: int, out: int) -> str:
        for wide in (channels, out):
            x = build.add("Relu", build.batch_norm(build.convolution(x, wide, out, 3), out))
        return x

    x, channels, kept = "image", 3, []
    for level in range(depth):
        x = pair(x, channels, base << level)
        channels = base << level
        kept.append(x)
        x = build.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = pair(x, channels, 2 * channels)
    for level in reversed(range(depth)):
        wide = base << level
        x = build.add("Concat", kept[level], build.transposed(x, 2 * wide, wide, 2, 2), axis=1)
        x = pair(x, 2 * wide, wide)
    x = build.add("Sigmoid", build.convolution(x, base, 2, 1))
    image = ("image", TensorProto.FLOAT, [1, 3, size, size])
    return build.made("unet", [image], [(x, TensorProto.FLOAT, [1, 2, size, size])])


def unet_resized(size: int = 192, base: int = 16, depth: int = 4) -> Any:
    """As in image translation: leaky activations, a pair of convolutions after each resize and join."""
    from onnx import TensorProto

    build = Layers(1)

    def step(x: str, channels: int, out: int, stride: int = 1) -> str:
        return build.add("LeakyRelu", build.convolution(x, channels, out, 3, stride), alpha=0.125)

    x, channels, kept = step("image", 3, base), base, []
    for _ in range(depth):
        kept.append((x, channels))
        x = step(step(x, channels, 2 * channels, 2), 2 * channels, 2 * channels)
        channels *= 2
    for before, wide in reversed(kept):
        x = build.add("Concat", build.resized(x, (1, 1, 2, 2)), before, axis=1)
        x = step(step(x, channels + wide, wide), wide, wide)
        channels = wide
    x = build.add("Tanh", build.convolution(x, base, 3, 3))
    image = ("image", TensorProto.FLOAT, [1, 3, size, size])
    return build.made("unet_resized", [image], [(x, TensorProto.FLOAT, [1, 3, size, size])])


def wave_unet(length: int = 8192, step: int = 24, depth: int = 5) -> Any:
    """After Stoller et al.: separates a waveform into two sources."""
    from onnx import TensorProto

    build = Layers(2)
    x, channels, kept = "waves", 1, []
    for level in range(1, depth + 1):
        x = build.add("LeakyRelu", build.convolution(x, channels, step * level, 15, axes=1), alpha=0.25)
        channels = step * level
        kept.append((x, channels))
        starts, ends = build.integers(0), build.integers(2**31 - 1)
        x = build.add("Slice", x, starts, ends, build.integers(2), build.integers(2))  # every other sample
    x = build.add("LeakyRelu", build.convolution(x, channels, channels + step, 15, axes=1), alpha=0.25)
    channels += step
    for before, wide in reversed(kept):
        x = build.add("Concat", build.resized(x, (1, 1, 2)), before, axis=1)
        x = build.add("LeakyRelu", build.convolution(x, channels + wide, wide, 5, axes=1), alpha=0.25)
        channels = wide
    x = build.convolution(build.add("Concat", x, "waves", axis=1), channels + 1, 2, 1, axes=1)
    x = build.add("Tanh", x)
    waves = ("waves", TensorProto.FLOAT, [1, 1, length])
    return build.made("wave_unet", [waves], [(x, TensorProto.FLOAT, [1, 2, length])])
