"""text: the summary of a search as text: a line for each task, what it gained, and the whole."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from loopwright.display.quantities import count_text, time_text
from loopwright.tune.report.summary import Summary, TaskSummary

_FIGURES: Final = re.compile(r"[0-9.]+")
_MOST: Final = 20  # tasks, where there are more


def as_text(summary: Summary, most: int = _MOST) -> str:
    """The tasks that take most time, and all of them together."""
    shown = summary.tasks[:most]
    width = max([len(task.name) for task in shown], default=0)
    lines = [f"{task.name.ljust(width)}  {_gain(task)}" for task in shown]
    if len(summary.tasks) > most:
        lines.append(f"and {count_text(len(summary.tasks) - most, 'task')} more")
    lines += [f"note: {line}" for line in notes(summary)]
    if summary.waiting:
        lines.append(f"{count_text(summary.waiting, 'task')} had no turn: give more trials or minutes")
    lines.append(whole(summary))
    return "\n".join(lines)


def notes(summary: Summary) -> list[str]:
    """The notes on tasks; those that differ in figures alone are one line."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for task in summary.tasks:
        for note in task.notes:
            kinds.setdefault(kind_of(note), []).append((task.name, note))
    lines = []
    for found in kinds.values():
        name, note = found[0]
        tasks = dict.fromkeys([other for other, _ in found[1:]])
        lines.append(f"{name}: {note}" + (f"; likewise {count_text(len(tasks), 'more task')}" if tasks else ""))
    return lines


def kind_of(note: str) -> str:
    """A note without its figures."""
    return _FIGURES.sub("#", note)


def whole(summary: Summary) -> str:
    """All tasks together, in a line."""
    spent = f"{count_text(summary.trials, 'trial')} in {time_text(summary.spent)}"
    if not summary.before:
        return f"nothing was measured: {spent}"
    times = f"{time_text(summary.before)} → {time_text(summary.after)}"
    return f"all together: {summary.speed_up:.3f} × the rules ({times}), {spent}"


def _gain(task: TaskSummary) -> str:
    if not isfinite(task.rule_seconds):
        return f"not measured, {count_text(task.trials, 'trial')}"
    found = "the rule stands" if task.is_rule else f"{task.speed_up:.2f} × the rule"
    return f"{found} ({time_text(task.seconds)}), {count_text(task.trials, 'trial')}, noise {task.noise:.1%}"
