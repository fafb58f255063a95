"""graph_drawing: the kernels of a program as a picture: boxes in rows, and lines from makers of values to readers.

A row holds what is equally far from the inputs, by the longest way. A line that passes rows gets a place in each of
them, so that it runs around boxes. Within a row, order and places follow those above and below, a few times back and
forth: the classic way to draw graphs in layers (Sugiyama, Tagawa and Toda, 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Final

from loopwright.model.program import Branch, Copy, Launch, Program, Repeat, Step, Value, View, walk

MOST: Final = 1500  # boxes: a picture of more helps nobody
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 190, 34, 16, 26  # of boxes, and between them
_LANE: Final = 14  # what a line takes in a row that it passes
_SWEEPS: Final = 6


@dataclass(eq=False)
class Box:
    """One kernel, input or output; or, in a row that a line passes, a place for the line."""

    title: str = ""
    note: str = ""
    told: str = ""  # when the pointer rests on it
    kind: str = "kernel"  # input, output, kernel, control, lane
    step: Step | None = None
    row: int = 0
    x: float = 0.0  # of the middle
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)

    @property
    def width(self) -> int:
        return _LANE if self.kind == "lane" else _WIDTH

    @property
    def top(self) -> float:
        return self.row * (_HEIGHT + _DOWN)


def graph_drawing(program: Program, colour: Callable[[Launch], str] | None = None) -> str:
    """An SVG of the program; `colour` gives the fill of a kernel's box."""
    boxes, edges = _boxes(program)
    if not boxes:
        return ""
    if len(boxes) > MOST:
        return f"<p>The graph has {len(boxes):,} kernels; a drawing of more than {MOST:,} would show nothing.</p>"
    rows, paths = _rows(boxes, edges)
    _place(rows)
    return _svg(rows, paths, colour)


# --- boxes and lines --------------------------------------------------------------------------------------------------


def _boxes(program: Program) -> tuple[list[Box], list[tuple[Box, Box]]]:
    """A box for each input, kernel and output, in the order they run, and the lines between them."""
    makers: dict[Value, Box] = {}
    boxes: list[Box] = []
    edges: dict[tuple[Box, Box], None] = {}

    def add(box: Box, reads: Sequence[Value], makes: Sequence[Value]) -> None:
        boxes.append(box)
        for value in reads:
            maker = makers.get(value)
            if maker is not None and maker is not box:
                edges[maker, box] = None
        for value in makes:
            makers[value] = box

    for value in program.inputs:
        add(Box(value.name, _type(value), f"input {value.name}: {_type(value)}", "input"), (), [value])
    for step in program.body:
        if isinstance(step, View):
            if step.of in makers:
                makers[step.value] = makers[step.of]
        elif isinstance(step, Launch):
            name = step.name or step.func.name
            built = ", ".join(_type(value) for value in step.written)
            add(Box(name, built, f"{name}: {step.func.name} makes {built}", "kernel", step), step.inputs, step.written)
        elif isinstance(step, Copy):
            add(Box("copy", _type(step.value), f"a copy of {step.of.name}", "control", step), [step.of], [step.value])
        elif isinstance(step, (Branch, Repeat)):
            inside = [one for one in walk([step]) if isinstance(one, Launch)]
            title = "if" if isinstance(step, Branch) else "loop"
            message = f"{title}: {len(inside)} kernels inside"
            add(Box(title, f"{len(inside)} kernels", message, "control", step), _read_by(step), _made_by(step))
    for value in program.outputs:
        add(Box(value.name, _type(value), f"output {value.name}: {_type(value)}", "output"), [value], ())
    return boxes, list(edges)


def _type(value: Value) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def _read_by(step: Branch | Repeat) -> list[Value]:
    """What the steps inside read, from wherever it comes."""
    result = [value for one in walk([step]) if isinstance(one, Launch) for value in one.inputs]
    if isinstance(step, Branch):
        return [step.condition, *result, *step.then.results, *step.otherwise.results]
    loop: list[object] = [step.count, step.condition, *[one.initial for one in step.carried]]
    loop += [one.whole for one in step.scanned]
    return [*[value for value in loop if isinstance(value, Value)], *result]


