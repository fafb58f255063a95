"""sampling: the value between pixels, from the pixels around it.

nearest    the pixel itself
linear     2 pixels a dimension, weighted by how near they are
cubic      4 pixels a dimension, by Keys' kernel: w(t) of the distance t, steep as `alpha` says
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from loopwright.ir import Expr

# The element at these pixel indices of the spatial axes; it sees to indices outside itself.
Read = Callable[[Sequence[Expr]], Expr]


def linear_weights(rest: Expr) -> list[Expr]:
    """The weights of the pixel below and the one above, `rest` of the way from one to the other."""
    return [1 - rest, rest]


def cubic_weights(rest: Expr, alpha: float) -> list[Expr]:
    """The weights of the pixels at -1, 0, 1 and 2; they add up to 1."""
    t, s = rest, 1 - rest

    def near(x: Expr) -> Expr:
        return ((alpha + 2) * x - (alpha + 3)) * x * x + 1

    return [alpha * t * s * s, near(t), near(s), alpha * s * t * t]


def interpolated(read: Read, base: Sequence[Expr], offsets: Sequence[int], weights: Sequence[Sequence[Expr]]) -> Expr:
    """The weighted sum of the pixels at `base` + `offsets`, dimension by dimension, the last one innermost."""

    def along(axis: int, chosen: tuple[Expr, ...]) -> Expr:
        if axis == len(base):
            return read(chosen)
        terms = [
            along(axis + 1, (*chosen, base[axis] + offset)) * weight
            for offset, weight in zip(offsets, weights[axis], strict=True)
        ]
        return reduce(add, terms)

    return along(0, ())
