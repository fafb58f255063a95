"""Candidate: one schedule of a task, as the decisions that lead to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """`space` names the space it is from; `choices` are its decisions there, by their keys: plain data as JSON text."""

    space: str
    choices: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, space: str, decisions: Mapping[str, Any]) -> Candidate:
        """The candidate with these decisions."""
        return cls(space, tuple([(key, json.dumps(value)) for key, value in decisions.items()]))

    @property
    def decisions(self) -> dict[str, Any]:
        return {key: json.loads(text) for key, text in self.choices}
