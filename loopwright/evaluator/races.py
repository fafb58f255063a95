"""Races: two iterations of a parallel loop that touch one cell, with a write among them, found while it runs."""

from __future__ import annotations

from loopwright.evaluator.errors import Race
from loopwright.evaluator.folds import Cell, TermMemory
from loopwright.ir import For


class Races:
    """The parallel loops that are running, each with who touched which cell."""

    def __init__(self) -> None:
        self.running: list[RunningLoop] = []

    def touch(self, memory: TermMemory, place: int, writes: bool) -> None:
        for loop in self.running:
            loop.touch(memory, place, writes)


class RunningLoop:
    def __init__(self, stmt: For) -> None:
        self.stmt = stmt
        self.now = 0
        self.writer: dict[Cell, int] = {}
        self.readers: dict[Cell, list[int]] = {}  # at most two: enough to find another than any given one

    def touch(self, memory: TermMemory, place: int, writes: bool) -> None:
        cell = (memory, place)
        writer = self.writer.get(cell)
        if writer is not None and writer != self.now:
            raise self._race(writer, cell, "both write it" if writes else "the first writes what the second reads")
        readers = self.readers.setdefault(cell, []) if not writes else self.readers.get(cell, [])
        if writes:
            for reader in readers:
                if reader != self.now:
                    raise self._race(reader, cell, "the second writes what the first reads")
            self.writer[cell] = self.now
        elif self.now not in readers and len(readers) < 2:
            readers.append(self.now)

    def _race(self, other: int, cell: Cell, what: str) -> Race:
        return Race(self.stmt.loop_var.name, other, self.now, what, cell[0].cell_name(cell[1]), self.stmt)
