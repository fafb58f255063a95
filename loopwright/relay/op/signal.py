"""Fourier transforms in graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import te
from loopwright.ir.types import Type
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, calls, make, register
from loopwright.relay.types import TensorType


@register("stft", Kind.OPAQUE)
class Stft(FromTopi):
    """The spectra of overlapping pieces of a signal: (batch, frequencies, frames, 2)."""

    n_fft: int
    hop_length: int
    win_length: int
    normalized: bool = False
    onesided: bool = True

    def infer(self, data: TensorType, window: TensorType) -> Type:
        return self.type_of_compute(data, window)

    def arguments(self, *inputs: te.Tensor | np.ndarray) -> Sequence[object]:
        data, window = inputs
        frequencies = self.n_fft // 2 + 1 if self.onesided else self.n_fft
        frames = (data.shape[1] - self.n_fft) // self.hop_length + 1
        shape = (data.shape[0], frequencies, frames, 2)
        numbers = self.n_fft, self.hop_length, self.win_length
        return (data, *numbers, window, self.normalized, self.onesided, shape)


@calls("stft")
def stft(
    data: Expr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Expr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Expr:
    """The spectra of pieces of `n_fft` elements; the window is 1 everywhere unless given."""
    length = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = const(np.ones(length, "float32")) if window is None else window
    result: Expr = make(
        "stft", data, weights, n_fft=n_fft, hop_length=hop, win_length=length, normalized=normalized, onesided=onesided
    )
    return result


@register("dft", Kind.OPAQUE)
class Dft(FromTopi):
    """The Fourier transform along the last axis, of real and imaginary parts."""

    inverse: bool = False
    results = 2

    def infer(self, re_data: TensorType, im_data: TensorType) -> Type:
        return self.type_of_compute(re_data, im_data)
