"""Windows of an array: a view with one more axis for each axis that a window moves along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from loopwright.topi.types import Ints


def windows_of(data: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> np.ndarray:
    """The windows along the last axes: `(…, place, place, tap, tap)` for two of them."""
    axes = tuple(range(data.ndim - len(kernel), data.ndim))
    reach = [(k - 1) * step + 1 for k, step in zip(kernel, dilations, strict=True)]
    view = sliding_window_view(data, reach, axis=axes)
    lead = (slice(None),) * (data.ndim - len(kernel))
    locations = tuple(slice(None, None, step) for step in strides)
    taps = tuple(slice(None, None, step) for step in dilations)
    return view[(*lead, *locations, *taps)]


def numbers(given: Ints, count: int) -> list[int]:
    """One number a dimension."""
    return [int(value) for value in given] if isinstance(given, Sequence) else [int(given)] * count
