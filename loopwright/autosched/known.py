"""known: schedules that are known already, found by a search, say, stand in front of the rules.

    with using(source):
        plan = apply(program, target)          what the source knows is done; the rules do the rest

A source answers with the decisions that rules are to take, or with a trace. Both are proved like any other step; where
a trace does not fit or is refused, the rules take over, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from loopwright.ir import PrimFunc
from loopwright.target import Target


@dataclass(frozen=True)
class Known:
    """A schedule: decisions for the points of `choices.py`, or a trace as JSON; `why` says where it comes from."""

    why: str
    decisions: Mapping[str, Any] | None = None
    trace: list[Any] | None = None


class KnownSchedules(Protocol):
    """A source of schedules."""

    def find(self, function: PrimFunc, target: Target, winograd: int) -> Known | None:
        """What is known for the function, which is not scheduled yet; `winograd` is the largest tile it may use."""

    def key(self, function: PrimFunc, target: Target, winograd: int, count: int = 1) -> str:
        """What code compiled of the function depends on; "" for nothing. A model runs it `count` times."""


_current: ContextVar[KnownSchedules | None] = ContextVar("known schedules", default=None)


def known_schedules() -> KnownSchedules | None:
    """The source in use; None where the rules are alone."""
    return _current.get()


@contextmanager
def using(source: KnownSchedules | None) -> Iterator[None]:
    """Ask the source inside; None asks nobody."""
    token = _current.set(source)
    try:
        yield
    finally:
        _current.reset(token)


def set_known_schedules(source: KnownSchedules | None) -> None:
    """Ask the source from now on, in this context."""
    _current.set(source)
