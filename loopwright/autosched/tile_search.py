"""tile_search: the candidates that rules choose their tiles from, and the choice.

    for rows, vectors in register_tiles(machine, most_rows=6, most_vectors=4, spare=2): …
    for band in divisors(lines): …
    cheapest(price(tile) for tile in …)

A rule lists what it can generate and says what each would take (`cost.py`); all rules choose alike, so that two
candidates that cost the same give the same choice everywhere: the one with the larger register tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from loopwright.autosched.choices import pick
from loopwright.autosched.machine import Machine

# Registers of a micro-kernel beside its accumulators and a row of vectors: an element of the other operand that is
# broadcast to a vector, and the next one, or two, so that they come early.
ONE_AHEAD: Final = 2
TWO_AHEAD: Final = 3


class Priced(Protocol):
    """Sizes of a kernel, and what they should cost."""

    @property
    def cycles(self) -> float: ...

    @property
    def register_tile(self) -> int:
        """Sums in registers at one time; of two that cost the same, the larger is taken."""


P = TypeVar("P", bound=Priced)


def cheapest(candidates: Iterable[P], point: str = "tiles", more: Callable[[], Iterable[P]] | None = None) -> P:
    """The candidate that costs least, unless a search decides otherwise at this point.

    `more` are those that only a search tries: whatever they cost, the rule takes none of them by itself.
    """
    return pick(point, list(candidates), _cycles, _cycles_and_tile, more)


def _cycles(sizes: Priced) -> float:
    return sizes.cycles


def _cycles_and_tile(sizes: Priced) -> tuple[float, int]:
    return sizes.cycles, -sizes.register_tile


def register_tiles(machine: Machine, most_rows: int, most_vectors: int, spare: int) -> Iterator[tuple[int, int]]:
    """Rows × vectors of sums that registers hold beside a row of the other operand and `spare` registers."""
    for vectors in range(1, most_vectors + 1):
        for rows in range(1, most_rows + 1):
            if rows * vectors + vectors + spare <= machine.registers:
                yield rows, vectors


def divisors(size: int) -> list[int]:
    """The sizes of equal parts, smallest first."""
    return [part for part in range(1, size + 1) if size % part == 0]
