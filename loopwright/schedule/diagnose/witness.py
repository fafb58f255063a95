"""witness_figure: why a step was refused, drawn: two iterations, each a point in a grid, and the cell between them.

    iteration (v_i=0) of C      B[7]               iteration (v_i=7) of B
    ▣□□□□□□□       1 reads →   □□□□□□□▣   ← 2 writes      □□□□□□□▣

Each panel is a small SVG, the last two dimensions of a space with the point in it; where there is no space for all of
it, what is around the point. The page gives the colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final

from loopwright.arith.isl import BudgetExceeded
from loopwright.display.colours import either
from loopwright.ir import BlockRealize, Buffer, BufferLoad, BufferStore, Expr, For, IntImm, pre_order_visit
from loopwright.schedule.errors import ScheduleError, WouldChangeValues, WouldRace
from loopwright.schedule.proof.mismatch import Actor, Mismatch, Witness
from loopwright.schedule.view import View

_WAYS: Final = ("↓", "→")
_CELL: Final = 16  # pixels
_ROWS: Final = 8
_COLUMNS: Final = 12

# The colours of a drawing outside the page, in a notebook.
_INSIDE: Final = ".loopwright .witness"
_FIRST, _SECOND, _SHARED = [
    either(*pair) for pair in (("#0969da", "#79c0ff"), ("#9a6700", "#e3b341"), ("#cf222e", "#ff7b72"))
]
FIGURE_RULES: Final = (
    f"{_INSIDE}{{display:flex;align-items:center;gap:14px;flex-wrap:wrap;margin:10px 0 2px}}",
    f"{_INSIDE} .panel{{margin:0;text-align:center}}{_INSIDE} small{{display:block}}",
    f"{_INSIDE} rect{{fill:none;stroke:{either('#afb8c1', '#6e7681')}}}",
    *[
        f"{_INSIDE} .{role} .point{{fill:{colour};stroke:{colour}}}{_INSIDE} .{role} figcaption{{color:{colour}}}"
        for role, colour in (("first", _FIRST), ("second", _SECOND), ("cell", _SHARED))
    ],
)


@dataclass(frozen=True)
class Panel:
    """A point of a space: an iteration of a block or loop, or a cell of a buffer."""

    role: str  # "first", "cell", "second"
    title: str
    names: Sequence[str]  # of the dimensions
    point: Sequence[int]
    extents: Sequence[int | None]  # where they are known


@dataclass(frozen=True)
class Drawing:
    """Two actors and the cell between them."""

    first: Panel
    deed: str
    cell: Panel
    other_deed: str
    second: Panel


def witness_figure(error: ScheduleError, views: Mapping[str, View]) -> str | None:
    """The HTML of the drawing; None when the error has no witness."""
    drawing = witness_drawing(error, views)
    if drawing is None:
        return None
    parts = [
        _panel_html(drawing.first),
        f'<div class="deed first"><b>1</b> {escape(drawing.deed)} <span class="to">→</span></div>',
        _panel_html(drawing.cell),
        f'<div class="deed second"><span class="from">←</span> <b>2</b> {escape(drawing.other_deed)}</div>',
        _panel_html(drawing.second),
    ]
    return f'<div class="witness">{"".join(parts)}</div>'


def witness_drawing(error: ScheduleError, views: Mapping[str, View]) -> Drawing | None:
    """What there is to be drawn."""
    if isinstance(error, WouldChangeValues) and isinstance(error.mismatch, Mismatch):
        try:
            return _Spaces(views).of_mismatch(error.mismatch.kind, error.mismatch.witness)
        except BudgetExceeded:
            return None
    if isinstance(error, WouldRace) and "iterations" in error.fields:
        return _Spaces(views).of_race(error.fields)
    return None


class _Spaces:
    """How far blocks, loops and buffers go, by their names in the program the step was asked of."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self.axes: dict[str, dict[str, Expr]] = {}
        self.loops: dict[str, Expr] = {}
        self.buffers: dict[str, Buffer] = {}
        for view in views.values():
            for buffer in view.function.argument_buffers():
                self.buffers.setdefault(buffer.name, buffer)
            pre_order_visit(view.function.body, self._note)

    def _note(self, node: object) -> bool:
        if isinstance(node, For):
            self.loops.setdefault(node.loop_var.name, node.extent)
        elif isinstance(node, BlockRealize):
            axes = {axis.var.name: axis.dom.extent for axis in node.block.iter_vars if axis.dom is not None}
            self.axes.setdefault(node.block.name_hint, axes)
        elif isinstance(node, (BufferLoad, BufferStore)):
            self.buffers.setdefault(node.buffer.name, node.buffer)
        return True

    def of_mismatch(self, kind: str, witness: Witness) -> Drawing:
        cell = self._cell(witness.buffer, witness.indices, witness.sizes)
        reader = self._actor("first", witness.reader, witness.sizes)
        reads = "looks at it" if witness.reader.kind == "final" else "reads"
        writes = "updates" if kind != "base" else "writes"
        late = kind == "missing" or (kind == "base" and witness.expected is not None and witness.when == "later")
        other = witness.expected if late else witness.found or witness.expected
        if other is None:
            other = Actor("undefined", "", {})
        second = self._actor("second", other, witness.sizes)
        if late and witness.when == "later":
            return Drawing(reader, reads, cell, f"{writes}, too late", second)
        if late or witness.when == "never":
            return Drawing(reader, reads, cell, f"no longer {writes}", second)
        # What the reader finds was there before it: the writer comes first.
        message = {"twice": f"{writes} twice", "extra": f"{writes} as well"}.get(kind, f"{writes} last")
        return Drawing(replace(second, role="first"), message, cell, reads, replace(reader, role="second"))

    def of_race(self, fields: Mapping[str, Any]) -> Drawing:
        panels = []
        blocks = fields.get("blocks", ("", ""))
        for role, values, block in zip(("first", "second"), fields["iterations"], blocks, strict=True):
            # The loop that would race is drawn from left to right, the innermost of the others from top to bottom.
            names = [*[name for name in values if name != fields["loop"]], fields["loop"]]
            extents = [_number(self.loops.get(name), {}) for name in names]
            title = f"{block or 'iteration'} at {fields['loop']}={values[fields['loop']]}"
            panels.append(Panel(role, title, names, [values[name] for name in names], extents))
        cell = self._cell(fields["buffer"], fields["indices"], {})
        first, second = fields.get("accesses", ("touches it", "touches it"))
        return Drawing(panels[0], first, cell, f"{second}, meanwhile", panels[1])

    def _actor(self, role: str, actor: Actor, sizes: Mapping[str, int]) -> Panel:
        axes = self.axes.get(actor.block, {}) if actor.kind not in ("final", "start", "undefined") else {}
        is_iteration = bool(axes) and all([name in axes for name in actor.iteration])
        names = list(actor.iteration) if is_iteration else []
        point = [actor.iteration[name] for name in names]
        return Panel(role, str(actor), names, point, [_number(axes.get(name), sizes) for name in names])

    def _cell(self, name: str, indices: Sequence[int], sizes: Mapping[str, int]) -> Panel:
        buffer = self.buffers.get(name)
        shape: Sequence[Expr | None] = buffer.shape if buffer is not None else ()
        known = shape if len(shape) == len(indices) else [None] * len(indices)
        title = f"{name}[{', '.join([str(index) for index in indices])}]"
        names = [f"dimension {axis}" for axis in range(len(indices))]
        return Panel("cell", title, names, list(indices), [_number(size, sizes) for size in known])


