"""Convolutions and pooling in numpy, tap by tap: what the references of windows are made of."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.bench.case import Array


@dataclass(frozen=True)
class Window:
    """A window over spatial axes: its size, stride, dilation, and the padding before and after (one number an axis)."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]

    def out(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """How many places it has along each axis."""
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation)]
        return tuple([(n + 2 * p - r) // s + 1 for n, p, r, s in zip(sizes, self.padding, reach, self.stride)])

    def taps(self, x: Array, fill: float = 0.0) -> list[Array]:
        """For each tap in turn, what it reads of `x`, whose last axes are the spatial ones."""
        count = len(self.kernel)
        lead = x.ndim - count
        padded = np.pad(x, [(0, 0)] * lead + [(p, p) for p in self.padding], constant_values=fill)
        places = self.out(x.shape[lead:])
        found = []
        for tap in itertools.product(*map(range, self.kernel)):
            parts = [
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, self.dilation, places, self.stride)
            ]
            found.append(padded[(..., *parts)])
        return found

    def text(self) -> str:
        """What is not 1 (or, of padding, 0)."""
        words = [f"k{_text(self.kernel)}"]
        words += [f"s{_text(self.stride)}"] if max(self.stride) > 1 else []
        words += [f"d{_text(self.dilation)}"] if max(self.dilation) > 1 else []
        words += [f"p{_text(self.padding)}"] if max(self.padding) > 0 else []
        return " ".join(words)


def _text(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 and len(numbers) > 1 else "×".join(map(str, numbers))


def convolution(x: Array, w: Array, window: Window, groups: int) -> Array:
    """Channels first; the weight is (out, in / groups, *kernel)."""
    batch, channels, *sizes = x.shape
    places = window.out(sizes)
    per_in, per_out = channels // groups, w.shape[0] // groups
    out = np.zeros((groups, per_out, batch * int(np.prod(places))))
    weights = w.reshape(groups, per_out, per_in, -1)
    for number, part in enumerate(window.taps(x)):
        read = part.reshape(batch, groups, per_in, -1).transpose(1, 2, 0, 3).reshape(groups, per_in, -1)
        tap = weights[..., number]
        out += tap * read if per_in == 1 and per_out == 1 else tap @ read
    return np.ascontiguousarray(
        out.reshape(groups * per_out, batch, -1).transpose(1, 0, 2).reshape(batch, groups * per_out, *places)
    )


def transposed_convolution(x: Array, w: Array, window: Window, groups: int, extra: Sequence[int]) -> Array:
    """Channels first; the weight is (in, out / groups, *kernel)."""
    batch, channels, *sizes = x.shape
    per_in, per_out = channels // groups, w.shape[1]
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(sizes, window.stride, window.kernel, window.dilation)]
    out = np.zeros((batch, groups * per_out, *[n + e for n, e in zip(whole, extra)]))
    read = x.reshape(batch, groups, per_in, -1)
    weights = w.reshape(groups, per_in, per_out, -1)
    for number, tap in enumerate(itertools.product(*map(range, window.kernel))):
        made = (weights[..., number].transpose(0, 2, 1) @ read).reshape(batch, groups * per_out, *sizes)
        parts = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, window.dilation, sizes, window.stride)
        ]
        out[(..., *parts)] += made
    kept = [slice(p, size + e - p) for p, size, e in zip(window.padding, whole, extra)]
    return np.ascontiguousarray(out[(..., *kept)])
