"""accuracy: how far the results of one model are from those of another.

Floating numbers differ by something; integers (indices, classes) are the same or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Accuracy:
    """Differences over all floating results on all samples; `top1` where the only result looks like classes."""

    samples: int
    max_difference: float | None  # None where no result has floating numbers
    mean_difference: float | None
    largest: float | None  # magnitude of what they are differences from
    top1: float | None  # the share of rows whose largest class is the same
    same_integers: float | None = None  # the share of the numbers in results that are integers
    rows: int | None = None  # of a sample, where the model takes any number of them

    def __str__(self) -> str:
        message = []
        if self.max_difference is not None:
            message.append(f"largest difference {self.max_difference:.3g}")
            message.append(f"mean {self.mean_difference:.3g} of values up to {self.largest:.3g}")
        if self.top1 is not None:
            message.append(f"top-1 agreement {self.top1:.1%}")
        if self.same_integers is not None:
            message.append(f"{self.same_integers:.1%} of the integers are the same")
        many = f"{self.samples} sample{'s' if self.samples != 1 else ''}"
        if self.rows is not None and self.rows != 1:
            many += f" of {self.rows} rows"
        return f"{', '.join(message) or 'nothing to compare'} ({many})"

    def to_json(self) -> dict[str, object]:
        """For programs; what is no number is null."""
        return {name: value if value is None or np.isfinite(value) else None for name, value in asdict(self).items()}


def compare(
    expected: Sequence[Sequence[np.ndarray]], result: Sequence[Sequence[np.ndarray]], rows_of_sample: int | None = None
) -> Accuracy:
    """The results of each sample beside those that are expected."""
    most, total, count, largest = 0.0, 0.0, 0, 0.0
    same, integers, has_floats = 0, 0, False
    agree, rows = 0, 0
    has_classes = bool(expected) and all(len(one) == 1 and _looks_like_classes(one[0]) for one in expected)
    for wanted, given in zip(expected, result, strict=True):
        for one, other in zip(wanted, given, strict=True):
            if np.asarray(one).dtype.kind in "iub":
                same += int((np.asarray(one) == np.asarray(other)).sum())
                integers += np.asarray(one).size
                continue
            has_floats = True
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
    agreed = same / integers if integers else None
    if not has_floats:
        return Accuracy(len(expected), None, None, None, top1, agreed, rows_of_sample)
    return Accuracy(len(expected), most, total / max(count, 1), largest, top1, agreed, rows_of_sample)


def _looks_like_classes(result: np.ndarray) -> bool:
    """Whether a result has rows of numbers, of which one is to be the largest."""
    sizes = [size for size in result.shape if size != 1]
    return result.dtype.kind == "f" and result.ndim == 2 and result.shape[-1] > 1 and len(sizes) in (1, 2)
