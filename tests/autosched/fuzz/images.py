"""Images and windows over them: random sizes, strides, paddings and layouts, as tensor expressions and as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright import te
from tests.autosched.fuzz.approx import Approx
from tests.autosched.fuzz.draft import Draft, Value


@dataclass(frozen=True)
class Windows:
    """The windows of one convolution or pooling: a number an axis of the image."""

    size: list[int]
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    pad_before: list[int]
    pad_after: list[int]

    @property
    def padded(self) -> list[int]:
        return [n + p + q for n, p, q in zip(self.size, self.pad_before, self.pad_after, strict=True)]

    @property
    def count(self) -> list[int]:
        """How many windows there are along each axis."""
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        return [(n - r) // s + 1 for n, r, s in zip(self.padded, reach, self.stride, strict=True)]


def random_windows(draft: Draft, rank: int) -> Windows:
    """Kernels from 1 to 7, strides, dilations and paddings on either side, in an image that holds a window at least."""
    rng = draft.rng
    largest = {1: 40, 2: 17, 3: 7}[rank]
    is_square = draft.chance(0.6)
    kernel = [rng.choice([1, 1, 2, 3, 3, 3, 4, 5, 7]) for _ in range(rank)]
    stride = [rng.choice([1, 1, 1, 2, 3]) for _ in range(rank)]
    dilation = [rng.choice([1, 1, 1, 1, 2]) for _ in range(rank)]
    before_ = [rng.randint(0, k // 2 + 1) if draft.chance(0.5) else 0 for k in kernel]
    after_ = [p if draft.chance(0.7) else rng.randint(0, k) for p, k in zip(before_, kernel, strict=True)]
    if rank == 3:
        kernel = [min(k, 3) for k in kernel]
    if is_square:
        kernel, stride, dilation = [[values[0]] * rank for values in (kernel, stride, dilation)]
        before_, after_ = [[values[0]] * rank for values in (before_, after_)]
    size = []
    for k, d, p, q in zip(kernel, dilation, before_, after_, strict=True):
        least = max(1, (k - 1) * d + 1 - p - q)
        size.append(rng.randint(least, max(least, largest)))
    return Windows(size, kernel, stride, dilation, before_, after_)


@dataclass(frozen=True)
class Layout:
    """The order of an image's axes: n, c and its own (0, 1, 2); a block splits channels, inner ones last."""

    order: str
    block: int = 0

    def shape(self, sizes: dict[str, int]) -> list[int]:
        if not self.block:
            return [sizes[axis] for axis in self.order]
        return [*[sizes[axis] // (self.block if axis == "c" else 1) for axis in self.order], self.block]

    def index(self, values: dict[str, Any]) -> list[Any]:
        """Where the element is that these values of the axes mean."""
        if not self.block:
            return [values[axis] for axis in self.order]
        c = values["c"]
        return [*[c // self.block if axis == "c" else values[axis] for axis in self.order], c % self.block]

    def plain(self, array: np.ndarray, rank: int) -> np.ndarray:
        """The array with n and c first."""
        wanted = "nc" + "012"[:rank]
        if self.block:
            at = self.order.index("c")
            array = np.moveaxis(array, -1, at + 1)
            array = array.reshape(*array.shape[:at], -1, *array.shape[at + 2 :])
        return array.transpose([self.order.index(axis) for axis in wanted])

    def stored(self, array: np.ndarray, rank: int) -> np.ndarray:
        """The opposite of `plain`."""
        array = array.transpose(["nc012".index(axis) for axis in self.order])
        if self.block:
            at = self.order.index("c")
            array = array.reshape(*array.shape[:at], -1, self.block, *array.shape[at + 1 :])
            array = np.moveaxis(array, at + 1, -1)
        return array


def random_layout(draft: Draft, rank: int, channels: int) -> Layout:
    image = "012"[:rank]
    blocks = [block for block in (2, 4, 8, 16) if channels % block == 0]
    if blocks and draft.chance(0.2):
        return Layout(f"nc{image}", draft.rng.choice(blocks))
    plain = [f"nc{image}"] * 4 + [f"n{image}c"] * 3
    return Layout(draft.rng.choice([*plain, "".join(draft.rng.sample(f"nc{image}", rank + 2))]))


def taken(x: Approx, windows: Windows, fill: float = 0) -> Approx:
    """An image (n, c, …) as its windows: each of its axes becomes two, where the window is and the place in it."""
    around = [(0, 0), (0, 0), *zip(windows.pad_before, windows.pad_after, strict=True)]
    x = Approx(np.pad(x.value, around, constant_values=fill), np.pad(x.error, around, constant_values=0.0), x.dtype)
    for axis, (n, k, s, d) in enumerate(
        zip(windows.count, windows.kernel, windows.stride, windows.dilation, strict=True)
    ):
        where = np.arange(n)[:, None] * s + np.arange(k)[None, :] * d
        x = x.moved(lambda v, where=where, axis=axis: np.take(v, where, axis=2 + 2 * axis))
    return x


def padded_tensor(x: Value, layout: Layout, windows: Windows, fill: float = 0, name: str = "padded") -> te.Tensor:
    """The image with its borders, as a block of its own."""
    rank = len(windows.size)
    sizes = {"n": -1, "c": -1, **{str(axis): size for axis, size in enumerate(windows.padded)}}
    shape = [size if axis in "nc" else sizes[axis] for axis, size in zip(layout.order, x.shape)]
    shape += [layout.block] if layout.block else []

    def cell(*at: Any) -> Any:
        place = dict(zip(layout.order, at))
        conditions, inner = [], list(at)
        for axis in range(rank):
            i, p, size = place[str(axis)], windows.pad_before[axis], windows.size[axis]
            inner[layout.order.index(str(axis))] = i - p
            conditions += ([i >= p] if p else []) + ([i < size + p] if windows.pad_after[axis] else [])
        if not conditions:
            return x.tensor[at]
        return te.if_then_else(te.all(*conditions), x.tensor[inner], te.const(fill, x.dtype))

    return te.compute(shape, cell, name=name)
