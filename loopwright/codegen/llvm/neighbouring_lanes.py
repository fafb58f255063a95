"""Neighbouring lanes: two vectors of elements from anywhere, where each lane of one lies next to that of the other.

    A[i] * (1 - w) + A[i + 1] * w, of 16 i         16 loads of two elements, and one shuffle for either vector

Interpolation reads its pixels so. A load of two elements takes as long as that of one, and so does its insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from loopwright import ir
from loopwright.codegen.llvm.gathered_lanes import Gathered, gathered_lanes
from loopwright.ir import structural_equal

PAIRED_BYTES: Final = 4  # of an element: two are one scalar register


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Loads of two elements: the first one is at `first`."""

    buffer: ir.Buffer
    first: Gathered
    name: ir.Var = field(default_factory=lambda: ir.Var("neighbours", "int64"))  # under which the loaded value is known


def neighbouring_lanes(
    value: ir.Expr, is_gathered: Callable[[ir.BufferLoad], bool]
) -> Mapping[ir.BufferLoad, tuple[Neighbours, int]]:
    """The loads that have a neighbour in this value, and which of the two elements each is.

    Both must be computed whatever happens: what only one side of an if_then_else reads is left alone.
    """
    found: dict[ir.BufferLoad, tuple[Gathered, list[ir.Expr], int]] = {}

    def look(node: ir.Node) -> bool:
        if isinstance(node, ir.BufferLoad) and node not in found and is_gathered(node):
            parts = gathered_lanes(node.indices[0])
            if parts.base is not None:
                found[node] = (parts, *_split(parts.base))
        is_lazy = isinstance(node, ir.Call) and node.op.name == "tir.if_then_else"
        is_branch = isinstance(node, ir.Select) and node.condition.dtype.lanes == 1
        return not (is_lazy or is_branch or isinstance(node, (ir.And, ir.Or, ir.Let)))

    ir.pre_order_visit(value, look)
    result: dict[ir.BufferLoad, tuple[Neighbours, int]] = {}
    for load, (parts, terms, offset) in found.items():
        for other, (its_parts, its_terms, its_offset) in found.items():
            is_next = other.buffer is load.buffer and its_offset == offset + 1 and other.dtype == load.dtype
            if not is_next or load in result or other in result:
                continue
            if structural_equal(parts.lanes, its_parts.lanes) and _are_equal(terms, its_terms):
                pair = Neighbours(load.buffer, parts)
                result[load], result[other] = (pair, 0), (pair, 1)
    return result


def _split(base: ir.Expr) -> tuple[list[ir.Expr], int]:
    """The terms of a sum, and what is added to them."""
    if isinstance(base, ir.IntImm):
        return [], base.value
    if not isinstance(base, ir.Add):
        return [base], 0
    (terms, offset), (others, more) = _split(base.a), _split(base.b)
    return terms + others, offset + more


def _are_equal(terms: list[ir.Expr], others: list[ir.Expr]) -> bool:
    return len(terms) == len(others) and all(map(structural_equal, terms, others))
