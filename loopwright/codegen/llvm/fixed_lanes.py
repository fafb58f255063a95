"""Fixed lanes: a vector of elements that lie near each other, each a known distance from the first.

    A[x + Ramp(16 * i, 1, 4) // 2]        lanes 0, 0, 1, 1 of the elements from A[x + 8 * i] on
    A[Ramp(4, 1, 4) % 7]                  lanes 4, 5, 6, 0 of the elements from A[0] on

That is what repeated cells, short rows that start anew and upsampling read. What lies between the nearest and the
farthest lane is loaded as vectors, and the lanes are shuffled out of them; without this they are loaded one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from loopwright import ir
from loopwright.arith import Analyzer

_MOST_LOADS: Final = 2  # vectors: a shuffle takes two


class Fixed(NamedTuple):
    """The index of each lane: a scalar and a number that is known."""

    base: ir.Expr
    offsets: tuple[int, ...]


def fixed_lanes(index: ir.Expr, widest: int, steps: Mapping[ir.Var, int]) -> Fixed | None:
    """Lanes that lie within two vectors of `widest` elements; None where they do not, or where it is not known.

    `steps` has the variables of loops that are being written out, as they are now. The offsets count from the nearest.
    """
    values = {var: ir.const(step, var.dtype) for var, step in steps.items()}
    found = _lanes(ir.substitute(index, values) if values else index)
    if found is None:
        return None
    least = min(found.offsets)
    offsets = tuple([offset - least for offset in found.offsets])
    if max(offsets) >= _MOST_LOADS * widest:
        return None
    return Fixed(found.base + ir.const(least, found.base.dtype) if least else found.base, offsets)


def _lanes(index: ir.Expr) -> Fixed | None:
    if isinstance(index, ir.Ramp):
        if not isinstance(index.stride, ir.IntImm):
            return None
        return Fixed(index.base, tuple([lane * index.stride.value for lane in range(index.lanes)]))
    if isinstance(index, ir.Broadcast):
        return Fixed(index.value, (0,) * index.lanes)
    if isinstance(index, (ir.Add, ir.Sub)):
        a, b = _lanes(index.a), _lanes(index.b)
        if a is None or b is None:
            return None
        sign = 1 if isinstance(index, ir.Add) else -1
        base = a.base + b.base if sign > 0 else a.base - b.base
        return Fixed(base, tuple([one + sign * other for one, other in zip(a.offsets, b.offsets, strict=True)]))
    if isinstance(index, (ir.FloorDiv, ir.FloorMod, ir.Mul)):
        return _by_number(index)
    return None


def _by_number(index: ir.FloorDiv | ir.FloorMod | ir.Mul) -> Fixed | None:
    """A product with a number, or the quotient or remainder by one where it is known how far the base is past a
    multiple of it."""
    a = _lanes(index.a)
    if a is None or not isinstance(index.b, ir.Broadcast) or not isinstance(index.b.value, ir.IntImm):
        return None
    by = index.b.value.value
    if isinstance(index, ir.Mul):
        return Fixed(a.base * index.b.value, tuple([offset * by for offset in a.offsets]))
    start = Analyzer().modular_set(a.base)
    if by <= 0 or start.coeff % by:
        return None
    past = start.base % by
    if isinstance(index, ir.FloorMod):
        return Fixed(ir.const(0, a.base.dtype), tuple([(past + offset) % by for offset in a.offsets]))
    return Fixed(a.base // index.b.value, tuple([(past + offset) // by for offset in a.offsets]))
