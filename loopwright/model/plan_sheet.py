"""What a memory plan shows of itself: its size beside the lower bound, its buffers, and a drawing of both."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from loopwright.display.sheet import Lines, Markup, Part, Sheet, Span, Table, heading

if TYPE_CHECKING:
    from loopwright.model.plan import Plan

_WIDTH, _HEIGHT = 900, 300  # of the drawing
_MOST_ROWS: Final = 40
_COLOURS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


def plan_sheet(plan: Plan) -> Sheet:
    """The plan at a glance."""
    lines = str(plan).splitlines()
    parts: list[Part] = [heading(f"Memory plan of {plan.program.name}"), Lines(tuple((Span(line),) for line in lines))]
    rows = plan.rows()
    largest = sorted(rows, key=lambda row: -row[2])[:_MOST_ROWS]
    table = tuple((name, f"{offset:,}", f"{size:,}", f"{first}-{last}") for name, offset, size, first, last in largest)
    parts += [Markup(drawing(plan)), Table(("buffer", "offset", "bytes", "steps"), table)]
    return Sheet(*parts)


def drawing(plan: Plan) -> str:
    """An SVG of the arena: steps from left to right, offsets from bottom to top, a rectangle for each buffer."""
    rows = plan.rows()
    if not rows or plan.peak == 0:
        return ""
    steps = max(row[4] for row in rows) + 1
    shapes = []
    for number, (name, offset, size, first, last) in enumerate(rows):
        x, width = _WIDTH * first / steps, _WIDTH * (last - first + 1) / steps
        height = _HEIGHT * size / plan.peak
        y = _HEIGHT - _HEIGHT * offset / plan.peak - height
        message = escape(f"{name}: {size:,} bytes at {offset:,}, steps {first} to {last}")
        shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{_COLOURS[number % len(_COLOURS)]}" fill-opacity="0.8" stroke="#8888" stroke-width="0.5">'
            f"<title>{message}</title></rect>"
        )
    bound = _HEIGHT - _HEIGHT * plan.lower_bound / plan.peak
    shapes.append(f'<line x1="0" x2="{_WIDTH}" y1="{bound:.1f}" y2="{bound:.1f}" stroke="#d00" stroke-dasharray="4"/>')
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" role="img">{"".join(shapes)}</svg>'
