"""Which convolutions four networks are made of: every distinct one, with how often the network has it.

ResNet-50 is version 1.5 (a stage's stride is in its 3×3 convolution, as in torchvision), on images of 224². VGG-19 and
MobileNet-V2 (width 1) are the published ones, on the same images. The 3-D one is ResNet-18 with 3×3×3 kernels (r3d_18
in torchvision) on clips of 8 frames of 112². Every convolution has a bias, since batch norms are folded into it, and
the activation that follows it in the network; where a residual is added in between, the activation stays and the
residual is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.models.mobilenet import BLOCKS as MOBILENET_BLOCKS


class Layer(NamedTuple):
    """A convolution of a `size` image (or clip), channels first, and its activation."""

    channels: int
    filters: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    groups: int = 1
    activation: str = "relu"  # relu, relu6 or none
    dilation: int = 1

    @property
    def output_size(self) -> tuple[int, ...]:
        """The size of the result's images."""
        return tuple(
            [
                (n + 2 * p - (k - 1) * self.dilation - 1) // s + 1
                for n, k, s, p in zip(self.size, self.kernel, self.stride, self.padding)
            ]
        )

    @property
    def is_depthwise(self) -> bool:
        """Whether each result's channel is made of one channel alone."""
        return self.groups == self.channels and self.groups > 1

    def __str__(self) -> str:
        kind = f"{'×'.join(map(str, self.kernel))}{f' s{max(self.stride)}' if max(self.stride) > 1 else ''}"
        if self.dilation > 1:
            kind += f" d{self.dilation}"
        if self.is_depthwise:
            channels = f"{self.channels} depthwise"
        else:
            channels = f"{self.channels}→{self.filters}" + (f" g{self.groups}" if self.groups > 1 else "")
        is_square = len(self.size) == 2 and self.size[0] == self.size[1]
        return f"{f'{self.size[0]}²' if is_square else '×'.join(map(str, self.size))} {channels}, {kind}"


def square(
    channels: int, filters: int, size: int, kernel: int, stride: int = 1, groups: int = 1, activation: str = "relu"
) -> Layer:
    """A convolution of images that keeps their size, up to the stride."""
    pair = (stride, stride)
    around = (kernel // 2, kernel // 2)
    return Layer(channels, filters, (size, size), (kernel, kernel), pair, around, groups, activation)


def resnet50() -> Iterator[Layer]:
    """All convolutions, from the first to the last."""
    yield square(3, 64, 224, 7, 2)
    channels, size = 64, 56
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            yield square(channels, width, size, 1)
            yield square(width, width, size, 3, stride)
            yield square(width, 4 * width, size // stride, 1)
            if block == 0:
                yield square(channels, 4 * width, size, 1, stride)
            channels, size = 4 * width, size // stride


def vgg19() -> Iterator[Layer]:
    """All convolutions, from the first to the last."""
    channels, size = 3, 224
    for width, layers in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(layers):
            yield square(channels, width, size, 3)
            channels = width
        size //= 2


def mobilenetv2() -> Iterator[Layer]:
    """All convolutions, from the first to the last; a block's last one has no activation."""
    yield square(3, 32, 224, 3, 2, activation="relu6")
    channels, size = 32, 112
    for expansion, filters, blocks, stride in MOBILENET_BLOCKS:
        for block in range(blocks):
            width, step = channels * expansion, stride if block == 0 else 1
            if expansion > 1:
                yield square(channels, width, size, 1, activation="relu6")
            yield square(width, width, size, 3, step, width, "relu6")
            size //= step
            yield square(width, filters, size, 1, activation="none")
            channels = filters
    yield square(channels, 1280, size, 1, activation="relu6")


def resnet3d() -> Iterator[Layer]:
    """All convolutions, from the first to the last."""
    yield Layer(3, 64, (8, 112, 112), (3, 7, 7), (1, 2, 2), (1, 3, 3))
    channels, size = 64, (8, 56, 56)
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width > 64 else 1
            strides = (stride, stride, stride)
            yield Layer(channels, width, size, (3, 3, 3), strides, (1, 1, 1))
            if stride > 1:
                yield Layer(channels, width, size, (1, 1, 1), strides, (0, 0, 0))
            frames, rows, columns = size
            size = (frames // stride, rows // stride, columns // stride)
            yield Layer(width, width, size, (3, 3, 3), (1, 1, 1), (1, 1, 1))
            channels = width


def distinct(layers: Iterator[Layer]) -> dict[Layer, int]:
    """Each convolution once, in the network's order, with how often it is there."""
    return dict(Counter(layers))
