"""Results of float32 programs against a formula in float64, within what float32 may lose on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loopwright.topi.rounding import Rounded


def assert_rounded(found: np.ndarray, formula: Callable[..., Any], *arrays: np.ndarray) -> None:
    """`found` is what `formula` gives, up to the roundings of its operations in float32; sums may be in any order."""
    exact = formula(*[Rounded(one, "float32") for one in arrays])
    assert found.dtype == np.float32 and found.shape == exact.shape
    assert (np.abs(found - exact.value) <= exact.error).all()
