"""What Fourier transforms mean, in numpy, and the samples they are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from loopwright.topi.registry import Bound, Sample


def stft(
    data: np.ndarray,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: np.ndarray,
    normalized: bool,
    onesided: bool,
    output_shape: Sequence[int],
) -> np.ndarray:
    left = (n_fft - win_length) // 2
    weights = np.pad(window, (left, n_fft - win_length - left))
    frames = [data[:, start : start + n_fft] * weights for start in range(0, data.shape[1] - n_fft + 1, hop_length)]
    spectra = np.fft.fft(np.stack(frames, 1), axis=-1)[..., : output_shape[1]].transpose(0, 2, 1)
    if normalized:
        spectra = spectra / np.sqrt(n_fft)
    return np.stack([spectra.real, spectra.imag], -1)


def dft(re_data: np.ndarray, im_data: np.ndarray, inverse: bool = False) -> list[np.ndarray]:
    data = re_data + 1j * im_data
    result = np.fft.ifft(data) if inverse else np.fft.fft(data)
    return [result.real, result.imag]


def _summed(terms: int, dtype: str = "float32") -> Bound:
    """`terms` products below 2 are added up; a turn is off by the rounding of its angle (2π at most) and 2 eps."""
    eps = float(np.finfo(dtype).eps)
    return lambda args, exact: terms * 2 * (terms + 2 + 2 * np.pi + 2) * eps


def _signal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def stft_samples() -> Iterable[Sample]:
    yield Sample((_signal(2, 30), 8, 3, 8, _signal(8), False, True, (2, 5, 8, 2)), bound=_summed(8))
    yield Sample((_signal(1, 20), 7, 2, 4, _signal(4), True, False, (1, 7, 7, 2)), bound=_summed(7))


def dft_samples() -> Iterable[Sample]:
    for inverse in (False, True):
        yield Sample((_signal(3, 7), _signal(4, 6)[:3, :1].repeat(7, 1).copy(), inverse), bound=_summed(14))
    yield Sample((_signal(1), _signal(1)), bound=_summed(2))
    yield Sample((_signal(2, 5, dtype="float64"), _signal(2, 5, dtype="float64"), True), bound=_summed(10, "float64"))