def _number(extent: Expr | None, sizes: Mapping[str, int]) -> int | None:
    if isinstance(extent, IntImm):
        return extent.value
    return sizes.get(str(extent)) if extent is not None else None


def _panel_html(panel: Panel) -> str:
    ways = zip(panel.names[-2:], _WAYS[-len(panel.names) :], strict=False)
    axes = "" if panel.role == "cell" else " · ".join([f"{name} {way}" for name, way in ways])
    caption = escape(panel.title) + (f"<small>{escape(axes)}</small>" if axes else "")
    return f'<figure class="panel {panel.role}">{_grid_svg(panel)}<figcaption>{caption}</figcaption></figure>'


def _grid_svg(panel: Panel) -> str:
    """The last two dimensions as rows and columns, the point filled."""
    if not panel.point:
        return ""
    rows, row, top = _window(panel, -2, _ROWS)
    columns, column, left = _window(panel, -1, _COLUMNS)
    width, height = columns * _CELL + 2, rows * _CELL + 2
    squares = []
    for y in range(rows):
        for x in range(columns):
            chosen = ' class="point"' if (y, x) == (row, column) else ""
            squares.append(
                f'<rect x="{x * _CELL + 1.5}" y="{y * _CELL + 1.5}" width="{_CELL - 1}" height="{_CELL - 1}"{chosen}/>'
            )
    more = f"<title>{escape(panel.title)}; shown from row {top}, column {left}</title>" if top or left else ""
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(panel.title, quote=True)}">{more}{"".join(squares)}</svg>'
    )


def _window(panel: Panel, dimension: int, most: int) -> tuple[int, int, int]:
    """How many places of a dimension are drawn, which of them is the point, and the first one's number."""
    if len(panel.point) < -dimension:
        return 1, 0, 0
    at = panel.point[dimension]
    extent = panel.extents[dimension]
    count = max(at + 1, extent if extent is not None else at + 2)
    shown = min(count, most)
    first = min(max(at - shown // 2, 0), count - shown)
    return shown, at - first, first
