"""Axes: numbers that say which dimension of a tensor is meant, counted from the front or, negative, from the back.

axis_of("flip", -1, 4)            →  3
axes_of("squeeze", (0, -1), 4)    →  [0, 3]
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import IntImm
from loopwright.runtime.errors import LoopwrightError


class BadAxis(LoopwrightError, ValueError, IndexError, AssertionError):
    """An axis that a tensor does not have, or one that is named twice.

    Axes count from 0; negative ones count from the back: of a tensor with 3 dimensions, -1 is axis 2.

    For example:

        from loopwright import te, topi

        topi.flip(te.placeholder((2, 3), name="data"), axis=2)
    """

    code = "LW1120"

    def __init__(self, op: str, problem: str, hint: str | None = None, **fields: object) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op, **fields})


def axis_of(op: str, axis: object, rank: int, what: str = "axis") -> int:
    """`axis` as a number from 0 to `rank - 1`."""
    number = int(axis.value) if isinstance(axis, IntImm) else axis
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise BadAxis(op, f"{what} is {type(axis).__name__} {axis!r}, not an integer", "give an integer", axis=axis)
    number = int(number)
    if not -rank <= number < rank:
        reach = f"axes go from {-rank} to {rank - 1}" if rank else "it has no axes"
        dimensions = f"{rank} dimension{'s' * (rank != 1)}"
        raise BadAxis(op, f"{what} {number} is not one of a tensor with {dimensions}", reach, axis=number, rank=rank)
    return number % rank


def axes_of(op: str, axes: object, rank: int, what: str = "axis") -> list[int]:
    """Different axes, each as a number from 0 to `rank - 1`, in the order given; one number is a list of one."""
    given = list(axes) if isinstance(axes, Sequence) else [axes]
    result = [axis_of(op, axis, rank, what) for axis in given]
    for axis in result:
        if result.count(axis) > 1:
            raise BadAxis(op, f"{what} {axis} is named twice in {tuple(given)}", "name each axis once", axis=axis)
    return result
