"""ScheduleError: the base of every refusal. A refused step leaves the schedule exactly as it was.

The prose is computed when the message is read, not when the error is raised: a search meets thousands of refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from loopwright.runtime.errors import LoopwrightError

if TYPE_CHECKING:
    from loopwright.schedule.proof import Mismatch


class ScheduleError(LoopwrightError):
    """A schedule step was refused: it does not apply here, or it would change a value.

    `steps` lists what was done so far; `loopwright explain` has a page for every kind of refusal.
    """

    code = "LW0200"

    steps: tuple[object, ...] = ()  # what was done before, as instructions of the trace

    def __str__(self) -> str:
        text = super().__str__()
        return text + f"\n  steps so far: {', '.join([str(step) for step in self.steps])}" if self.steps else text


class NoSuchBlock(ScheduleError, ValueError):
    """A block was looked up by a name that no block, or more than one, has."""

    code = "LW0201"

    def __init__(self, name: str, names: list[str]) -> None:
        found = names.count(name)
        problem = f"no block is called {name!r}" if not found else f"{found} blocks are called {name!r}"
        super().__init__(f"get_block: {problem}; there are {', '.join(sorted(set(names))) or 'none'}")


class HandleGone(ScheduleError, ValueError):
    """A handle names a loop or block that an earlier step replaced."""

    code = "LW0202"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is no longer in the program", hint="take a fresh handle with get_loops or get_block")


class BadStepArgument(ScheduleError, ValueError):
    """An argument of a step has the wrong kind, number or value."""

    code = "LW0203"

    def __init__(self, step: str, problem: str, at: object = None, hint: str | None = None) -> None:
        super().__init__(f"{step}: {problem}", at=at, hint=hint)


class WrongType(ScheduleError, TypeError):
    """An argument is of a type the step cannot use."""

    code = "LW0208"

    def __init__(self, step: str, argument: str, expected: str, value: object) -> None:
        super().__init__(f"{step}: {argument} must be {expected}, got {type(value).__name__}")


class NotSupported(ScheduleError):
    """The step applies to loops or blocks of another shape than the one it was given."""

    code = "LW0204"

    def __init__(self, step: str, problem: str, at: object = None, hint: str | None = None) -> None:
        super().__init__(f"{step}: {problem}", at=at, hint=hint)


class WouldChangeValues(ScheduleError):
    """The step would make an iteration read another value than before; the witness names the smallest such case.

    Legality is a proof about values: every read must see the write it saw before, and every output cell must be
    written last by the same iteration. The witness is a concrete counterexample, not a rule of thumb.
    """

    code = "LW0205"

    def __init__(self, step: str, mismatch: Mismatch, at: object = None) -> None:
        super().__init__(f"{step} would change a value", at=at, why=mismatch.why)
        self.mismatch = mismatch


class NotProved(ScheduleError):
    """No proof was found that the step keeps every value, and no counterexample either: a subscript or bound is not
    affine, or the proof ran over its budget."""

    code = "LW0206"

    def __init__(self, step: str, reason: str, at: object = None) -> None:
        super().__init__(f"{step} could not be proved to keep every value", at=at, why=reason)


class WouldRace(ScheduleError):
    """Iterations that run at the same time would touch one cell, and one of them writes it."""

    code = "LW0207"

    def __init__(
        self, step: str, why: Callable[[], str] | str, at: object = None, fields: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(
            f"{step}: iterations that run at the same time would touch the same cell", at=at, why=why, fields=fields
        )
