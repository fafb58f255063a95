"""Make a failing case small: fewer steps, then a simpler program, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.schedule import Schedule
from loopwright.schedule.errors import ScheduleError
from tests.schedule.harness.cases import Move, Unresolved
from tests.schedule.harness.programs import Program


@dataclass(frozen=True)
class Failure:
    """What is wrong with a scheduled program: the kind of wrong, and the details."""

    kind: str
    details: str


Check = Callable[[Program, Sequence[Move]], Failure | None]


@dataclass(frozen=True)
class Failing:
    """A program, steps that the engine accepts on it, and what is wrong with the result."""

    program: Program
    moves: tuple[Move, ...]
    failure: Failure

    def report(self) -> str:
        """The case as a script and a trace that anyone can run."""
        function = self.program.function
        sch = Schedule(function)
        trouble = ""
        for step in self.moves:
            try:
                step.apply(sch)
            except Exception as error:  # a step that breaks is what may be reported
                trouble = f"\n{step} raises {type(error).__name__}: {error}"
                break
        trace = "\n".join(sch.trace.as_python())
        return (
            f"{self.failure.kind}: {self.failure.details}\n"
            f"--- {self.program.name} ---\n{function.script()}\n"
            f"--- trace ---\nsch = tir.Schedule(main)\n{trace}{trouble}\n"
            f"--- after ---\n{sch.view().function.script()}"
        )


def reduced(failing: Failing, check: Check, tries: int = 400) -> Failing:
    """The smallest case found that fails in the same way."""
    search = _Search(failing, check, tries)
    while search.drop_steps() or search.simplify_program():
        pass
    return search.best


class _Search:
    def __init__(self, failing: Failing, check: Check, tries: int) -> None:
        self.best, self.check, self.left = failing, check, tries

    def accept(self, program: Program, moves: tuple[Move, ...]) -> bool:
        """Whether the candidate fails in the same way; if so, it is the best from now on."""
        if self.left <= 0:
            return False
        self.left -= 1
        try:
            failure = self.check(program, moves)
        except (ScheduleError, Unresolved):
            return False
        if failure is None or failure.kind != self.best.failure.kind:
            return False
        self.best = Failing(program, moves, failure)
        return True

    def drop_steps(self) -> bool:
        """Leave steps out, many at once first."""
        dropped = False
        count = len(self.best.moves) // 2
        while count >= 1:
            start = 0
            while start < len(self.best.moves):
                moves = self.best.moves
                if self.accept(self.best.program, (*moves[:start], *moves[start + count :])):
                    dropped = True
                else:
                    start += count
            count //= 2
        return dropped

    def simplify_program(self) -> bool:
        """One stage, read or size less."""
        return any(self.accept(program, self.best.moves) for program in self.best.program.smaller())
