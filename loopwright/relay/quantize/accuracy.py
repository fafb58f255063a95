"""accuracy: how far the results of one model are from those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Accuracy:
    """Differences over all results on all samples; `top1` where the first result looks like classes."""

    samples: int
    max_difference: float
    mean_difference: float
    largest: float  # magnitude of what they are differences from
    top1: float | None  # the share of rows whose largest class is the same

    def __str__(self) -> str:
        classes = "" if self.top1 is None else f", top-1 agreement {self.top1:.1%}"
        many = f"{self.samples} sample{'s' if self.samples != 1 else ''}"
        return (
            f"largest difference {self.max_difference:.3g}, mean {self.mean_difference:.3g} "
            f"of values up to {self.largest:.3g}{classes} ({many})"
        )

    def to_json(self) -> dict[str, Any]:
        """For programs; what is no number is null."""
        return {name: value if value is None or np.isfinite(value) else None for name, value in asdict(self).items()}


def compare(expected: Sequence[Sequence[np.ndarray]], found: Sequence[Sequence[np.ndarray]]) -> Accuracy:
    """The results of each sample beside those that are expected."""
    most, total, count, largest = 0.0, 0.0, 0, 0.0
    agree, rows = 0, 0
    has_classes = bool(expected) and all(len(one) == 1 and _looks_like_classes(one[0]) for one in expected)
    for wanted, given in zip(expected, found, strict=True):
        for one, other in zip(wanted, given, strict=True):
            exact = np.asarray(one).astype(np.float64)
            with np.errstate(invalid="ignore"):
                off = np.abs(exact - np.asarray(other).astype(np.float64))
            off = np.where(exact == np.asarray(other), 0.0, off)  # two infinities are no difference
            most = max(most, float(np.max(off, initial=0.0))) if not np.isnan(off).any() else float("nan")
            total += float(off.sum())
            count += off.size
            largest = max(largest, float(np.max(np.abs(exact), initial=0.0)))
        if has_classes:
            best = [np.asarray(side[0]).reshape(-1, side[0].shape[-1]).argmax(-1) for side in (wanted, given)]
            agree += int((best[0] == best[1]).sum())
            rows += best[0].size
    top1 = agree / rows if has_classes and rows else None
    return Accuracy(len(expected), most, total / max(count, 1), largest, top1)


def _looks_like_classes(result: np.ndarray) -> bool:
    """Whether a result has rows of numbers, of which one is to be the largest."""
    sizes = [size for size in result.shape if size != 1]
    return result.dtype.kind == "f" and result.ndim == 2 and result.shape[-1] > 1 and len(sizes) in (1, 2)
