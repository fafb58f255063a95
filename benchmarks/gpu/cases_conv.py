"""Convolutions of `gemm.py`: layers of ResNet-50 with 1 and 16 images, other layouts, strides and groups, float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conv:
    """`batch` images of `size` × `size` with so many channels; windows of `window` × `window` keep the size."""

    batch: int
    size: int
    channels: int
    features: int
    window: int = 1
    stride: int = 1
    layout: str = "NCHW"
    dilation: int = 1
    groups: int = 1
    epilogue: bool = False
    is_typical: bool = False  # is measured with several tiles

    family = "conv"
    dtype = "float32"
    variants = (
        "128×128",
        "128×128, 2 parts",
        "128×128, 128 threads",
        "64×128, 128 threads",
        "64×128, 128 threads, 4 parts",
        "128×64, 128 threads",
        "128×64, 128 threads, 4 parts",
        "64×64",
        "64×64, 64 threads",
        "64×64, 64 threads, 8 parts",
        "64×64, 64 threads, 32 parts",
        "64×64×32, 64 threads",
        "32×64",
    )

    @property
    def name(self) -> str:
        more = f" stride {self.stride}" if self.stride > 1 else ""
        more += f" dilation {self.dilation}" if self.dilation > 1 else ""
        more += f" groups {self.groups}" if self.groups > 1 else ""
        more += " bias relu" if self.epilogue else ""
        what = f"{self.batch}×{self.size}²×{self.channels} to {self.features}, {self.window}×{self.window}"
        return f"conv {what}{more} {self.layout}"

    @property
    def padding(self) -> int:
        return (self.window - 1) // 2 * self.dilation

    @property
    def out(self) -> int:
        """How many rows and columns the result has."""
        return (self.size + 2 * self.padding - self.dilation * (self.window - 1) - 1) // self.stride + 1

    @property
    def terms(self) -> int:
        return self.channels // self.groups * self.window**2

    @property
    def flops(self) -> float:
        return 2.0 * self.batch * self.out**2 * self.features * self.terms

    def shapes(self) -> list[tuple[int, ...]]:
        data = {"N": self.batch, "H": self.size, "W": self.size, "C": self.channels}
        result = {"N": self.batch, "H": self.out, "W": self.out, "C": self.features}
        each = self.channels // self.groups
        weight = (self.features, each, self.window, self.window)
        if self.layout != "NCHW":
            weight = (self.window, self.window, each, self.features)
        shapes = [tuple([data[axis] for axis in self.layout]), weight, tuple([result[axis] for axis in self.layout])]
        return [*shapes[:2], (self.features,), shapes[2]] if self.epilogue else shapes

    def program(self) -> list[Any]:
        from loopwright import te, topi

        shapes = self.shapes()
        x, w = te.placeholder(shapes[0], name="x"), te.placeholder(shapes[1], name="w")
        numbers = (self.stride, self.padding, self.dilation)
        y = topi.nn.conv(x, w, *numbers, self.groups, self.layout)
        if not self.epilogue:
            return [x, w, y]
        bias = te.placeholder(shapes[2], name="bias")
        channel = self.layout.index("C")
        biased = te.compute(y.shape, lambda *index: y(*index) + bias[index[channel]], name="biased")
        return [x, w, bias, topi.nn.relu(biased)]

    def _apply(self, x: Any, w: Any) -> Any:
        """torch's convolution of operands in our layouts, in our layout."""
        import torch.nn.functional as F

        x, w = self._of_torch(x, w)
        y = F.conv2d(x, w, None, self.stride, self.padding, self.dilation, self.groups)
        return y.permute(["NCHW".index(axis) for axis in self.layout])

    def _of_torch(self, x: Any, w: Any) -> tuple[Any, Any]:
        """The operands as torch takes them; memory stays as it is."""
        x = x.permute([self.layout.index(axis) for axis in "NCHW"])
        return x, w if self.layout == "NCHW" else w.permute(3, 2, 0, 1)

    def reference(self, given: Sequence[Any], out: Any) -> Callable[[], object]:
        """What torch does; its operands have the layouts that cuDNN takes without a copy."""
        import torch
        import torch.nn.functional as F

        memory = torch.channels_last if self.layout == "NHWC" else torch.contiguous_format
        x, w = [one.contiguous(memory_format=memory) for one in self._of_torch(*given[:2])]
        numbers = ([self.stride] * 2, [self.padding] * 2, [self.dilation] * 2, self.groups)
        if self.epilogue:
            return lambda: torch.cudnn_convolution_relu(x, w, given[2], *numbers)
        return lambda: F.conv2d(x, w, None, *numbers)

    def checked(self, given: Sequence[Any], result: Any) -> tuple[Any, Any, Any]:
        images = self.layout.index("N")
        some = given[0].narrow(images, 0, 1).double()  # one image: float64 takes long
        weight = given[1].double()
        expected, bound = self._apply(some, weight), self._apply(some.abs(), weight.abs())
        if self.epilogue:
            shape = [1] * 4
            shape[self.layout.index("C")] = self.features
            bias = given[2].double().reshape(shape)
            expected, bound = (expected + bias).clamp(min=0), bound + bias.abs()
        return result.narrow(images, 0, 1).double(), expected, bound


def _resnet(batch: int) -> list[Conv]:
    typical = batch == 16
    return [
        Conv(batch, 224, 3, 64, 7, 2),
        Conv(batch, 56, 64, 64, 3, is_typical=typical),
        Conv(batch, 56, 64, 256),
        Conv(batch, 56, 256, 128, stride=2),
        Conv(batch, 28, 128, 128, 3, is_typical=True),
        Conv(batch, 28, 512, 128),
        Conv(batch, 14, 256, 256, 3, is_typical=typical),
        Conv(batch, 14, 256, 1024, is_typical=typical),
        Conv(batch, 7, 512, 512, 3, is_typical=True),
    ]


CONVOLUTIONS = [
    *_resnet(1),
    *_resnet(16),
    Conv(16, 28, 128, 128, 3, epilogue=True),
    Conv(16, 28, 128, 128, 3, layout="NHWC", is_typical=True),
    Conv(16, 14, 256, 256, 3, layout="NHWC"),
    Conv(16, 14, 256, 1024, layout="NHWC"),
    Conv(256, 14, 256, 512, 3, layout="HWCN", is_typical=True),
    Conv(16, 28, 128, 128, 3, dilation=2),
    Conv(16, 28, 256, 256, 3, groups=4),
]
