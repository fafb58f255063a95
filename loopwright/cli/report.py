"""report: a compiled model as one HTML page that stands alone: what it is, its graph, its kernels, its memory.

    write_report("report.html", compiled_model, profile=profile, sections=[("Check", "<p>…</p>")])

With a profile, boxes of the graph and rows of the table say how much of the time each kernel takes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.cli.compiled_model import CompiledModel
from loopwright.cli.graph_drawing import graph_drawing
from loopwright.display.page import Html, html_page, table_html
from loopwright.display.quantities import bytes_text, count_text, flops_text, time_text
from loopwright.runtime.together import write_text

if TYPE_CHECKING:
    from loopwright.model.kernel_table import KernelRow
    from loopwright.model.plan import Plan
    from loopwright.model.profile import Profile
    from loopwright.model.program import Launch

_STYLE: Final = """
.graph { display: block; margin: 0 auto }
.graph text { text-anchor: middle; fill: #fff; font: 11px system-ui, sans-serif }
.graph .note { font-size: 9.5px; opacity: .85 } .graph .line { fill: none; stroke: #8b949e; stroke-width: 1.4 }
.plan text { font: 10px system-ui, sans-serif; fill: currentColor }
"""
_COOL, _HOT = (78, 121, 167), (200, 60, 50)
_PLAN_WIDTH, _PLAN_HEIGHT = 1000, 340
_COLOURS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


def write_report(
    path: str | os.PathLike[str],
    result: CompiledModel,
    *,
    profile: Profile | None = None,
    sections: Sequence[tuple[str, str]] = (),
    title: str | None = None,
) -> None:
    """Write the page, whole or not at all; `sections` are headings and the HTML under them, to stand first."""
    write_text(path, report_html(result, profile=profile, sections=sections, title=title))


def report_html(
    result: CompiledModel,
    *,
    profile: Profile | None = None,
    sections: Sequence[tuple[str, str]] = (),
    title: str | None = None,
) -> str:
    """The page."""
    name = title or Path(result.model.path).name
    spent = _times(profile)
    parts = [("", _summary(result)), *sections, ("Graph", _graph(result, spent)), ("Kernels", _kernels(result, spent))]
    parts += [("Memory", memory_drawing(result.built.plan)), ("Compiling", _stages(result.seconds))]
    return html_page(name, parts, _STYLE)


def _summary(result: CompiledModel) -> str:
    built = result.built
    rows = built.kernels
    launches = sum(row.calls for row in rows)
    plan = built.plan
    facts = [("target", str(built.compiled.description.target))]
    facts += [("input", str(port)) for port in result.interface.inputs]
    facts += [("output", str(port)) for port in result.interface.outputs]
    facts.append(("kernels", f"{count_text(launches, 'launch', 'launches')} of {count_text(len(rows), 'kernel')}"))
    work = [row.flops * row.calls for row in rows if row.flops is not None]
    if len(work) == len(rows):
        facts.append(("arithmetic", f"{flops_text(sum(work))} a run"))
    facts.append(("weights", bytes_text(plan.constant_bytes)))
    facts.append(("values", f"{bytes_text(plan.peak)}; no plan takes less than {bytes_text(plan.lower_bound)}"))
    facts.append(("code", bytes_text(sum(row.code_bytes for row in rows))))
    facts.append(("compiled in", time_text(sum(result.seconds.values()))))
    facts.append(("proved", "every schedule step" if built.compiled.description.proved else "not every schedule step"))
    return table_html(("", ""), facts)


def _times(profile: Profile | None) -> dict[Launch, float]:
    """Seconds of a run by launch."""
    if profile is None:
        return {}
    return {row.launch: row.seconds * row.calls for row in profile.rows}


def _graph(result: CompiledModel, spent: Mapping[Launch, float]) -> str:
    most = max(spent.values(), default=0.0)

    def colour(launch: Launch) -> str:
        share = (spent.get(launch, 0.0) / most) if most else 0.0
        mixed = [round(cool + (hot - cool) * share**0.5) for cool, hot in zip(_COOL, _HOT, strict=True)]
        return "#" + "".join(f"{part:02x}" for part in mixed)

    note = "The redder a box, the more of the time it takes. " if spent else ""
    message = f'<p class="faint">{note}Each box is one call of a kernel; rest on it for more.</p>'
    return f'{message}<div class="frame">{graph_drawing(result.program, colour)}</div>'


def _kernels(result: CompiledModel, spent: Mapping[Launch, float]) -> str:
    """The kernels, those that take most first; each with the program that was compiled."""
    launches: dict[str, list[Launch]] = {}
    for launch, kernel in result.built.compiled.launches.items():
        launches.setdefault(kernel.symbol, []).append(launch)
    total = sum(spent.values()) or 1.0

    def seconds(row: KernelRow) -> float:
        return sum(spent.get(launch, 0.0) for launch in launches[row.symbol])

    def work(row: KernelRow) -> float:
        return float(row.flops or 0) * int(row.calls)

    rows = []
    for row in sorted(result.built.kernels, key=lambda row: (-seconds(row), -work(row))):
        took = seconds(row)
        users = ", ".join(dict.fromkeys(launch.name or launch.func.name for launch in launches[row.symbol]))
        shown = Html(
            f"<details><summary>{escape(row.launch.func.name)}</summary>"
            f'<p class="faint">{escape(users)}</p><pre>{escape(row.text)}</pre></details>'
        )
        cells = [shown, str(row.calls), "" if row.flops is None else flops_text(row.flops), bytes_text(row.code_bytes)]
        if spent:
            rate = f"{work(row) / took / 1e9:.1f}" if took and row.flops else ""
            bar = Html(f'<div class="bar" style="width: {100 * took / total:.1f}%"></div>')
            cells += [time_text(took) if took else "", f"{took / total:.1%}", rate, bar]
        rows.append(cells)
    columns = ["kernel", "calls", "one call", "code"]
    columns += ["time of a run", "share", "GFLOP/s", ""] if spent else []
    return table_html(columns, rows, (1, 2, 3, 4, 5, 6))


def memory_drawing(plan: Plan) -> str:
    """The arena over time: a rectangle for each buffer, from the step that first uses it to the last."""
    words = "".join(f"<p>{escape(line.strip())}</p>" for line in str(plan).splitlines())
    rows = plan.rows()
    if not rows or not plan.peak:
        return words
    steps = max(row[4] for row in rows) + 1
    left, bottom = 70, 24
    across, up = (_PLAN_WIDTH - left) / steps, (_PLAN_HEIGHT - bottom) / plan.peak
    floor = _PLAN_HEIGHT - bottom
    parts = []
    for number, (name, offset, size, first, last) in enumerate(rows):
        x, width = left + across * first, across * (last - first + 1)
        height = max(up * size, 0.5)
        y = floor - up * offset - height
        message = escape(f"{name}: {bytes_text(size)} at {offset:,}, steps {first} to {last}")
        fill = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" stroke="#8888" '
            f'stroke-width="0.5" fill="{fill}" fill-opacity="0.85"><title>{message}</title></rect>'
        )
    bound = floor - up * plan.lower_bound
    parts.append(
        f'<line x1="{left}" x2="{_PLAN_WIDTH}" y1="{bound:.1f}" y2="{bound:.1f}" stroke="#d33" stroke-dasharray="5 4">'
        f"<title>the lower bound: {bytes_text(plan.lower_bound)}</title></line>"
    )
    for share in (0, 0.5, 1):
        y = floor - up * plan.peak * share
        label = bytes_text(round(plan.peak * share))
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    parts.append(f'<text x="{left}" y="{_PLAN_HEIGHT - 6}">step 0</text>')
    parts.append(f'<text x="{_PLAN_WIDTH}" y="{_PLAN_HEIGHT - 6}" text-anchor="end">step {steps - 1}</text>')
    view = f"0 -6 {_PLAN_WIDTH} {_PLAN_HEIGHT + 6}"
    return f'{words}<svg class="plan" viewBox="{view}" width="100%" role="img">{"".join(parts)}</svg>'


def _stages(seconds: Mapping[str, float]) -> str:
    longest = max(seconds.values(), default=0.0) or 1.0
    rows = [
        (stage, time_text(spent), Html(f'<div class="bar" style="width: {100 * spent / longest:.1f}%"></div>'))
        for stage, spent in seconds.items()
    ]
    return table_html(("stage", "time", ""), rows, (1,))
