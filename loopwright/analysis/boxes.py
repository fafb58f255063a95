"""Boxes: the values that the axes of a block take while the loops around stand still, seen from coefficients alone.

    for l in range(4):                        while l stands still, vi takes the 6 values from l * 6 on,
        for i, j in T.grid(3, 2):             but none above 19
            with T.block("B"):
                vi = T.axis.spatial(20, l * 6 + i * 2 + j)
                T.where(l * 6 + i * 2 + j < 20)
                B[vi // 4, vi % 4] = …        the cell tells vi back

Blocks that each fill a part, as a loop over whole tiles and the one over the rest, fill a box together where one part
begins as the other ends.

A box has no gaps: each loop is a digit of one axis, and its stride is the number of values below it. Different axes
have different loops, so all combinations occur. A fused loop `f` is several digits: of 6 iterations, `f // 3` and
`f % 3` are 2 and 3 values, in all combinations. Quick ways to *yes* (`single_writer.py`): what is no box may still be
fine.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from math import prod
from typing import NamedTuple

from loopwright.analysis.accesses import Access
from loopwright.analysis.instances import Loop, common_depth
from loopwright.analysis.ranges import Ranges
from loopwright.arith.affine import AllOf, Condition, Form, Ge, Part
from loopwright.arith.linear import add_into
from loopwright.ir import Add, Expr, FloorDiv, FloorMod, IntImm, IterVar, Mul, Var


class Digit(NamedTuple):
    """A loop, or a part of a fused one, that counts through the values of an axis."""

    stride: int
    term: Var | Part
    extent: int

    @property
    def var(self) -> Var:
        """The loop."""
        return self.term if isinstance(self.term, Var) else next(iter(self.term.variables))


class Box(NamedTuple):
    """The values of an axis while the loops around stand still: `size` of them from `low` on, but none above `limit`.

    `digits` are the loops that count through them, with their strides, the fastest first.
    """

    low: Form
    size: int
    limit: int | None
    digits: tuple[Digit, ...]


class Boxes(NamedTuple):
    """The values of all axes."""

    axes: Sequence[Box]
    idle: bool  # a loop counts through no axis: the same values come again


class AxisDigit(NamedTuple):
    """In an index `v0 * 12 + v1`, with 12 values of v1: an axis, its stride, and how many values it has."""

    axis: int
    stride: int
    extent: int


class CellIndex(NamedTuple):
    """How a store finds its cell from the axes of its block."""

    whole: dict[int, int]  # axis → the dimension that it is
    parts: dict[int, tuple[int, int, int]]  # axis → the dimensions that are `axis // by` and `axis % by`, and by
    numbers: dict[int, int]  # dimension → the literal that it is
    sums: dict[int, tuple[AxisDigit, ...]]  # dimension → the axes that are its digits, the slowest first

    def axes(self) -> set[int]:
        """The axes that the cell tells."""
        return {*self.whole, *self.parts, *[digit.axis for digits in self.sums.values() for digit in digits]}

    def place(self, axis: int) -> tuple[int, ...]:
        """Where in the cell an axis is."""
        if axis in self.whole:
            return (self.whole[axis],)
        if axis in self.parts:
            return self.parts[axis]
        return next(
            (dimension, digit.stride)
            for dimension, digits in self.sums.items()
            for digit in digits
            if digit.axis == axis
        )

    @property
    def key(self) -> Hashable:
        """Equal for stores that find their cells alike."""
        return tuple([frozenset(part.items()) for part in self])


def boxes_of(access: Access, depth: int, ranges: Ranges) -> Boxes | None:
    """The values that a block's axes take while the outermost `depth` loops stand still; None: they are no box."""
    location = access.instance.place
    counts = _counts(access.loops[depth:])
    if counts is None:
        return None
    still = {loop.var: loop.low.const for loop in access.loops if loop.low is not None and is_single(loop)}
    values = [_without(value, still) for value in location.values if value is not None]
    parts = _parts(values, counts)
    values = [parts.put_in(value) for value in values]
    idle = {term for term, count in parts.counts.items() if count > 1}
    boxes = [box for value in values for box in [_box(value, parts.counts, counts.keys(), idle)] if box is not None]
    if len(boxes) < len(location.values):
        return None
    for condition in _all_of(access.guards):
        if condition is None:
            return None
        if ranges.is_at_most(condition.negated(), 0, access.loops):
            continue  # always so
        for k, value in enumerate(values):
            limit = _limit(parts.put_in(_without(condition, still)), value, boxes[k])
            if limit is not None:
                boxes[k] = boxes[k]._replace(limit=limit)
                break
        else:
            return None
    return Boxes(boxes, bool(idle) or parts.leave_out)


