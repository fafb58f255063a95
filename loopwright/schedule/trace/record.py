"""What a schedule remembers of its steps besides what they were: how each was shown to be right, and what was refused.

A search meets thousands of refusals and looks at none. So a refusal is remembered as what was asked, not as the error,
which holds relations and frames: whoever wants to see it has the step refused once more, by the version it was asked
of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from loopwright.runtime.errors import LoopwrightError, SourceLine
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.trace.calls import Arguments, call_text
from loopwright.schedule.view import View

REFUSALS: Final = 32  # kept, the last ones

UNPROVED_STEP: Final = "unproved"
PROVED_TOGETHER: Final = "proved with the whole trace"

_WORDS: Final = {
    Proof.ORDER_KEPT: "order kept",
    Proof.LEMMA: "lemma",
    Proof.VALUES: "values proved",
    Proof.GIVEN: "given",
}


class Refused(NamedTuple):
    """A step that was refused, and what it was asked of."""

    views: Mapping[str, View]
    after: int  # so many steps that changed the program
    kind: str
    method: str
    inputs: Arguments
    attrs: Arguments
    error: type[LoopwrightError]
    where: SourceLine | None
    seconds: float

    @property
    def call(self) -> str:
        """The step in the user's own names."""
        return call_text(self.method, {**self.inputs, **self.attrs}, lambda handle: handle.name)


def proof_words(step: Step, no_races: bool) -> str:
    """How an accepted step was shown to be right."""
    words = _WORDS[step.proof]
    if step.given is not None and step.proof is Proof.VALUES:
        words = f"given, {words}"
    return f"{words}, no races" if no_races else words


def proof_of_all(words: Sequence[str]) -> str:
    """How a step was shown to be right that is made of others: every way that one of them was, each once."""
    return ", ".join(dict.fromkeys([part for each in words if each for part in each.split(", ")]))
