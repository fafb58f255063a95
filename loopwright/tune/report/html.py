"""html: a search as one page that stands alone: the whole, then each task with its curve, its limit and its choices."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite
from typing import Final

from loopwright.display.page import Html, html_page, table_html
from loopwright.display.quantities import count_text, flops_text, time_text
from loopwright.tune.report.curve import STYLE, curve_drawing
from loopwright.tune.report.differences import Difference
from loopwright.tune.report.summary import Summary, TaskSummary

_OPEN: Final = 6  # tasks whose details are unfolded
_STYLE: Final = "details { margin: 1.2rem 0 } summary { font-weight: 600 }\n"


def report_html(summary: Summary, title: str = "Tuning") -> str:
    """The page."""
    parts = [("", _whole(summary)), ("Tasks", _tasks(summary.tasks))]
    details = "\n".join([_task(task, number < _OPEN) for number, task in enumerate(summary.tasks)])
    parts.append(("Task by task", details))
    return html_page(title, parts, STYLE + _STYLE)


def _whole(summary: Summary) -> str:
    settings = summary.settings
    trials = sum([len(task.curve) for task in summary.tasks])
    failed = sum([count for task in summary.tasks for _, count, _ in task.failures])
    same = sum([task.duplicates for task in summary.tasks])
    spent = f"{count_text(trials, 'trial')} in {time_text(summary.spent)}"
    spent += f"; {failed} failed, {same} were programs seen before" if failed or same else ""
    facts = [
        ("time by rule", time_text(summary.before)),
        ("time now", f"{time_text(summary.after)}: {summary.speed_up:.3f} × the rules"),
        ("geometric mean of the speed-ups", f"{summary.geomean:.3f} ×"),
        ("tasks", f"{len(summary.tasks)}" + (f"; {summary.waiting} had no turn" if summary.waiting else "")),
        ("trials", spent + ("; interrupted" if summary.is_interrupted else "")),
        ("measured", f"{settings.get('threads')} threads, caches {settings.get('cache')}, seed {summary.seed}"),
        ("target", summary.target),
    ]
    note = "Times are those of one call of each kernel, as often as it runs; not of what a model does between them."
    return table_html(("", ""), facts) + f'<p class="faint">{note}</p>'


def _tasks(tasks: Sequence[TaskSummary]) -> str:
    rows = []
    for task in tasks:
        bar = Html(f'<div class="bar" style="width: {100 * task.share:.1f}%"></div>')
        found = "the rule stands" if task.is_rule else f"{task.speed_up:.2f} ×"
        times = [_seconds(task.rule_seconds), _seconds(task.seconds)]
        row = [task.name, f"{task.weight:g}", f"{task.share:.1%}", *times, found, str(task.trials), f"{task.noise:.1%}"]
        rows.append([*row, bar])
    columns = ("task", "calls", "share", "by rule", "now", "speed-up", "trials", "noise", "")
    return table_html(columns, rows, (1, 2, 3, 4, 5, 6, 7))


def _task(task: TaskSummary, is_open: bool) -> str:
    found = "the rule stands" if task.is_rule else f"{task.speed_up:.2f} × the rule"
    parts = [f"<summary>{escape(task.name)}: {found}</summary>", curve_drawing(task.curve), _limit(task)]
    if task.differences:
        parts.append(_differences(task.differences))
    elif not task.is_rule:
        parts.append("<p>The best schedule is explained in the same words as the rule's.</p>")
    if task.failures:
        rows = [(kind, str(count), message) for kind, count, message in task.failures]
        parts.append(table_html(("failures", "", "for example"), rows, (1,)))
    parts += [f"<p>note: {escape(note)}</p>" for note in task.notes]
    if isfinite(task.noise) and task.noise:
        parts.append(f'<p class="faint">noise of an A/A race: {task.noise:.1%}; workload {escape(task.key)}</p>')
    return f"<details{' open' if is_open else ''}>{''.join(parts)}</details>"


def _limit(task: TaskSummary) -> str:
    """The roofline before and after: what was measured, and what share of the limit that is by the cost model."""
    limit = task.limit
    rows = []
    for name, seconds, share in (
        ("the rule", task.rule_seconds, None if limit is None else limit.rule),
        ("the best", task.seconds, None if limit is None else limit.best),
    ):
        rate = task.rate(seconds)
        rows.append(
            (
                name,
                _seconds(seconds),
                "" if rate is None else f"{flops_text(rate)}/s",
                "" if share is None else f"{share:.0%}",
            )
        )
    bound = "" if limit is None else f", bound by {limit.bound}"
    table = table_html(("", "one call", "arithmetic", f"of the roofline{bound}"), rows, (1, 2, 3))
    above = limit is not None and limit.best > 1
    words = "The roofline is the cost model's, on what it expects of the rule's schedule."
    words += " Beyond 100 % its expectation was too high." if above else ""
    return table + ("" if limit is None else f'<p class="faint">{words}</p>')


def _differences(found: Sequence[Difference]) -> str:
    rows = [(one.blocks, one.rule or "–", one.best or "–") for one in found]
    return table_html(("blocks or decision", "the rule", "the best"), rows)


def _seconds(seconds: float) -> str:
    return time_text(seconds) if isfinite(seconds) else "not measured"
