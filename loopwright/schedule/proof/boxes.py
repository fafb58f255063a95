"""Boxes: the values that the axes of a block take while the loops around stand still, seen from coefficients alone.

    for l in range(4):                        while l stands still, vi takes the 6 values from l * 6 on,
        for i, j in T.grid(3, 2):             but none above 19
            with T.block("B"):
                vi = T.axis.spatial(20, l * 6 + i * 2 + j)
                T.where(l * 6 + i * 2 + j < 20)
                B[vi // 4, vi % 4] = …        the cell tells vi back

A box has no gaps: each loop is a digit of one axis, and its stride is the number of values below it. Different axes
have different loops, so all combinations occur. Quick ways to *yes* (`single_writer.py`): what is no box may still be
fine.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.accesses import Access
from loopwright.analysis.instances import Loop
from loopwright.analysis.ranges import Ranges
from loopwright.arith.affine import AllOf, Condition, Form, Ge, Part
from loopwright.arith.linear import add_into
from loopwright.ir import FloorDiv, FloorMod, IntImm, Var


class Box(NamedTuple):
    """The values of an axis while the loops around stand still: `size` of them from `low` on, but none above `limit`.

    `digits` are the loops that count through them, with their strides, the fastest first.
    """

    low: Form
    size: int
    limit: int | None
    digits: tuple[tuple[int, Var], ...]


class Boxes(NamedTuple):
    """The values of all axes."""

    axes: Sequence[Box]
    idle: bool  # a loop counts through no axis: the same values come again


class CellIndex(NamedTuple):
    """How a store finds its cell from the axes of its block."""

    whole: dict[int, int]  # axis → the dimension that it is
    parts: dict[int, tuple[int, int, int]]  # axis → the dimensions that are `axis // by` and `axis % by`, and by
    numbers: dict[int, int]  # dimension → the literal that it is

    def axes(self) -> set[int]:
        """The axes that the cell tells."""
        return {*self.whole, *self.parts}

    def place(self, axis: int) -> tuple[int, ...]:
        """Where in the cell an axis is."""
        return (self.whole[axis],) if axis in self.whole else self.parts[axis]

    @property
    def key(self) -> Hashable:
        """Equal for stores that find their cells alike."""
        return tuple([frozenset(part.items()) for part in self])


def boxes_of(access: Access, depth: int, ranges: Ranges) -> Boxes | None:
    """The values that a block's axes take while the outermost `depth` loops stand still; None: they are no box."""
    location = access.instance.place
    counts: dict[Var, int] = {}
    for loop in access.loops[depth:]:
        low, high = loop.low, loop.high
        if low is None or high is None or low.terms or high.terms or low.const or high.const < 0:
            return None
        counts[loop.var] = high.const + 1
    idle = {var for var, count in counts.items() if count > 1}
    still = {loop.var: loop.low.const for loop in access.loops if loop.low is not None and is_single(loop)}
    values = [_without(value, still) for value in location.values if value is not None]
    boxes = [box for value in values for box in [_box(value, counts, idle)] if box is not None]
    if len(boxes) < len(location.values):
        return None
    for condition in _all_of(access.guards):
        if condition is None:
            return None
        if ranges.is_at_most(condition.negated(), 0, access.loops):
            continue  # always so
        for k, value in enumerate(values):
            limit = _limit(_without(condition, still), value, boxes[k])
            if limit is not None:
                boxes[k] = boxes[k]._replace(limit=limit)
                break
        else:
            return None
    return Boxes(boxes, bool(idle))


def is_single(loop: Loop) -> bool:
    """Whether the loop has one iteration, of a value that is known."""
    low, high = loop.low, loop.high
    return low is not None and high is not None and not low.terms and not high.terms and low.const == high.const


def _without(form: Form, still: Mapping[Var, int]) -> Form:
    """The form with numbers for variables that have one value only."""
    terms = {term: k for term, k in form.terms.items() if term not in still}
    const = form.const + sum([k * still.get(term, 0) for term, k in form.terms.items() if isinstance(term, Var)])
    return Form(terms, const)


def _box(value: Form, counts: Mapping[Var, int], idle: set[Var]) -> Box | None:
    """The values of one axis; the loops that count through them are taken out of `idle`."""
    around: dict[Var | Part, int] = {}
    digits: list[tuple[int, Var]] = []
    for term, stride in value.terms.items():
        if isinstance(term, Part):
            if not term.variables.isdisjoint(counts):
                return None
            around[term] = stride
        elif term not in counts:
            around[term] = stride
        else:
            digits.append((stride, term))
    digits.sort(key=lambda digit: digit[0])
    size = 1
    for stride, var in digits:
        if stride != size or var not in idle:
            return None
        idle.remove(var)
        size *= counts[var]
    return Box(Form(around, value.const), size, None, tuple(digits))


def _limit(condition: Form, value: Form, box: Box) -> int | None:
    """The greatest value of an axis for which the condition holds; None when it is not of that kind.

    It is `limit - value`, or, with `value = step * quotient + rest` and the rest counted by the faster digits,
    `limit - quotient`: a tile is whole or is not there.
    """
    for step in {1, *[stride for stride, _ in box.digits], box.size}:
        rest = value.plus(condition, step)
        if rest.terms == {var: stride for stride, var in box.digits if stride < step}:
            limit = rest.const + step - 1
            return limit if box.limit is None else min(limit, box.limit)
    return None


def _all_of(conditions: Sequence[Condition]) -> list[Form | None]:
    """The forms that must not be negative; None among them for a condition of another kind."""
    result: list[Form | None] = []
    for item in conditions:
        if isinstance(item, AllOf):
            result += _all_of(item.items)
        else:
            result.append(item.form if isinstance(item, Ge) else None)
    return result


def cell_index(store: Access) -> CellIndex | None:
    """How a store finds its cell from the axes of its block; None when the cell does not tell them back."""
    location = store.instance.place
    assert location.block is not None
    axes = {axis.var: k for k, axis in enumerate(location.block.iter_vars)}
    index = CellIndex({}, {}, {})
    quotients: dict[tuple[int, int], int] = {}
    remainders: dict[tuple[int, int], int] = {}
    for dimension, expr in enumerate(store.node.indices):
        if isinstance(expr, IntImm):
            index.numbers[dimension] = expr.value
        elif isinstance(expr, Var) and expr in axes and axes[expr] not in index.whole:
            index.whole[axes[expr]] = dimension
        elif isinstance(expr, (FloorDiv, FloorMod)) and isinstance(expr.a, Var) and isinstance(expr.b, IntImm):
            result = quotients if isinstance(expr, FloorDiv) else remainders
            part = axes.get(expr.a, -1), expr.b.value
            if part in result or part[0] < 0 or part[1] <= 0:
                return None
            result[part] = dimension
        else:
            return None
    if quotients.keys() != remainders.keys():
        return None
    for (axis, by), dimension in quotients.items():
        if axis in index.axes():
            return None
        index.parts[axis] = dimension, remainders[axis, by], by
    return index


def joined(form: Form) -> Form:
    """The form with `d * floor(x / d) + x mod d` put together to x."""
    for term, k in form.terms.items():
        if not isinstance(term, Part) or term.op != "mod":
            continue
        for other, step in form.terms.items():
            if not isinstance(other, Part) or other.op != "floor" or other.divisor != term.divisor:
                continue
            if step == k * term.divisor and other.args[0].key == term.args[0].key:
                terms = {item: c for item, c in form.terms.items() if item is not term and item is not other}
                add_into(terms, term.args[0].terms, k)
                return joined(Form(terms, form.const + k * term.args[0].const))
    return form
