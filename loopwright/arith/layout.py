"""Layouts by letters: `NCHW16c` says in which order the axes of an array lie, and which of them are split.

An upper-case letter is a whole axis; a lower-case one with a number is its inner part of that size: in `NCHW16c`
channel 37 is at C = 2, c = 5. A bijective layout takes indices and shapes from one layout to another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from loopwright.arith.analyzer import Analyzer
from loopwright.ir import Expr, Node, Range, Var, as_expr, as_exprs, const, node, substitute
from loopwright.runtime.errors import LoopwrightError


class BadLayout(LoopwrightError, ValueError):
    """A text that is no layout, or two layouts of different axes.

    A layout names each axis once by an upper-case letter, and after it its parts by a size and the same letter in
    lower case: `NCHW`, `NCHW16c`, `OIHW4i16o4i`.

    For example:

        from loopwright import tir

        tir.layout("NCHW16x")
    """

    code = "LW0908"

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"layout {text!r}: {problem}", hint='layouts look like "NCHW" or "NCHW16c"')


class Axis(NamedTuple):
    """One letter of a layout; `factor` is 0 for a whole axis."""

    name: str
    factor: int


@node
class Layout(Node):
    """The order of axes, and their split parts."""

    name: str

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The letters in order."""
        return _axes(self.name)

    def __len__(self) -> int:
        return len(self.axes)

    def __contains__(self, axis: object) -> bool:
        return any(own.name == axis for own in self.axes)

    def __getitem__(self, index: int) -> str:
        return self.axes[index].name

    def index_of(self, axis: str) -> int:
        """The place of an axis, or -1."""
        return next((index for index, own in enumerate(self.axes) if own.name == axis), -1)

    def factor_of(self, axis: str) -> int:
        """The size of the split part of an axis, given by either letter; -1 when it has none."""
        total, result = 1, False
        for own in self.axes:
            if own.factor and own.name == axis.lower():
                total, result = total * own.factor, True
        return total if result else -1

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name!r})"


def _axes(text: str) -> tuple[Axis, ...]:
    result: list[Axis] = []
    end = 0
    for match in re.finditer(r"([A-Z])|(\d+)([a-z])", text):
        if match.start() != end:
            break
        end = match.end()
        if match[1]:
            if Axis(match[1], 0) in result:
                raise BadLayout(text, f"axis {match[1]} appears twice")
            result.append(Axis(match[1], 0))
        else:
            if int(match[2]) == 0:
                raise BadLayout(text, f"the part {match[3]} has size 0")
            result.append(Axis(match[3], int(match[2])))
    if end != len(text):
        raise BadLayout(text, f"{text[end:]!r} is neither an axis nor a size with its axis")
    for axis in result:
        if axis.factor and Axis(axis.name.upper(), 0) not in result:
            raise BadLayout(text, f"the part {axis.name} has no axis {axis.name.upper()}")
    return tuple(result)


def layout(layout_str: str) -> Layout:
    """The layout that the text says; `layout("NCHW16c")`."""
    if not isinstance(layout_str, str):
        raise BadLayout(str(layout_str), f"a layout is a text, not {type(layout_str).__name__}")
    _axes(layout_str)
    return Layout(layout_str)


@node
class BijectiveLayout(Node):
    """Indices and shapes of one layout in terms of another."""

    src_layout: Layout
    dst_layout: Layout

    def forward_index(self, index: object) -> list[Expr]:
        """The indices in the second layout of the element at `index` in the first."""
        return _map_index(self.src_layout, self.dst_layout, as_exprs(_sequence(index)))

    def backward_index(self, index: object) -> list[Expr]:
        """The indices in the first layout of the element at `index` in the second."""
        return _map_index(self.dst_layout, self.src_layout, as_exprs(_sequence(index)))

    def forward_shape(self, shape: object) -> list[Expr]:
        """The shape in the second layout of an array of `shape` in the first; a last part may be padding."""
        return _map_shape(self.src_layout, self.dst_layout, as_exprs(_sequence(shape)))

    def backward_shape(self, shape: object) -> list[Expr]:
        """The shape in the first layout of an array of `shape` in the second."""
        return _map_shape(self.dst_layout, self.src_layout, as_exprs(_sequence(shape)))


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout:
    """The map between two layouts of the same axes."""
    src = src_layout if isinstance(src_layout, Layout) else layout(src_layout)
    dst = dst_layout if isinstance(dst_layout, Layout) else layout(dst_layout)
    mine, others = ({axis.name for axis in one.axes if not axis.factor} for one in (src, dst))
    if mine != others:
        different = ", ".join(sorted(mine ^ others))
        raise BadLayout(dst.name, f"it cannot be reached from {src.name!r}: only one of them has {different}")
    return BijectiveLayout(src, dst)


def _sequence(values: object) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, Sequence) else (values,)


def _check(one: Layout, given: Sequence[Expr]) -> None:
    if len(given) != len(one):
        raise BadLayout(one.name, f"it has {len(one)} axes, but {len(given)} values were given")


def _map_index(src: Layout, dst: Layout, index: Sequence[Expr]) -> list[Expr]:
    _check(src, index)
    facts = Analyzer()
    variables = []
    for axis, value in zip(src.axes, index, strict=True):
        var = Var(axis.name, value.dtype)
        if axis.factor:
            facts.bind(var, Range.from_min_extent(const(0, value.dtype), const(axis.factor, value.dtype)))
        variables.append(var)
    values = dict(zip(variables, index, strict=True))
    whole = {letter: _join(src, letter, variables) for letter in {axis.name.upper() for axis in src.axes}}
    # Parts are known to stay within their size; written with variables that say so, they simplify.
    plain = Analyzer()
    return [plain.simplify(substitute(facts.simplify(e), values)) for e in _split(dst, whole)]


def _join(src: Layout, letter: str, values: Sequence[Expr]) -> Expr:
    """The whole index of an axis from its parts."""
    total: Expr | None = None
    for axis, value in zip(src.axes, values, strict=True):
        if axis.name == letter:
            total = value
    assert total is not None, letter
    for axis, value in zip(src.axes, values, strict=True):
        if axis.name == letter.lower():
            total = total * axis.factor + value
    return total


def _split(dst: Layout, whole: dict[str, Expr]) -> list[Expr]:
    results = []
    for index, axis in enumerate(dst.axes):
        value = whole[axis.name.upper()]
        # A whole axis counts what all its parts hold; a part counts what the later parts hold.
        later = dst.axes if not axis.factor else dst.axes[index + 1 :]
        inner = 1
        for other in later:
            inner *= other.factor if other.name == axis.name.lower() else 1
        value = value // inner if inner != 1 else value
        results.append(value % axis.factor if axis.factor else value)
    return results


def _map_shape(src: Layout, dst: Layout, shape: Sequence[Expr]) -> list[Expr]:
    _check(src, shape)
    facts = Analyzer()
    sizes = {}
    for axis, size in zip(src.axes, shape, strict=True):
        if axis.factor and facts.can_prove(size != axis.factor):
            raise BadLayout(src.name, f"its part {axis.name} has size {axis.factor}, the shape says {size!r}")
        if not axis.factor:
            inner = src.factor_of(axis.name)
            sizes[axis.name] = size * inner if inner > 0 else size
    results = []
    for axis in dst.axes:
        if axis.factor:
            results.append(const(axis.factor, sizes[axis.name.upper()].dtype))
            continue
        inner = dst.factor_of(axis.name)
        size = sizes[axis.name]
        results.append(facts.simplify((size + (inner - 1)) // inner) if inner > 0 else facts.simplify(as_expr(size)))
    return results