def joined_boxes(accesses: Sequence[Access], depth: int, ranges: Ranges) -> Boxes | None:
    """The values that the axes take in all of several blocks with the same axes; None: they are not seen to be a box.

    The parts are put together while the loops around all blocks stand still; then those of them below `depth` run.
    """
    first = accesses[0]
    shared = min([common_depth(first.instance, other.instance) for other in accesses])
    found = [boxes for access in accesses for boxes in [boxes_of(access, shared, ranges)] if boxes is not None]
    counts = _counts(first.loops[depth:shared])
    if depth > shared or len(found) < len(accesses) or counts is None:
        return None
    inside = _put_together([list(boxes.axes) for boxes in found])
    if inside is None:
        return None
    running, values = set(counts), []
    for box in inside:
        value = box.low
        if box.size > 1:
            count = Var("part")
            counts[count] = box.size
            value = value.plus(Form({count: 1}, 0), 1)
        values.append(value)
    parts = _parts(values, counts)
    values = [parts.put_in(value) for value in values]
    idle = {term for term, count in parts.counts.items() if count > 1}
    axes: list[Box] = []
    for value, part in zip(values, inside, strict=True):
        together = _box(value, parts.counts, running, idle)
        if together is None:
            return None
        axes.append(together._replace(limit=part.limit))
    return Boxes(axes, bool(idle) or parts.leave_out or any([boxes.idle for boxes in found]))


def _put_together(parts: list[list[Box]]) -> list[Box] | None:
    """One box for each axis, of parts that are alike in all axes but one, in which one begins as the other ends."""
    while len(parts) > 1:
        pairs = [(one, other) for one in parts for other in parts if one is not other]
        joins = [(one, other, join) for one, other in pairs for join in [_join(one, other)] if join is not None]
        if not joins:
            return None
        one, other, join = joins[0]
        parts = [join, *[part for part in parts if part is not one and part is not other]]
    return parts[0]


def _join(one: Sequence[Box], other: Sequence[Box]) -> list[Box] | None:
    """Both parts, where `other` goes on in one axis as `one` ends."""
    if len(one) != len(other):
        return None
    result: list[Box] = []
    is_joined = False
    for a, b in zip(one, other, strict=True):
        gap = b.low.plus(a.low, -1)
        if gap.terms:
            return None
        if not gap.const and a.size == b.size and a.limit == b.limit:
            result.append(a)
        elif not is_joined and a.limit is None and gap.const == a.size:
            is_joined = True
            result.append(Box(a.low, a.size + b.size, b.limit, ()))
        else:
            return None
    return result if is_joined else None


def _counts(loops: Sequence[Loop]) -> dict[Var, int] | None:
    """How often loops run that count from 0 to a number."""
    counts: dict[Var, int] = {}
    for loop in loops:
        low, high = loop.low, loop.high
        if low is None or high is None or low.terms or high.terms or low.const or high.const < 0:
            return None
        counts[loop.var] = high.const + 1
    return counts


class _Span(NamedTuple):
    """The part `f % end // start` of a loop f that counts from 0; of all of it, `end` is its extent."""

    var: Var
    start: int
    end: int


class _Parts(NamedTuple):
    """What counts independently of each other: loops, and the parts of fused ones."""

    counts: dict[Var | Part, int]
    same: dict[Part, Part]  # of several ways to write one part, the first
    leave_out: bool  # iterations of a loop that differ in none of its parts

    def put_in(self, form: Form) -> Form:
        """The form with each part in one way of writing."""
        if self.same.keys().isdisjoint(form.terms):
            return form
        terms: dict[Var | Part, int] = {}
        for term, k in form.terms.items():
            add_into(terms, {self.same[term] if isinstance(term, Part) and term in self.same else term: k}, 1)
        return Form(terms, form.const)


