"""What comes first: 2d+1 vectors of time (`instances.py`) compared, as conditions in isl text.

    before([0, "i0", 2], [0, "j0", 1])        ((i0 < j0))                   where i0 = j0, 2 is not before 1
    not_before([0, "i0", 2], [0, "j0", 1])    ((i0 > j0) or (i0 = j0))

An item is a position, or the name of a loop; a loop that stands still has one name on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Time = Sequence[int | str]


def before(a: Time, b: Time) -> str | None:
    """The condition that time `a` is before time `b`; None when it never is."""
    return _compared(a, b, "<", or_equal=False)


def not_before(a: Time, b: Time) -> str | None:
    """The condition that time `a` is not before time `b`; None when it always is."""
    return _compared(a, b, ">", or_equal=True)


def _compared(a: Time, b: Time, sign: Literal["<", ">"], or_equal: bool) -> str | None:
    cases: list[str] = []
    equal: list[str] = []
    for x, y in zip(a, b, strict=False):
        if x == y:
            continue
        if isinstance(x, int) and isinstance(y, int):
            if (x < y) == (sign == "<"):
                cases.append(" and ".join(equal) or "0 = 0")
            break
        cases.append(" and ".join([*equal, f"{x} {sign} {y}"]))
        equal.append(f"{x} = {y}")
    else:
        if or_equal:
            cases.append(" and ".join(equal) or "0 = 0")
    return f"({' or '.join([f'({case})' for case in cases])})" if cases else None
