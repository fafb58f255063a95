"""Races: two iterations of a parallel loop that touch one cell, with a write among them, found while it runs."""

from __future__ import annotations

from loopwright.evaluator.errors import Race
from loopwright.evaluator.folds import TermMemory
from loopwright.evaluator.watch import Watch
from loopwright.ir import For


class Races:
    """The parallel loops that are running, each with who touched which cell."""

    def __init__(self) -> None:
        self.running: list[RunningLoop] = []

    def touch(self, memory: TermMemory, index: int, writes: bool) -> None:
        for loop in self.running:
            loop.touch_or_race(memory, index, writes)


class RunningLoop(Watch[int]):
    """One parallel loop; `now` is the iteration that runs."""

    def __init__(self, stmt: For) -> None:
        super().__init__(0)
        self.stmt = stmt

    def touch_or_race(self, memory: TermMemory, index: int, writes: bool) -> None:
        """The current iteration touches a cell; a Race when another one is in its way."""
        result = self.touch((memory, index), writes)
        if result is not None:
            name = memory.cell_name(index)
            raise Race(self.stmt.loop_var.name, result.other, self.now, result.what, name, self.stmt)
