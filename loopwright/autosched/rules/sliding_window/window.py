"""Window: a reduction whose members are the cells under a window that moves over the data.

    out[n, c, y, x] = out[n, c, y, x] + data[n, c, y * 2 + i, x * 2 + j] * weight[c, i, j]

    y moves with taps i, x with taps j, by 2 each; n and c do not move: every one of them has windows of its own

No axis of the reduction is alone in an index of the data: that would be a sum over channels, which is another rule's.
Vectors run *along* the window's own movement (x, in NCHW), so that neighbouring lanes share most of their cells; or
*across* it (channels, in NHWC), so that every lane has a window of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loopwright.arith.affine import Part
from loopwright.autosched.facts import Access, Axis, BlockFacts, element_strides
from loopwright.ir import Var

REPEATS: Final = (2, 4, 8)  # how often an element may stand in a vector, one next to the other: vectors hold whole ones


class Movement(NamedTuple):
    """One axis of the result along which the window moves, and the taps that it has there."""

    axis: Axis
    tap: Axis
    stride: int
    dilation: int
    dimension: int  # of the data
    first: int  # the cell under the first tap of the first place

    def reach(self, locations: int) -> int:
        """How many cells of the data so many neighbouring places of the window see."""
        assert self.tap.extent is not None
        return (locations - 1) * self.stride + (self.tap.extent - 1) * self.dilation + 1

    def cells(self, locations: int) -> int:
        """How many of those they read: the taps of a dilated window leave some out."""
        taps = range(self.tap.extent or 1)
        return len({place * self.stride + tap * self.dilation for place in range(locations) for tap in taps})


@dataclass(frozen=True)
class Window:
    """A window over `data`, and the other operands (weights), which stand still while it moves."""

    facts: BlockFacts
    data: Access
    weights: tuple[Access, ...]
    movements: tuple[Movement, ...]  # outermost first
    lane: Axis  # the axis of the vectors

    @property
    def is_along(self) -> bool:
        """Whether vectors run along the movement of the window."""
        return self.movements[-1].axis is self.lane

    @property
    def taps(self) -> int:
        """How many cells a window has."""
        total = self.facts.extent(self.facts.reduce)
        assert total is not None
        return total

    @property
    def lane_extent(self) -> int:
        """How many results lie along the vectors."""
        assert self.lane.extent is not None
        return self.lane.extent

    @property
    def rows(self) -> int:
        """How many places there are down (see there)."""
        return (self.down.axis.extent or 1) if self.down is not None else 1

    @property
    def down(self) -> Movement | None:
        """The movement of which some places are computed together: the one above the vectors', or the last one."""
        if not self.is_along:
            return self.movements[-1]
        return self.movements[-2] if len(self.movements) > 1 else None

    @property
    def deep(self) -> tuple[Movement, ...]:
        """The movements around that one."""
        return self.movements[: -2 if self.is_along else -1]

    @property
    def outer(self) -> tuple[Axis, ...]:
        """The axes that neither move the window nor are the vectors'."""
        own = {movement.axis for movement in self.movements} | {self.lane}
        return tuple(axis for axis in self.facts.spatial if axis not in own)

    @property
    def repeated(self) -> tuple[Axis, ...]:
        """Those of them for which the data is the same: output channels of one input channel."""
        return tuple(axis for axis in self.outer if axis.extent != 1 and not self.data.uses(axis.var))


def window_of(facts: BlockFacts) -> Window | None:
    """The window that a block moves over data; None when it moves none, or stands still."""
    if not facts.is_reduction or facts.reads_itself or facts.combined is None:
        return None
    if list(facts.write.indices) != [axis.var for axis in facts.spatial]:
        return None
    if facts.extent(facts.reduce) is None or any(axis.extent == 0 for axis in facts.axes):
        return None
    # An axis of the reduction that has one value may be a tap, or the only channel of a group.
    several = [axis for axis in facts.reduce if axis.extent != 1]
    single = [axis for axis in facts.reduce if axis.extent == 1]
    choices = [facts.reduce, several, *[[other for other in facts.reduce if other is not axis] for axis in single]]
    windows = (_with_taps(facts, taps) for taps in choices if taps)
    return next((window for window in windows if window is not None), None)


def _with_taps(facts: BlockFacts, taps: Sequence[Axis]) -> Window | None:
    by_var = {axis.var: axis for axis in facts.axes}
    result = [(access, _movements(access, by_var, taps)) for access in facts.reads]
    moving = [(access, movements) for access, movements in result if movements]
    if len(moving) != 1:
        return None
    data, movements = moving[0]
    moved = {movement.axis.var for movement in movements}
    weights = tuple(access for access, _ in result if access is not data)
    if any(weight.buffer is data.buffer or any(weight.uses(var) for var in moved) for weight in weights):
        return None
    if all(movement.axis.extent == 1 for movement in movements):
        return None  # one place: a reduction like any other
    lane = next((axis for axis in reversed(facts.spatial) if axis.extent != 1), None)
    if lane is None or lane.extent is None or facts.write.stride(lane.var) != 1:
        return None
    order = [axis.var for axis in facts.spatial]
    ordered = tuple(sorted(movements, key=lambda movement: order.index(movement.axis.var)))
    last = next(movement for movement in reversed(ordered) if movement.axis.extent != 1)
    if last is not ordered[-1] if lane.var in moved else not _walks(data, lane, facts):
        return None
    return Window(facts, data, weights, ordered, lane)


def _walks(data: Access, lane: Axis, facts: BlockFacts) -> bool:
    """Whether lanes of the data are neighbours, or each several times there: `c`, `c // 2`."""
    if data.stride(lane.var) == 1:
        return True
    *others, form = data.forms
    if form is None or any(other is None or lane.var in other.variables() for other in others):
        return False
    still = {axis.var for axis in facts.axes if axis.extent == 1}
    terms = {term: step for term, step in form.terms.items() if term not in still}
    part = next(iter(terms), None)
    if len(terms) != 1 or not isinstance(part, Part) or part.op != "floor" or part.divisor not in REPEATS:
        return False
    inside = part.args[0]
    is_whole = terms[part] == 1 and not form.const and not inside.const and inside.terms == {lane.var: 1}
    return is_whole and element_strides(data.buffer)[-1] == 1


def _movements(access: Access, axes: dict[Var, Axis], taps: Sequence[Axis]) -> list[Movement]:
    """How the window moves over the cells of `access`; empty unless each of `taps` is one of it, and nothing else."""
    result: list[Movement] = []
    for dimension, form in enumerate(access.forms):
        if form is None:
            return []
        own = [axis for axis in taps if axis.var in form.variables()]
        if not own:
            continue
        locations = [axes[var] for var in form.variables() if var in axes and not axes[var].is_reduce]
        if len(own) != 1 or len(locations) != 1 or len(form.terms) != 2 or form.parts():
            return []
        stride, dilation = form.terms[locations[0].var], form.terms[own[0].var]
        if stride < 1 or dilation < 1 or locations[0].extent is None:
            return []
        result.append(Movement(locations[0], own[0], stride, dilation, dimension, form.const))
    is_whole = [movement.tap for movement in result] == list(dict.fromkeys(movement.tap for movement in result))
    is_whole = is_whole and {movement.tap for movement in result} == set(taps)
    return result if is_whole and len({movement.axis for movement in result}) == len(result) else []
