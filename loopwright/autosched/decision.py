"""Decision: what a rule chose for some blocks and why, so that a person can read it and disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class RuleKind(StrEnum):
    """What tools that read decisions ask of a rule."""

    OTHER = "other"
    AS_WRITTEN = "as written"  # no rule was made for the blocks
    WINOGRAD = "winograd"
    LOW_PRECISION = "low precision"
    ACROSS_MEMORY = "across memory"  # reads across the order of memory by its nature


class ChoiceKind(StrEnum):
    """What tools that read decisions ask of a choice."""

    OTHER = "other"
    TILES = "tiles"
    PACKED = "packed at each call"
    STRIDED = "strided access"
    NO_VECTORS = "no vectors"
    ONE_THREAD = "one thread"
    NO_STEPS = "no steps"
    REFUSED_RULE = "a rule was refused"


class Choice(NamedTuple):
    """One thing that was chosen: `tile 6 × 64`, because `24 of 32 registers are accumulators`."""

    what: str
    why: str
    kind: ChoiceKind = ChoiceKind.OTHER
    buffer: str = ""  # what is packed


class Roofline(NamedTuple):
    """The least time the work can take, in cycles of one core, by arithmetic and by memory; and what we expect."""

    arithmetic: float
    memory: float
    expected: float

    @property
    def bound(self) -> str:
        return "arithmetic" if self.arithmetic >= self.memory else "memory"

    @property
    def share(self) -> float:
        """How much of the limit should be reached, from 0 to 1."""
        return min(1.0, max(self.arithmetic, self.memory) / self.expected) if self.expected else 1.0


@dataclass
class Decision:
    """What became of a group of blocks."""

    blocks: tuple[str, ...]
    rule: str
    choices: list[Choice] = field(default_factory=list)
    roofline: Roofline | None = None
    tile_use: float = 1.0  # how much of what tiles compute is asked for: the rest fills up the last ones
    kind: RuleKind = RuleKind.OTHER

    def chose(self, what: str, why: str, kind: ChoiceKind = ChoiceKind.OTHER, buffer: str = "") -> None:
        """Note a choice."""
        self.choices.append(Choice(what, why, kind, buffer))

    def whys(self, kind: ChoiceKind) -> list[str]:
        """The reasons of all choices of a kind."""
        return [choice.why for choice in self.choices if choice.kind is kind]

    def to_json(self) -> list[object]:
        """The decision as plain data."""
        choices = [list(one) for one in self.choices]
        return [list(self.blocks), self.rule, choices, self.roofline, self.tile_use, self.kind]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Decision:
        """The decision of such data."""
        blocks, rule, choices, roofline, tile_use, kind = data
        limit = None if roofline is None else Roofline(*map(float, roofline))
        result = cls(tuple(blocks), str(rule), [], limit, float(tile_use), RuleKind(kind))
        for what, why, choice_kind, buffer in choices:
            result.chose(what, why, ChoiceKind(choice_kind), buffer)
        return result

    def lines(self) -> list[str]:
        """The decision in words."""
        lines = [f"{', '.join(self.blocks)}: {self.rule}"]
        lines += [f"  {choice.what}: {choice.why}" for choice in self.choices]
        if self.roofline is not None:
            lines.append(f"  limit: {self.roofline.bound}; about {self.roofline.share:.0%} of the roofline is expected")
        return lines
