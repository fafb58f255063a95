"""How large a program is when it is written out: every object counts as often as it stands somewhere.

`x = x + x`, forty times, is forty objects and a million million places. Walks that go by places (printing, looking at
each node in turn) therefore have an end: past `MOST_PLACES` they raise `TooLarge`.
"""

from __future__ import annotations

from typing import Final

from loopwright.runtime.errors import LoopwrightError

MOST_PLACES: Final = 2_000_000  # twenty times the largest functions we expect; a second's walk


class TooLarge(LoopwrightError, ValueError):
    """A program, or an expression, is too large when it is written out, since it holds one object in many places.

    In Python, `x = x + x` makes one object that holds another twice; forty of these are more places than any walk could
    visit. A function binds what it repeats to lets by itself, wherever that is the same; it cannot where a call with
    effects is repeated, or a whole statement, or a buffer's shape.

    For example:

        from loopwright import tir

        body = tir.Evaluate(0)
        for _ in range(40):
            body = tir.IfThenElse(tir.Var("c", "bool"), body, body)
        tir.PrimFunc([], body)
    """

    code = "LW0570"

    def __init__(self, what: str, locations: int | None = None) -> None:
        count = f"{locations:,}" if locations is not None and locations < 10**30 else f"more than {MOST_PLACES:,}"
        super().__init__(
            f"{what} has {count} nodes when it is written out, which is too many to walk",
            why="it holds the same object in many places, and these hold each other",
            hint="bind what is repeated with a let (tir.Let, T.let), or compute it into a buffer",
        )
