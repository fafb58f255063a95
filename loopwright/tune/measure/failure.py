"""Failure: why a candidate has no time, as plain data; it is recorded, and never raised through the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopwright.runtime.errors import LoopwrightError

KINDS: Final = (
    "refused",  # a schedule step that could not be proved
    "duplicate",  # the program is one that was built before
    "build error",
    "build timeout",
    "run error",  # the compiled function refused its arguments, or raised
    "run timeout",
    "memory",  # more than the limit
    "signal",  # the process was killed by one: a segmentation fault, say
    "crash",  # the process ended without an answer
    "wrong result",
    "out of bounds",  # memory beside an array, or an argument that is only read, was written
    "not deterministic",  # two runs on the same inputs differ
)


@dataclass(frozen=True)
class Failure:
    """One of `KINDS`, a line that says what happened, and what else is known (the end of its stderr, a digest)."""

    kind: str
    message: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def failure_of(error: BaseException, stage: str) -> Failure:
    """What an exception says, that was raised while a candidate was built or run."""
    from loopwright.schedule import ScheduleError

    text = str(error).strip() or type(error).__name__
    # A schedule that shall not spend time on messages says nothing of the step in its own.
    said = f"{error.problem} [{error.code}]" if isinstance(error, LoopwrightError) and error.problem else text
    message = f"{type(error).__name__}: {said.splitlines()[0]}" if type(error).__name__ not in said else said
    if isinstance(error, MemoryError):
        return Failure("memory", f"{stage}: the memory limit was reached", text)
    if isinstance(error, ScheduleError):
        return Failure("refused", message.splitlines()[0], text)
    kind = "build error" if stage == "build" else "run error"
    return Failure(kind, f"{stage}: {message.splitlines()[0]}", text)
