"""current: the database whose `with` block is running, innermost first.

A context variable, so that threads and tasks each have their own: a thread started inside does not inherit it.
"""

from __future__ import annotations

from contextvars import ContextVar

from loopwright.autosched.known import set_known_schedules
from loopwright.tune.database.interface import Database
from loopwright.tune.database.tuned import TunedSchedules

_entered: ContextVar[tuple[Database, ...]] = ContextVar("loopwright_databases", default=())


def current_database() -> Database | None:
    """The database of the innermost `with`; None outside of all."""
    entered = _entered.get()
    return entered[-1] if entered else None


def enter(database: Database) -> None:
    """Make it the current one: what it knows stands before the rules."""
    _set((*_entered.get(), database))


def leave() -> None:
    """Make the one before it current again."""
    _set(_entered.get()[:-1])


def _set(entered: tuple[Database, ...]) -> None:
    _entered.set(entered)
    set_known_schedules(TunedSchedules(entered[-1]) if entered else None)
