"""Strided lanes: a vector of elements a few places apart, shuffled out of vector loads of what lies between them.

    A[Ramp(3 * i + 1, 3, 16)]        3 loads of 16 neighbours from A[3 * i] on; lanes 1, 4, 7, … of them

That is what the channels of an image, the taps of a window that moves by several cells and a reversed row read. Where
a buffer is a whole number of strides, all that start in the same stride read the same vectors: the red, green and blue
of some pixels are three loads, not nine. Without that, nothing is read but what lies between the first lane and the
last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from loopwright import ir
from loopwright.arith import Analyzer

LONGEST_STRIDE: Final = 8  # loads for a vector: more of them take longer than the lanes one by one
_LEAST: Final = 4  # lanes
_MOST_STATEMENTS: Final = 64  # that a loop is written out to


class Strided(NamedTuple):
    """Where lanes come from: loads of `width` neighbours at `starts`, counted from `before` in front of lane 0."""

    before: int
    width: int
    starts: tuple[int, ...]
    lanes: tuple[int, ...]  # the place of each lane, counted the same way

    def picks(self, number: int) -> list[int | None]:
        """For each lane its place in load `number` and the one after it; None where another load has it."""
        pair = list(self.starts[number : number + 2])
        seen = self.starts[number - 1] + self.width if number else 0  # what the loads before hold
        result: list[int | None] = []
        for location in self.lanes:
            own = next((k for k, start in enumerate(pair) if start <= location < start + self.width), None)
            result.append(None if own is None or location < seen else own * self.width + location - pair[own])
        return result


def strided_lanes(
    buffer: ir.Buffer, index: ir.Expr, register_bytes: int, steps: Mapping[ir.Var, int] | None = None
) -> Strided | None:
    """How the lanes of a load are shuffled out of vector loads; None where they are not a few places apart.

    `steps` has the variables of loops that are being written out, as they are now.
    """
    if not isinstance(index, ir.Ramp) or not isinstance(index.stride, ir.IntImm) or buffer.dtype.lanes != 1:
        return None
    stride = index.stride.value
    if index.lanes < _LEAST or not (stride == -1 or 2 <= stride <= LONGEST_STRIDE):
        return None
    widest = max(index.lanes, register_bytes // buffer.dtype.nbytes)
    if stride == -1:
        return Strided(index.lanes - 1, index.lanes, (0,), tuple(range(index.lanes - 1, -1, -1)))
    into = _place_in_stride(buffer, index.base, stride, steps or {})
    if into is None:
        return _plan(0, [lane * stride for lane in range(index.lanes)], (index.lanes - 1) * stride + 1, widest)
    return _plan(into, [lane * stride + into for lane in range(index.lanes)], index.lanes * stride, widest)


def _plan(before: int, locations: Sequence[int], end: int, widest: int) -> Strided:
    """Loads of up to `widest` of the `end` elements that may be read; the last one ends with them."""
    width = min(widest, 1 << end.bit_length() - 1)  # a power of two: of others, compilers make single elements
    starts = sorted({min(start, end - width) for start in range(0, end, width)})
    return Strided(before, width, tuple(starts), tuple(locations))


def shuffled(offsets: Sequence[int], widest: int) -> Strided:
    """Lanes at these places, counted from the first cell, out of loads of up to `widest` neighbours."""
    return _plan(0, offsets, max(offsets) + 1, widest)


def has_strided_taps(loop: ir.For) -> bool:
    """Whether a loop that is to be written out steps through the strides of loads: each step picks other lanes."""
    result = statements = 0

    def look(node: ir.Node) -> bool:
        nonlocal result, statements
        statements += isinstance(node, (ir.BufferStore, ir.Evaluate))
        if isinstance(node, ir.BufferLoad) and isinstance(node.indices[-1], ir.Ramp):
            index = node.indices[-1]
            is_near = isinstance(index.stride, ir.IntImm) and 2 <= index.stride.value <= LONGEST_STRIDE
            result += is_near and ir.uses_var(index.base, lambda var: var is loop.loop_var)
        elif isinstance(node, (ir.FloorDiv, ir.FloorMod)) and node.dtype.lanes > 1:
            result += ir.uses_var(node, lambda var: var is loop.loop_var)
        return not isinstance(node, ir.Allocate)

    ir.pre_order_visit(loop.body, look)
    return bool(result) and isinstance(loop.extent, ir.IntImm) and loop.extent.value * statements <= _MOST_STATEMENTS


def _place_in_stride(buffer: ir.Buffer, base: ir.Expr, stride: int, steps: Mapping[ir.Var, int]) -> int | None:
    """How far into a stride the first lane is, where the buffer is a whole number of them; None for any other.

    A whole stride is inside the buffer if one of its elements is.
    """
    analyzer = Analyzer()
    values = {var: ir.const(step, var.dtype) for var, step in steps.items()}
    size, first = analyzer.modular_set(buffer.shape[0]), analyzer.modular_set(ir.substitute(base, values))
    if size.coeff % stride or size.base % stride or first.coeff % stride:
        return None
    return first.base % stride
