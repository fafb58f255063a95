"""tune_table: what a search is doing, for whoever watches: a table on a terminal, lines in files and pipes.

    task                    share      best    speed-up   trials   noise
  › conv2d_relu 1×64×56×56  31.2%    123 µs      1.12 ×       24    0.8%
    all 12 tasks: 1.061 × the rules · 180 trials · 4:12 left

The table is painted when a trial ends, from the process of the search itself: no thread holds the screen while others
are forked.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TextIO

from loopwright.display import progress, screen
from loopwright.display.quantities import count_text, time_text

if TYPE_CHECKING:
    from loopwright.tune import Session, TaskSearch, Trial
    from loopwright.tune.session import Observer

_STATUS_EVERY: Final = 10.0  # seconds between two lines that tell of nothing new
_AROUND: Final = 6  # lines of a terminal that are not rows
_COLUMNS: Final = ("task", "share", "best", "speed-up", "trials", "noise")


def watcher(stream: TextIO | None = None) -> Observer:
    """What fits the stream, which is the standard error if none is given."""
    chosen = sys.stderr if stream is None else stream
    is_live = screen.is_terminal(chosen) and os.environ.get("TERM") != "dumb"
    return LiveTable(chosen) if is_live and os.environ.get("LOOPWRIGHT_PROGRESS") != "0" else Lines(chosen)


class Lines:
    """A line for each task that begins, for each new best, and now and then one for all."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock, self._told = stream, clock, 0.0
        self._notes: set[str] = set()  # the kinds that were told

    def begin(self, session: Session) -> None:
        self._told = self._clock()
        self._say(f"{count_text(len(session.tasks), 'task')} for {session.tasks[0].target}")

    def trial(self, session: Session, search: TaskSearch, trial: Trial) -> None:
        from loopwright.tune.report import kind_of

        name, now = search.task.name, self._clock()
        if trial.number == 0:
            found = f"by rule {time_text(search.rule_seconds)}" if isfinite(search.rule_seconds) else "not measured"
            self._say(f"{name}: {found}{_calls(search)}")
        elif trial.is_best:
            self._say(f"{name}: {time_text(search.seconds)}, {search.speed_up:.2f} × the rule, at trial {trial.number}")
        elif now - self._told >= _STATUS_EVERY:
            self._say(status(session))
        for note in search.notes:
            if kind_of(note) not in self._notes:
                self._notes.add(kind_of(note))
                self._say(f"{name}: {note}")

    def end(self, session: Session) -> None:
        self._say(status(session))

    def _say(self, text: str) -> None:
        self._told = self._clock()
        print(text, file=self._stream, flush=True)


class LiveTable:
    """The table on a terminal, which stays in one place, and goes at the end."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, highlight=False, no_color=not screen.has_colours(stream))
        self._live = Live(
            console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._open = ExitStack()

    def begin(self, session: Session) -> None:
        self._open.enter_context(progress.hidden())
        self._open.enter_context(self._live)
        self._paint(session, None)

    def trial(self, session: Session, search: TaskSearch, trial: Trial) -> None:
        self._paint(session, search)

    def end(self, session: Session) -> None:
        self._open.close()

    def _paint(self, session: Session, now: TaskSearch | None) -> None:
        self._live.update(_table(session, now), refresh=True)


def _table(session: Session, now: TaskSearch | None) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(("", *_COLUMNS)):
        table.add_column(column, justify="left" if number < 2 else "right", no_wrap=True, overflow="ellipsis")
    rows = task_rows(session)
    most = max(3, shutil.get_terminal_size().lines - _AROUND)
    for search, cells in rows[:most]:
        style = "green" if search is not None and search.speed_up > 1 else "" if search is not None else "dim"
        table.add_row("›" if search is not None and search is now else " ", *cells, style=style)
    lines: list[Any] = [table]
    if len(rows) > most:
        lines.append(Text(f"  and {count_text(len(rows) - most, 'task')} more", style="dim"))
    lines.append(Text(f"  {status(session)}", no_wrap=True, overflow="ellipsis"))
    if now is not None and now.notes:
        lines.append(Text(f"  {now.task.name}: {now.notes[-1]}", style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*lines)


def task_rows(session: Session) -> list[tuple[TaskSearch | None, tuple[str, ...]]]:
    """The tasks as cells of the table: those that take most time first, then those that had no turn yet."""
    begun = sorted(session.searches, key=_weighted, reverse=True)
    total = sum([_weighted(search) for search in begun]) or 1.0
    rows: list[tuple[TaskSearch | None, tuple[str, ...]]] = [
        (search, _cells(search, _weighted(search) / total)) for search in begun
    ]
    seen = {id(search.task) for search in begun}
    waiting = [task for task in session.tasks if id(task) not in seen]
    return rows + [(None, (task.name, "–", "–", "–", "–", "–")) for task in waiting]


def _cells(search: TaskSearch, share: float) -> tuple[str, ...]:
    count = str(len(search.trials))
    if not isfinite(search.rule_seconds):
        return (search.task.name, "–", "not measured" if search.trials else "–", "–", count, "–")
    seconds = time_text(search.seconds)
    return (search.task.name, f"{share:.1%}", seconds, f"{search.speed_up:.2f} ×", count, f"{search.noise:.1%}")


def _weighted(search: TaskSearch) -> float:
    return search.task.weight * search.rule_seconds if isfinite(search.rule_seconds) else 0.0


def _calls(search: TaskSearch) -> str:
    return f", called {search.task.weight:g} times" if search.task.weight != 1 else ""


def status(session: Session) -> str:
    """All tasks together: what was gained, how many trials, what is left of the budget."""
    begun, of = len(session.searches), len(session.tasks)
    tasks = f"all {count_text(of, 'task')}" if begun == of else f"{begun} of {count_text(of, 'task')}"
    trials = count_text(session.trials, "trial")
    if session.budget.trials is not None:
        trials = f"{session.trials} of {count_text(session.budget.trials, 'trial')}"
    left = session.time_left()
    parts = [f"{tasks if of > 1 else session.tasks[0].name}: {session.speed_up:.3f} × the rules", trials]
    if isfinite(left):
        seconds = max(0, round(left))
        parts.append(f"{seconds // 60}:{seconds % 60:02d} left")
    return " · ".join(parts)
