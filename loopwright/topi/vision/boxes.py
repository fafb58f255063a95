"""boxes: how much two boxes overlap, and which of a row of boxes are kept, the best first.

A box is kept unless a better one that was kept overlaps it too much. `keep_best` writes down the places of those kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, IRBuilder

Box = Sequence[Expr]  # two opposite corners: along one axis, then the other, then so again


@dataclass(frozen=True)
class Sides:
    """A box by its sides, the lower before the higher, and its area: what is asked of it again and again."""

    lows: Sequence[Expr]
    highs: Sequence[Expr]
    area: Expr

    @staticmethod
    def of(ib: IRBuilder, box: Box) -> Sides:
        lows = [ib.let("low", minimum(box[axis], box[axis + 2])) for axis in (0, 1)]
        highs = [ib.let("high", maximum(box[axis], box[axis + 2])) for axis in (0, 1)]
        return Sides(lows, highs, ib.let("area", (highs[0] - lows[0]) * (highs[1] - lows[1])))

    def store(self, memory: BufferVar, at: Expr) -> None:
        for k, value in enumerate((*self.lows, *self.highs, self.area)):
            memory[k, at] = value

    @staticmethod
    def load(memory: BufferVar, at: Expr) -> Sides:
        return Sides([memory[0, at], memory[1, at]], [memory[2, at], memory[3, at]], memory[4, at])


def overlap(a: Sides, b: Sides) -> Expr:
    """The area that two boxes share as part of what they cover together; 0 where they cover nothing."""
    lengths = [
        maximum(minimum(a.highs[axis], b.highs[axis]) - maximum(a.lows[axis], b.lows[axis]), 0.0) for axis in (0, 1)
    ]
    shared = lengths[0] * lengths[1]
    union = a.area + b.area - shared
    return select(union > 0.0, shared / select(union > 0.0, union, 1.0), 0.0)


def keep_best(
    ib: IRBuilder,
    count: Expr,
    most: Expr,
    kept: BufferVar,
    box: Callable[[Expr], Box],
    is_candidate: Callable[[Expr], Expr],
    suppresses: Callable[[Expr, Expr, Expr], Expr],
    find: Callable[[Expr], None] | None = None,
) -> BufferVar:
    """Go through places 0 to `count`, the best first, and store those that are kept (at most `most`) in `kept`.

    `suppresses(better, place, overlap)` says whether a box that was kept stands against another. `find`, if given, is
    called with each place before `box` and the others are asked about it. Gives a cell with how many were kept.
    """
    room = kept.asobject().shape[0]
    sides = ib.allocate(box(const(0, "int32"))[0].dtype, (5, room), name="sides")  # of those kept, side by side
    number = ib.allocate("int32", (1,), name="number", scope="local")
    location = ib.allocate("int32", (1,), name="location", scope="local")
    against = ib.allocate("int32", (2,), name="against", scope="local")  # where in `kept`, and whether one was found
    number[0] = 0
    location[0] = 0
    with ib.while_loop(all_of(location[0] < count, number[0] < most)):
        here = ib.let("here", minimum(maximum(location[0], 0), count - 1))
        if find is not None:
            find(here)
        with ib.if_scope(is_candidate(here)):
            own = Sides.of(ib, box(here))
            against[0] = 0
            against[1] = 0
            with ib.while_loop(all_of(against[0] < number[0], against[1].equal(0))):
                at = ib.let("at", minimum(maximum(against[0], 0), room - 1))
                shared = ib.let("shared", overlap(Sides.load(sides, at), own))
                against[1] = select(suppresses(kept[at], here, shared), const(1), const(0))
                against[0] = at + 1
            with ib.if_scope(against[1].equal(0)):
                free = ib.let("free", minimum(maximum(number[0], 0), room - 1))
                kept[free] = here
                own.store(sides, free)
                number[0] = free + 1
        location[0] = here + 1
    return number
