"""Candidate: one schedule of a task, as the decisions that lead to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

RULES: Final = "rules"  # the space of the rules' own decisions


@dataclass(frozen=True)
class Candidate:
    """`space` names the space it is from; `choices` are its decisions there: plain data, which the space reads."""

    space: str
    choices: tuple[Any, ...]

    @classmethod
    def of(cls, space: str, decisions: Mapping[str, Any]) -> Candidate:
        """The candidate with these decisions, kept as JSON by their keys."""
        return cls(space, tuple([(key, json.dumps(value)) for key, value in decisions.items()]))

    @property
    def decisions(self) -> dict[str, Any]:
        """The decisions of a candidate that `of` made."""
        return {key: json.loads(text) for key, text in self.choices}

    @property
    def is_readable(self) -> bool:
        """Whether its choices have the form that `of` gives them; those of a database may have any."""
        try:
            return all([isinstance(key, str) and isinstance(value, dict) for key, value in self.decisions.items()])
        except (TypeError, ValueError):
            return False
