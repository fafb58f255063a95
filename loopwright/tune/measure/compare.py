"""compare: are the results of a candidate those of the program as it is written, up to rounding?

Candidates are proved schedules, so a difference is a bug of ours or of the hardware, and is rarely small. The bound of
a float is that of a sum in any order: n roundings of what the sum of absolute values is, where n is the length of the
program's reductions; it is never more than a share of the largest result. Integers are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loopwright.ir import Block, BlockRealize, IntImm, IterType, PrimFunc, collect

_PIECE: Final = 1 << 15  # elements that are compared at once: they stay in L2
_FEW: Final = 16  # roundings of a block besides those of its sum: an exponential, a division
_SPREAD: Final = 8.0  # standard deviations of a random walk of roundings
_UNITS: Final = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_COARSE: Final = 2.0**-3  # of floats of 8 bits
_LARGEST_SHARE: Final = {"float64": 1e-9, "float32": 1e-3, "float16": 0.03, "bfloat16": 0.1}


@dataclass(frozen=True)
class Reference:
    """Results to compare with, and how far each element may be off."""

    values: list[np.ndarray]
    allowed: list[np.ndarray | None]  # None: not at all

    def difference(self, outputs: Sequence[np.ndarray]) -> str | None:
        """What is wrong with the outputs, in a line; None where they are right."""
        for number, (value, bound, output) in enumerate(zip(self.values, self.allowed, outputs, strict=True), 1):
            problem = _difference(value, bound, output)
            if problem is not None:
                return f"output {number}: {problem}" if len(self.values) > 1 else problem
        return None


def reference(function: PrimFunc, values: Sequence[np.ndarray], absolute: Sequence[np.ndarray] | None) -> Reference:
    """The reference that results make, and those for the absolute values of all inputs, where there are any."""
    roundings = rounding_count(function)
    sizes: Sequence[np.ndarray | None] = [None] * len(values) if absolute is None else absolute
    return Reference(list(values), [_allowed(v, a, roundings) for v, a in zip(values, sizes, strict=True)])


def rounding_count(function: PrimFunc) -> int:
    """How many roundings may add up in one element: the lengths of all reductions, and some for each block."""
    total = 0
    for realize in collect(function.body, BlockRealize):
        block: Block = realize.block
        if not block.iter_vars:
            continue  # the root of the function
        domains = [axis.dom for axis in block.iter_vars if axis.iter_type == IterType.CommReduce]
        extents = [one.extent for one in domains if one is not None]
        total += _FEW + math.prod([int(extent) for extent in extents if isinstance(extent, IntImm)])
    return total or _FEW  # a program without blocks


def _allowed(value: np.ndarray, absolute: np.ndarray | None, roundings: int) -> np.ndarray | None:
    kind = str(value.dtype)
    if value.dtype.kind in "biu":
        return None
    unit = _UNITS.get(kind, _COARSE)
    share = 2 * unit * min(roundings, _SPREAD * math.sqrt(roundings))
    plain = np.abs(value.astype(np.float64))
    finite = plain[np.isfinite(plain)]
    largest = float(finite.max()) if finite.size else 0.0
    size = plain if absolute is None else np.maximum(plain, np.abs(absolute.astype(np.float64)))
    most = max(4 * unit, _LARGEST_SHARE.get(kind, 0.5)) * largest
    # What cancels is as exact as what it is made of; where no run on absolute values says how large that is, it is
    # taken to be as large as the largest result.
    bound = share * np.maximum(size, largest)
    return np.minimum(np.where(np.isfinite(bound), bound, most), most) + float(np.finfo(np.float32).tiny)


def _difference(value: np.ndarray, bound: np.ndarray | None, output: np.ndarray) -> str | None:
    expected, got = value.reshape(-1), output.reshape(-1)
    most = None if bound is None else bound.reshape(-1)
    count, first = 0, -1
    for start in range(0, value.size, _PIECE):  # temporaries of whole results would be fresh memory each time
        piece = slice(start, start + _PIECE)
        wrong = _wrong(expected[piece], None if most is None else most[piece], got[piece])
        found = int(np.count_nonzero(wrong))
        if found and not count:
            first = start + int(np.argmax(wrong))
        count += found
    if not count:
        return None
    place = np.unravel_index(first, value.shape) if value.ndim else ()
    at = ", ".join([str(int(index)) for index in place])
    return f"element [{at}] is {got[first]!s}, expected {expected[first]!s} ({count} of {value.size} are wrong)"


def _wrong(expected: np.ndarray, bound: np.ndarray | None, got: np.ndarray) -> np.ndarray:
    if bound is None:
        return np.asarray(expected != got)
    expected, got = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore"):
        within = np.abs(expected - got) <= bound
        same = (expected == got) | (np.isnan(expected) & np.isnan(got))  # infinities, too
        return np.asarray(~(within | same))