def _made_by(step: Branch | Repeat) -> list[Value]:
    if isinstance(step, Branch):
        return list(step.results)
    return [*[one.result for one in step.carried], *[one.whole for one in step.collected]]


# --- rows and places --------------------------------------------------------------------------------------------------


def _rows(boxes: Sequence[Box], edges: Sequence[tuple[Box, Box]]) -> tuple[list[list[Box]], list[list[Box]]]:
    """The boxes by row, with places for the lines that pass; and each line as the boxes it goes through."""
    after: dict[Box, list[Box]] = {}
    for maker, user in edges:
        after.setdefault(maker, []).append(user)
    for box in boxes:  # in the order they run, so makers come before users
        for user in after.get(box, ()):
            user.row = max(user.row, box.row + 1)
    rows: list[list[Box]] = [[] for _ in range(max(box.row for box in boxes) + 1)]
    for box in boxes:
        rows[box.row].append(box)
    paths = []
    for maker, user in edges:
        path = [maker]
        for row in range(maker.row + 1, user.row):
            lane = Box(kind="lane", row=row)
            rows[row].append(lane)
            path.append(lane)
        path.append(user)
        paths.append(path)
        for upper, lower in pairwise(path):
            upper.below.append(lower)
            lower.above.append(upper)
    return rows, paths


def _place(rows: Sequence[list[Box]]) -> None:
    """Give every box its x: near those it is joined with, and not over its neighbours."""
    for row in rows:
        _spread(row, dict.fromkeys(row, 0.0))
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wish = {}
            for box in row:
                others = (box.above if down else box.below) or box.above or box.below
                wish[box] = sum(other.x for other in others) / len(others) if others else box.x
            row.sort(key=lambda box, wish=wish: wish[box])  # type: ignore[misc]
            _spread(row, wish)


def _spread(row: Sequence[Box], wish: Mapping[Box, float]) -> None:
    """Places as near the wishes as their order and widths allow, the row as a whole in its middle."""
    if not row:
        return
    edge = -float("inf")
    for box in row:
        box.x = max(wish[box], edge + box.width / 2)
        edge = box.x + box.width / 2 + _ACROSS
    off = sum(box.x - wish[box] for box in row) / len(row)
    for box in row:
        box.x -= off


# --- the picture ------------------------------------------------------------------------------------------------------

_FILLS: Final = {"input": "#8b949e", "output": "#8b949e", "control": "#b07aa1", "kernel": "#4e79a7"}


def _svg(rows: Sequence[Sequence[Box]], paths: Sequence[Sequence[Box]], colour: Callable[[Launch], str] | None) -> str:
    boxes = [box for row in rows for box in row]
    left = min(box.x - box.width / 2 for box in boxes) - 8
    right = max(box.x + box.width / 2 for box in boxes) + 8
    bottom = len(rows) * (_HEIGHT + _DOWN)
    parts = [_line(path) for path in paths]
    for box in boxes:
        if box.kind == "lane":
            continue
        fill = colour(box.step) if colour is not None and isinstance(box.step, Launch) else _FILLS[box.kind]
        x, y = box.x - _WIDTH / 2, box.top
        parts.append(
            f'<g><title>{escape(box.told)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{_WIDTH}" height="{_HEIGHT}" '
            f'rx="5" fill="{fill}"/>'
            f'<text x="{box.x:.1f}" y="{y + 14:.1f}" class="name">{escape(_short(box.title, 30))}</text>'
            f'<text x="{box.x:.1f}" y="{y + 27:.1f}" class="note">{escape(_short(box.note, 34))}</text></g>'
        )
    width, height = right - left, bottom
    size = f'viewBox="{left:.1f} -4 {width:.1f} {height:.1f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg class="graph" {size} role="img">{"".join(parts)}</svg>'


def _line(path: Sequence[Box]) -> str:
    """A curve from the foot of the first box to the head of the last, through the lanes between."""
    points = [(path[0].x, path[0].top + _HEIGHT)]
    for lane in path[1:-1]:
        points += [(lane.x, lane.top), (lane.x, lane.top + _HEIGHT)]
    points.append((path[-1].x, path[-1].top))
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        text += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return f'<path d="{text}" class="line"/>'


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
