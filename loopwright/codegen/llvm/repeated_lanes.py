"""Repeated lanes: a vector of elements each of which stands there several times, one next to the other.

    A[x + Ramp(32 * i, 1, 16) // 2]        lanes 0, 0, 1, 1, 2, 2, … of the 8 elements from A[x + 16 * i]

That is what broadcasting, nearest-neighbour upsampling and channel multipliers read. The elements are one short vector
in memory; without this they would be loaded one by one.
"""

from __future__ import annotations

from typing import NamedTuple

from loopwright import ir
from loopwright.arith import Analyzer


class Repeated(NamedTuple):
    """`lanes` lanes, of which each `times` hold the same element; the first is at `base`."""

    base: ir.Expr
    times: int
    lanes: int

    @property
    def elements(self) -> int:
        return self.lanes // self.times


def repeated_lanes(index: ir.Expr) -> Repeated | None:
    """What a vector of indices repeats; None where it is no such one, or starts in the midst of a repetition."""
    offset: ir.Expr | None = None
    if isinstance(index, ir.Add):
        for one, other in ((index.a, index.b), (index.b, index.a)):
            if isinstance(one, ir.Broadcast) and isinstance(other, ir.FloorDiv):
                offset, index = one.value, other
                break
    if not isinstance(index, ir.FloorDiv) or not isinstance(index.a, ir.Ramp) or not isinstance(index.b, ir.Broadcast):
        return None
    ramp, divisor = index.a, index.b.value
    if not isinstance(divisor, ir.IntImm) or not isinstance(ramp.stride, ir.IntImm) or ramp.stride.value != 1:
        return None
    times = divisor.value
    if times < 2 or ramp.lanes % times or ramp.lanes == times:
        return None
    start = Analyzer().modular_set(ramp.base)
    if start.coeff % times or start.base % times:
        return None
    first = ramp.base // divisor
    return Repeated(first if offset is None else offset + first, times, ramp.lanes)
