"""Tuned: what a search found, for those who asked for it."""

from __future__ import annotations

import os

from loopwright.display.quantities import count_text
from loopwright.runtime.together import write_text
from loopwright.schedule import Schedule
from loopwright.tune.database import Database
from loopwright.tune.errors import NoTasks
from loopwright.tune.report import Summary, as_text, report_html, summary_of
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

    def summary(self) -> Summary:
        """All that there is to report, as plain data: `as_data()` gives dicts and lists of it."""
        return summary_of(self.session)

    def report(self, path: str | os.PathLike[str], title: str = "Tuning") -> None:
        """Write a page: each task's curve, what the best does differently from the rule's schedule, its limit."""
        write_text(path, report_html(self.summary(), title))

    def __repr__(self) -> str:
        tasks, trials = count_text(len(self.session.tasks), "task"), count_text(self.session.trials, "trial")
        return f"<Tuned: {self.speed_up:.3f} × the rules, {tasks}, {trials}, in {self.database!r}>"

    def __str__(self) -> str:
        return as_text(summary_of(self.session, explained=False))
