"""Row-major order: the place of an element when a tensor is read row after row, and the indices of such a place.

    ravel((y, x), (4, 5))     →  y * 5 + x
    unravel(place, (4, 5))    →  [place // 5, place % 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.ir import Expr, as_expr, const
from loopwright.topi.sizes import simplify


def ravel(indices: Sequence[Any], shape: Sequence[Any]) -> Expr:
    """The place of the element at `indices` of a tensor of `shape`."""
    place = as_expr(0)
    for index, size in zip(indices, shape, strict=True):
        place = place * size + index
    return place


def unravel(place: Any, shape: Sequence[Any]) -> list[Expr]:
    """The indices of a place. The first one is not wrapped: a place within the tensor needs no division there."""
    indices: list[Expr] = []
    rest = as_expr(place)
    for size in reversed(shape[1:]):
        indices.append(rest % size)
        rest = rest // size
    return [*([rest] if shape else []), *reversed(indices)]


def product(sizes: Sequence[Any]) -> Expr:
    """How many elements a tensor of these sizes has, in the type of the sizes."""
    total: Expr = const(1, as_expr(sizes[0]).dtype if sizes else "int32")
    for size in sizes:
        total = total * size
    return simplify(total)
