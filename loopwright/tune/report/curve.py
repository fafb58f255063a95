"""curve: the speed of the best schedule against trials as a drawing (SVG), with every trial as a dot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

_WIDTH, _HEIGHT = 640, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 12, 26
_LEAST_SPAN: Final = 0.1  # of the vertical axis, in speeds of the rule
_SLOWEST: Final = 0.5  # slower trials stand at the lower edge

STYLE: Final = """
.curve text { font: 10px system-ui, sans-serif; fill: currentColor }
.curve .axis { stroke: #8888 } .curve .rule { stroke: #d33; stroke-dasharray: 5 4 }
.curve .best { fill: none; stroke: #4e79a7; stroke-width: 2 } .curve .trial { fill: #4e79a7; opacity: .45 }
.curve .failed { stroke: #e15759; stroke-width: 1.3 }
"""


def curve_drawing(points: Sequence[tuple[int, float, float]]) -> str:
    """The drawing; a point is a trial's number, its speed (0 where it failed) and that of the best so far."""
    if len(points) < 2:
        return ""
    last = max(1, points[-1][0])
    speeds = [max(_SLOWEST, speed) for _, speed, _ in points if speed > 0] + [best for *_, best in points] + [1.0]
    low, high = min(speeds), max(speeds)
    spare = max(_LEAST_SPAN - (high - low), 0.05 * (high - low))
    low, high = low - spare / 2, high + spare / 2

    def across(number: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * number / last

    def up(speed: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (max(low, speed) - low) / (high - low)

    floor = _HEIGHT - _BOTTOM
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{floor}" y2="{floor}"/>']
    for speed in _marks(low, high):
        parts.append(f'<text x="{_LEFT - 6}" y="{up(speed) + 4:.1f}" text-anchor="end">{speed:.2f} ×</text>')
    for number in sorted({0, last // 2, last}):
        parts.append(f'<text x="{across(number):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{number}</text>')
    parts.append(
        f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(1):.1f}" y2="{up(1):.1f}">'
        "<title>the rule</title></line>"
    )
    parts += [_trial(number, speed, across(number), up(speed), floor) for number, speed, _ in points]
    steps = [f"M{across(points[0][0]):.1f},{up(points[0][2]):.1f}"]
    steps += [f"H{across(number):.1f}V{up(best):.1f}" for number, _, best in points[1:]]
    parts.append(f'<path class="best" d="{"".join(steps)}"/>')
    label = escape("speed of the best schedule relative to the rule, by trial")
    return (
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _trial(number: int, speed: float, x: float, y: float, floor: float) -> str:
    if speed > 0:
        title = f"<title>trial {number}: {speed:.2f} × the rule</title>"
        return f'<circle class="trial" cx="{x:.1f}" cy="{y:.1f}" r="2.4">{title}</circle>'
    cross = f"M{x - 2.5:.1f},{floor - 7:.1f}l5,5m0,-5l-5,5"
    return f'<path class="failed" d="{cross}"><title>trial {number}: not measured</title></path>'


def _marks(low: float, high: float) -> list[float]:
    """Where the vertical axis gets numbers: the rule, and round ones around it."""
    step = next(step for step in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 1e3) if (high - low) / step <= 6)
    first = round(low / step) * step
    marks = [first + step * number for number in range(8)]
    return [mark for mark in marks if low <= mark <= high]
