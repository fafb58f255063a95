"""Gathered lanes: the indices of a vector of elements from anywhere, as one number for all lanes and one for each.

    A[Broadcast(4096 * c + 35, 16) + cast(int64x16, offsets[…])]        A + 4096 * c + 35, at 16 offsets of int32

The number for all goes into the address. What is left for each lane is as narrow as the program has it: gathers take
32-bit indices twice as many at a time, and a lane that is taken out of a vector needs no sum of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from loopwright import ir
from loopwright.runtime.dtype import DataType


class Gathered(NamedTuple):
    """Lanes at `base` + `lanes`; both are 64-bit sums, though `lanes` may be narrower: it is sign-extended."""

    base: ir.Expr | None  # None for 0
    lanes: ir.Expr


def gathered_lanes(index: ir.Expr) -> Gathered:
    """A vector of indices in two parts."""
    base: ir.Expr | None = None
    rest: ir.Expr | None = None
    terms = _terms(index)
    for term in terms:
        if isinstance(term, ir.Broadcast):
            base = term.value if base is None else base + term.value
        elif len([other for other in terms if not isinstance(other, ir.Broadcast)]) == 1 and _has_short_steps(term):
            assert isinstance(term, ir.Ramp) and isinstance(term.stride, ir.IntImm)
            base = term.base if base is None else base + term.base
            rest = ir.Ramp(ir.const(0, "int32"), ir.const(term.stride.value, "int32"), term.lanes)
        else:
            rest = term if rest is None else rest + term
    if rest is None:
        return Gathered(None, index)
    if isinstance(rest, ir.Cast) and _is_narrower(rest.value.dtype, rest.dtype):
        rest = rest.value
    return Gathered(base, rest)


def come_one_by_one(lanes: ir.Expr) -> bool:
    """Whether indices are easily had as scalars: loaded, at most limited; or those of loops, often the same for rows.

    What is computed of loaded numbers would be taken out of its vector each time: that takes as long as a slow gather.
    """
    return _are_loaded(lanes) or not ir.any_node(lanes, lambda node: isinstance(node, ir.BufferLoad))


def _are_loaded(lanes: ir.Expr) -> bool:
    if isinstance(lanes, ir.Cast):
        return _are_loaded(lanes.value)
    if isinstance(lanes, (ir.Min, ir.Max)):
        pairs = [(lanes.a, lanes.b), (lanes.b, lanes.a)]
        return any([_are_loaded(value) and isinstance(limit, ir.Broadcast) for value, limit in pairs])
    return isinstance(lanes, ir.BufferLoad)


def _has_short_steps(term: ir.Expr) -> bool:
    """Whether a term walks in steps that are known, to where int32 reaches."""
    if not isinstance(term, ir.Ramp) or not isinstance(term.stride, ir.IntImm):
        return False
    return abs(term.stride.value) * term.lanes < 2**31


def _terms(index: ir.Expr) -> list[ir.Expr]:
    """What is added up to the index, in order."""
    if isinstance(index, ir.Add):
        return [*_terms(index.a), *_terms(index.b)]
    return [index]


def _is_narrower(source: DataType, target: DataType) -> bool:
    """Whether a cast only extends signed integers."""
    return source.is_int and not source.is_unsigned and target.is_int and (source.bits, target.bits) == (32, 64)
