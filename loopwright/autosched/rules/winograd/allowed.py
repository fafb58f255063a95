"""Which tiles of winograd a caller allows: the one setting of schedules by rule that changes rounding."""

from __future__ import annotations

from typing import Final

from loopwright.runtime.errors import LoopwrightError

USUAL: Final = 4  # the largest tile of "yes": its error is within one digit of the direct form's
TILES: Final = (2, 4, 6)


class BadWinograd(LoopwrightError, ValueError):
    """`winograd` is neither yes nor no, nor one of the tiles 2, 4 and 6.

    `True` allows tiles of 2 × 2 and 4 × 4 results. Tiles of 6 × 6 save a little more and lose another digit: they are
    taken only where the caller says 6.

    For example:

        from loopwright import autosched, te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        autosched.apply(te.create_prim_func([A, B]), winograd=3)
    """

    code = "LW1002"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"winograd is {given!r}",
            hint="give True for tiles of up to 4 × 4 results, False for none, or the largest tile: 2, 4 or 6",
            fields={"winograd": given},
        )


def largest_tile(winograd: bool | int) -> int:
    """The largest tile that a caller allows; 0 for none."""
    if isinstance(winograd, bool):
        return USUAL if winograd else 0
    if isinstance(winograd, int) and winograd in (0, *TILES):
        return winograd
    raise BadWinograd(winograd)