def _parts(values: Sequence[Form], counts: Mapping[Var, int]) -> _Parts:
    """The parts in which the values hold loops. A loop whose parts depend on each other stays whole."""
    spans: dict[Var, dict[_Span, Part | None]] = {}
    found: dict[Part, _Span] = {}
    for term in [term for value in values for term in value.terms]:
        if isinstance(term, Var):
            if term in counts:
                spans.setdefault(term, {}).setdefault(_Span(term, 1, counts[term]), None)
        elif (span := _span(term, counts)) is not None:
            found[term] = span
            spans.setdefault(span.var, {}).setdefault(span, term)
    result: dict[Var | Part, int] = dict(counts.items())
    same: dict[Part, Part] = {}
    leave_out = False
    for var, mine in spans.items():
        firsts = {span: term for span, term in mine.items() if term is not None}
        if len(firsts) < len(mine) or not _are_independent(sorted(firsts), counts[var]):
            continue
        del result[var]
        result.update({term: span.end // span.start for span, term in firsts.items()})
        same.update({term: firsts[span] for term, span in found.items() if span in firsts})
        leave_out = leave_out or prod([span.end // span.start for span in firsts]) < counts[var]
    return _Parts(result, same, leave_out)


def _are_independent(spans: Sequence[_Span], extent: int) -> bool:
    """Whether all combinations of the parts of one loop occur; they come in the order of their strides."""
    below = 1
    for span in spans:
        if span.start % below or span.end % span.start or extent % span.end:
            return False
        below = span.end
    return True


def _span(term: Part, counts: Mapping[Var, int]) -> _Span | None:
    """The part of a loop that a quotient or remainder is; None when it is none."""
    if term.op not in ("floor", "mod") or len(term.args[0].terms) != 1 or term.args[0].const:
        return None
    ((inner, k),) = term.args[0].terms.items()
    if k != 1:
        return None
    if isinstance(inner, Part):
        whole = _span(inner, counts)
    else:
        whole = _Span(inner, 1, counts[inner]) if inner in counts else None
    if whole is None:
        return None
    step = whole.start * term.divisor
    if step >= whole.end:
        return whole if term.op == "mod" else None
    if term.op == "floor":
        return whole._replace(start=step)
    return whole._replace(end=step) if whole.end % step == 0 or whole.end == counts[whole.var] else None


def is_single(loop: Loop) -> bool:
    """Whether the loop has one iteration, of a value that is known."""
    low, high = loop.low, loop.high
    return low is not None and high is not None and not low.terms and not high.terms and low.const == high.const


def _without(form: Form, still: Mapping[Var, int]) -> Form:
    """The form with numbers for variables that have one value only."""
    terms = {term: k for term, k in form.terms.items() if term not in still}
    const = form.const + sum([k * still.get(term, 0) for term, k in form.terms.items() if isinstance(term, Var)])
    return Form(terms, const)


def _box(value: Form, counts: Mapping[Var | Part, int], running: Set[Var], idle: set[Var | Part]) -> Box | None:
    """The values of one axis; the loops, and parts of them, that count through them are taken out of `idle`."""
    around: dict[Var | Part, int] = {}
    digits: list[Digit] = []
    for term, stride in value.terms.items():
        if term in counts:
            digits.append(Digit(stride, term, counts[term]))
        elif term in running or (isinstance(term, Part) and not term.variables.isdisjoint(running)):
            return None
        else:
            around[term] = stride
    digits.sort(key=lambda digit: digit.stride)
    size = 1
    for digit in digits:
        if digit.stride != size or digit.term not in idle:
            return None
        idle.remove(digit.term)
        size *= digit.extent
    return Box(Form(around, value.const), size, None, tuple(digits))


def _limit(condition: Form, value: Form, box: Box) -> int | None:
    """The greatest value of an axis for which the condition holds; None when it is not of that kind.

    It is `limit - value`, or, with `value = step * quotient + rest` and the rest counted by the faster digits,
    `limit - quotient`: a tile is whole or is not there.
    """
    for step in {1, *[digit.stride for digit in box.digits], box.size}:
        rest = value.plus(condition, step)
        if rest.terms == {digit.term: digit.stride for digit in box.digits if digit.stride < step}:
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
    index = CellIndex({}, {}, {}, {})
    quotients: dict[tuple[int, int], int] = {}
    remainders: dict[tuple[int, int], int] = {}
    for dimension, expr in enumerate(store.node.indices):
        if isinstance(expr, IntImm):
            index.numbers[dimension] = expr.value
        elif isinstance(expr, Var) and expr in axes and axes[expr] not in index.axes():
            index.whole[axes[expr]] = dimension
        elif isinstance(expr, (FloorDiv, FloorMod)) and isinstance(expr.a, Var) and isinstance(expr.b, IntImm):
            result = quotients if isinstance(expr, FloorDiv) else remainders
            part = axes.get(expr.a, -1), expr.b.value
            if part in result or part[0] < 0 or part[1] <= 0:
                return None
            result[part] = dimension
        else:
            digits = _digits_of(expr, location.block.iter_vars)
            if digits is None or not index.axes().isdisjoint([digit.axis for digit in digits]):
                return None
            index.sums[dimension] = digits
    if quotients.keys() != remainders.keys():
        return None
    for (axis, by), dimension in quotients.items():
        if axis in index.axes():
            return None
        index.parts[axis] = dimension, remainders[axis, by], by
    return index


def _digits_of(expr: Expr, axes: Sequence[IterVar]) -> tuple[AxisDigit, ...] | None:
    """The axes that an index is made of as a number of its digits, the slowest first; None for other sums."""
    numbers = {axis.var: k for k, axis in enumerate(axes)}
    digits: list[AxisDigit] = []
    pending = [expr]
    while pending:
        term = pending.pop()
        if isinstance(term, Add):
            pending += [term.a, term.b]
            continue
        var, stride = (term.a, term.b) if isinstance(term, Mul) else (term, None)
        if not isinstance(var, Var) or var not in numbers or not (stride is None or isinstance(stride, IntImm)):
            return None
        if any([digit.axis == numbers[var] for digit in digits]):
            return None  # v * 4 + v leaves cells out
        dom = axes[numbers[var]].dom
        if dom is None or not isinstance(dom.min, IntImm) or not isinstance(dom.extent, IntImm) or dom.min.value:
            return None
        digits.append(AxisDigit(numbers[var], 1 if stride is None else stride.value, dom.extent.value))
    digits.sort(key=lambda digit: digit.stride)
    below = 1
    for digit in digits:
        if digit.stride != below or digit.extent < 1:
            return None
        below *= digit.extent
    return tuple(reversed(digits))


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
