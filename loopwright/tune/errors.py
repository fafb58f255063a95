"""Errors of a search: what it was asked for does not exist, or cannot be done."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.errors import LoopwrightError


class UnknownName(LoopwrightError, ValueError):
    """A part of a search is asked for by a name that it does not have.

    For example:

        from loopwright.tune.model import cost_model

        cost_model("oracle")
    """

    code = "LW1500"

    def __init__(self, what: str, name: object, known: Sequence[str]) -> None:
        super().__init__(f"there is no {what} {name!r}", hint=f"choose one of {', '.join(known)}")
