"""Who touched which cell since the last barrier: finds two that disturb each other, in whatever order they ran."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

Cell = tuple[Hashable, int]  # memory, and the place in it
Who = TypeVar("Who", int, str)  # what tells those apart that are watched: a number, or a name


class Conflict(NamedTuple, Generic[Who]):
    """Another one that touched the cell before, and what is wrong about it."""

    other: Who
    what: str


class Watch(Generic[Who]):
    """The cells that threads, blocks or iterations touched in one stretch; `now` is the one that runs."""

    def __init__(self, now: Who) -> None:
        self.now: Who = now
        self.writers: dict[Cell, Who] = {}
        self.readers: dict[Cell, list[Who]] = {}  # at most two: enough to find another than any given one
        self.atomic: dict[Cell, list[Who]] = {}  # at most two who touched the cell atomically

    def clear(self) -> None:
        """A barrier: what came before disturbs nobody any more."""
        self.writers.clear()
        self.readers.clear()
        self.atomic.clear()

    def touch_atomically(self, cell: Cell) -> Conflict[Who] | None:
        """The current one touches a cell, as others may at the same time, if they do so atomically as well."""
        for other in (self.writers.get(cell), *self.readers.get(cell, ())):
            if other is not None and other != self.now:
                return Conflict(other, "the second touches it atomically, but the first does not")
        _note(self.atomic.setdefault(cell, []), self.now)
        return None

    def touch(self, cell: Cell, writes: bool) -> Conflict[Who] | None:
        """The current one touches a cell; with whom that conflicts."""
        for other in self.atomic.get(cell, ()):
            if other != self.now:
                return Conflict(other, "the first touches it atomically, but the second does not")
        writer = self.writers.get(cell)
        if writer is not None and writer != self.now:
            return Conflict(writer, "both write it" if writes else "the first writes what the second reads")
        if writes:
            for reader in self.readers.get(cell, ()):
                if reader != self.now:
                    return Conflict(reader, "the second writes what the first reads")
            self.writers[cell] = self.now
            return None
        _note(self.readers.setdefault(cell, []), self.now)
        return None


def _note(some: list[Who], who: Who) -> None:
    if who not in some and len(some) < 2:
        some.append(who)
