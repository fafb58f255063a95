"""Tuned: what a search found, for those who asked for it."""

from __future__ import annotations

from loopwright.schedule import Schedule
from loopwright.tune.database import Database
from loopwright.tune.errors import NoTasks
from loopwright.tune.session import Session


class Tuned:
    """`session` has all that was tried; `database` keeps it: inside `with database:` programs are built with it."""

    def __init__(self, session: Session, database: Database) -> None:
        self.session, self.database = session, database

    @property
    def speed_up(self) -> float:
        """How many times faster than by rule all kernels together are, each as often as it runs."""
        return self.session.speed_up

    def schedule(self, name: str | None = None) -> Schedule:
        """The best schedule of a task (of the first, without a name), as a proved Schedule with its trace."""
        for search in self.session.searches:
            if name in (None, search.task.name) and search.incumbent is not None:
                candidate = search.incumbent.candidate
                space = next(space for space in search.spaces if space.name == candidate.space)
                return space.schedule(candidate)
        raise NoTasks(f"no task {name!r} was measured" if name else "no task was measured")

    def __str__(self) -> str:
        lines = []
        for search in self.session.searches:
            times = f"{search.speed_up:.2f} × the rule ({search.seconds * 1e6:.1f} µs)"
            lines.append(f"{search.task.name}: {times}, {len(search.trials)} trials")
        lines.append(f"all together: {self.speed_up:.3f} × the rules, in {self.session.seconds:.0f} s")
        return "\n".join(lines)
