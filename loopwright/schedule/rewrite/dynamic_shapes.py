"""Open sizes: a layout of a buffer some of whose dimensions are known only when the program runs.

    B (n, 256)   lambda i, j: (j // 64, i, j % 64)        →    (4, n, 64)       i passes as it is
    B (k, n8 * 8)   lambda i, j: (j // 8, i, j % 8)       →    (n8, k, 8)       j is a number of whole blocks of 8

Such a dimension either passes as it is, or is cut into blocks of a known length that its size is a multiple of. Both
are one to one whatever the size is, so what the map does to the other dimensions can be looked at alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.arith.index_map import IndexMap
from loopwright.ir import Expr, FloorDiv, FloorMod, IntImm, Var, const, uses_var
from loopwright.schedule.rewrite.index_map import LayoutMap


class OpenSizes(NamedTuple):
    """The part of a map that is about open dimensions, and the map of the others."""

    extents: Mapping[int, Expr]  # of the new layout, by position
    outer: Mapping[Var, int]  # an open index is the new index at that position, or its block
    inner: Mapping[Var, tuple[int, int]]  # the position of the index in its block, and the block's length
    others: LayoutMap
    other_sizes: tuple[Expr, ...]
    places: tuple[int, ...]  # where the results of `others` stand

    def shape(self, step: str) -> tuple[Expr, ...]:
        """The shape of the new layout."""
        result = {**self.extents, **dict(zip(self.places, self.others.shape(step, self.other_sizes), strict=True))}
        return tuple([result[position] for position in range(len(result))])

    def inverse(self, axes: Sequence[Var]) -> dict[Var, Expr]:
        """The open indices in terms of the new ones."""
        result: dict[Var, Expr] = {}
        for var, position in self.outer.items():
            if var in self.inner:
                location, length = self.inner[var]
                result[var] = axes[position] * const(length, axes[position].dtype) + axes[location]
            else:
                result[var] = axes[position]
        return result


def open_sizes(mapping: IndexMap, sizes: Sequence[Expr]) -> OpenSizes | None:
    """The map in two parts; None when an open dimension does not pass in one of the two ways."""
    facts = Analyzer()
    extents: dict[int, Expr] = {}
    outer: dict[Var, int] = {}
    inner: dict[Var, tuple[int, int]] = {}
    for var, size in zip(mapping.initial_indices, sizes, strict=True):
        if isinstance(size, IntImm):
            continue
        results = enumerate(mapping.final_indices)
        locations = [index for index, result in results if uses_var(result, {var}.__contains__)]
        parts = [mapping.final_indices[location] for location in locations]
        if len(parts) == 1 and parts[0] is var:
            outer[var], extents[locations[0]] = locations[0], size
            continue
        quotients = [k for k, part in enumerate(parts) if isinstance(part, FloorDiv)]
        length = _length(parts[quotients[0]], var) if len(parts) == 2 and len(quotients) == 1 else None
        if length is None:
            return None
        rest = 1 - quotients[0]
        if not isinstance(parts[rest], FloorMod) or _length(parts[rest], var) != length:
            return None
        blocks = const(length, size.dtype)
        if not facts.can_prove_equal(size % blocks, const(0, size.dtype)):
            return None
        outer[var], inner[var] = locations[quotients[0]], (locations[rest], length)
        extents[locations[quotients[0]]], extents[locations[rest]] = facts.simplify(size // blocks), blocks
    known = [(var, size) for var, size in zip(mapping.initial_indices, sizes, strict=True) if isinstance(size, IntImm)]
    left = tuple([index for index in range(len(mapping.final_indices)) if index not in extents])
    if any(uses_var(mapping.final_indices[location], {var}.__contains__) for location in left for var in outer):
        return None
    kept = tuple([mapping.final_indices[location] for location in left])
    others = LayoutMap(tuple([var for var, _ in known]), kept, None)
    return OpenSizes(extents, outer, inner, others, tuple([size for _, size in known]), left)


def _length(part: Expr, var: Var) -> int | None:
    """The length of the blocks that `part` cuts `var` into."""
    if isinstance(part, (FloorDiv, FloorMod)) and part.a is var and isinstance(part.b, IntImm) and part.b.value > 0:
        return part.b.value
    return None
