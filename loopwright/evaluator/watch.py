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

    def clear(self) -> None:
        """A barrier: what came before disturbs nobody any more."""
        self.writers.clear()
        self.readers.clear()

    def touch(self, cell: Cell, writes: bool) -> Conflict[Who] | None:
        """The current one touches a cell; with whom that conflicts."""
        writer = self.writers.get(cell)
        if writer is not None and writer != self.now:
            return Conflict(writer, "both write it" if writes else "the first writes what the second reads")
        if writes:
            for reader in self.readers.get(cell, ()):
                if reader != self.now:
                    return Conflict(reader, "the second writes what the first reads")
            self.writers[cell] = self.now
            return None
        readers = self.readers.setdefault(cell, [])
        if self.now not in readers and len(readers) < 2:
            readers.append(self.now)
        return None
