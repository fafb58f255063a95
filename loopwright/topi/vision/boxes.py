"""boxes: how much two boxes overlap, and which of a row of boxes are kept, the best first.

A box is kept unless a better one that was kept overlaps it too much. `keep_best` writes down the places of those kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder

Box = Sequence[Expr]  # two opposite corners: along one axis, then the other, then so again


def overlap(a: Box, b: Box) -> Expr:
    """The area that two boxes share as part of what they cover together; 0 where they cover nothing."""
    shared: Any = None
    areas: list[Any] = [None, None]
    for axis in (0, 1):
        (low_a, high_a), (low_b, high_b) = [
            (minimum(box[axis], box[axis + 2]), maximum(box[axis], box[axis + 2])) for box in (a, b)
        ]
        length = maximum(minimum(high_a, high_b) - maximum(low_a, low_b), 0.0)
        shared = length if shared is None else shared * length
        for number, extent in enumerate((high_a - low_a, high_b - low_b)):
            areas[number] = extent if areas[number] is None else areas[number] * extent
    union = areas[0] + areas[1] - shared
    return select(union > 0.0, shared / select(union > 0.0, union, 1.0), 0.0)


def keep_best(
    ib: IRBuilder,
    count: Expr,
    most: Expr,
    kept: BufferVar,
    box: Callable[[Expr], Box],
    is_candidate: Callable[[Expr], Expr],
    suppresses: Callable[[Expr, Expr, Expr], Expr],
) -> BufferVar:
    """Go through places 0 to `count`, the best first, and store those that are kept (at most `most`) in `kept`.

    `suppresses(better, place, overlap)` says whether a box that was kept stands against another. Gives a cell with how
    many were kept.
    """
    number = ib.allocate("int32", (1,), name="number", scope="local")
    against = ib.allocate("int32", (2,), name="against", scope="local")  # where in `kept`, and whether one was found
    number[0] = 0
    with ib.for_range(0, count, "place") as location, ib.if_scope(all_of(number[0] < most, is_candidate(location))):
        against[0] = 0
        against[1] = 0
        with ib.while_loop(all_of(against[0] < number[0], against[1].equal(0))):
            better = ib.let("better", kept[against[0]])
            shared = ib.let("shared", overlap(box(better), box(location)))
            against[1] = select(suppresses(better, location, shared), const(1), const(0))
            against[0] = against[0] + 1
        with ib.if_scope(against[1].equal(0)):
            kept[number[0]] = location.astype("int32")
            number[0] = number[0] + 1
    return number
