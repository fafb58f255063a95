"""conv_by_phases: a transposed convolution as one convolution of stride 1, and its results put between each other.

    data_pad, kernel_transform, conv2d_nchw        all products: those of phases or taps are channels (`phases.py`)
    phases                                         out[…, t] = Σ over terms of conv[phase or tap, …, q - term]

Channels are (group, phases and taps, feature).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else
from loopwright.te.tags import default_tag
from loopwright.topi.nn.conv.convolution import conv
from loopwright.topi.nn.conv.phases import Form, Line
from loopwright.topi.parts.sizes import known, simplify
from loopwright.topi.types import DType


def conv_by_phases(
    data: te.Tensor,
    kernel: te.Tensor,
    lines: Sequence[Line],
    forms: Sequence[Form],
    groups: int,
    spatial: str,
    out_dtype: DType | None,
) -> te.Tensor:
    """The transposed convolution, each dimension in the form that `choose_forms` chose."""
    weight = _weight(kernel, lines, forms, groups)
    spread = [line.spread if form.is_window else 1 for line, form in zip(lines, forms, strict=True)]
    sums = conv(_image(data, forms), weight, 1, 0, spread, groups, "NC" + spatial, "OI" + spatial, out_dtype)
    if all(line.stride == 1 and form.is_window for line, form in zip(lines, forms, strict=True)):
        return sums
    features, count = _size(kernel, 1), prod(form.channels for form in forms)
    zero = const(0, out_dtype or data.dtype)

    def element(n: Expr, o: Expr, *at: Expr) -> Expr:
        def summed(number: Expr, places: tuple[Expr, ...]) -> Expr:
            """The sum over the taps of all other dimensions: `number` and `places` are those of the first ones."""
            axis = len(places)
            if axis == len(lines):
                own = number if groups == 1 else o // features * count + number
                value: Expr = sums(n, simplify(own * features + (o if groups == 1 else o % features)), *places)
                return value
            total: Expr | None = None
            for which, place, conditions in _terms(lines[axis], forms[axis], at[axis]):
                inner = summed(number * forms[axis].channels + which, (*places, place))
                term = if_then_else(all_of(*conditions), inner, zero) if conditions else inner
                total = term if total is None else total + term
            assert total is not None
            return total

        return summed(const(0), ())

    shape = [data.shape[0], features * groups, *[line.places for line in lines]]
    result: te.Tensor = te.compute(shape, element, name="phases", tag=default_tag("injective"))
    return result


def _size(tensor: te.Tensor, dimension: int) -> int:
    number = known(tensor.shape[dimension])
    assert number is not None
    return number


def _terms(line: Line, form: Form, at: Expr) -> list[tuple[Expr, Expr, list[Expr]]]:
    """What result `at` is the sum of: a phase or tap, a place of the convolution, and when there is such a term."""
    moved = at + line.padding if line.padding else at
    phase, nearest = moved % line.stride, moved // line.stride
    if form.is_window:
        conditions = [phase < form.channels] if form.channels < line.stride else []
        return [(phase if form.channels > 1 else const(0), nearest - form.begin, conditions)]
    common = gcd(line.stride, line.dilation)
    first, conditions = phase, []
    if line.dilation != 1:
        inverse = pow(line.spread, -1, line.step)
        first = phase // common * inverse % line.step
        conditions = [(phase % common).equal(0)] if common > 1 else []
    result = []
    for term in range(line.terms):
        tap = simplify(first + term * line.step)
        cell = nearest - term * line.spread
        if line.dilation != 1:
            cell = cell - first * line.dilation // line.stride
        inside = list(conditions)
        if line.step * (term + 1) > line.taps:
            inside.append(tap < line.taps)
        low, high = _cells(line, term)
        inside += [cell >= 0] if low < 0 else []
        inside += [cell < line.size] if high >= line.size else []
        result.append((tap, cell, inside))
    return result


def _cells(line: Line, term: int) -> tuple[int, int]:
    """The first and the last cell that a term asks for, those outside the data too."""
    cells = [0]
    for tap in range(term * line.step, min(line.taps, (term + 1) * line.step)):
        phase = tap * line.dilation % line.stride
        lowest = -((phase - line.padding) // line.stride) * line.stride + phase  # t + padding
        highest = (line.places - 1 + line.padding - phase) // line.stride * line.stride + phase
        cells += [(place - tap * line.dilation) // line.stride for place in (lowest, highest)]
    return min(cells), max(cells)


def _image(data: te.Tensor, forms: Sequence[Form]) -> te.Tensor:
    """The data with what windows need around it, and without what none of them sees."""
    around = [(0, 0), (0, 0), *[(form.before, form.after) for form in forms]]
    if not any(before or after for before, after in around):
        return data

    def cell(*at: Expr) -> Expr:
        inside: list[Expr] = []
        read: list[Expr] = []
        for index, size, (before, after) in zip(at, data.shape, around, strict=True):
            read.append(index - before if before else index)
            if before > 0:
                inside.append(index >= before)
            if after > 0:
                inside.append(index < simplify(size + before))
        value: Expr = data(*read)
        return if_then_else(all_of(*inside), value, const(0, data.dtype)) if inside else value

    shape = [simplify(size + before + after) for size, (before, after) in zip(data.shape, around, strict=True)]
    result: te.Tensor = te.compute(shape, cell, name="data_pad", tag=default_tag("injective,pad"))
    return result


def _weight(kernel: te.Tensor, lines: Sequence[Line], forms: Sequence[Form], groups: int) -> te.Tensor:
    """The taps as the forms have them: (groups · phases and taps · features, inputs of a group, windows …)."""
    features, inner = _size(kernel, 1), _size(kernel, 0) // groups
    count = prod(form.channels for form in forms)

    def element(m: Expr, i: Expr, *taps: Expr) -> Expr:
        number = m // features % count
        read: list[Expr] = []
        inside: list[Expr] = []
        left = count
        for line, form, tap in zip(lines, forms, taps, strict=True):
            left //= form.channels
            own = number // left % form.channels
            if not form.is_window:
                read.append(own)
                continue
            # The window runs forwards over the cells, and taps of a phase backwards.
            read.append(simplify(own + line.step * (form.taps - 1 - tap)))
            if form.channels - 1 + line.step * (form.taps - 1) >= line.taps:
                inside.append(read[-1] < line.taps)
        channel = i if groups == 1 else m // (features * count) * inner + i
        value: Expr = kernel(channel, m % features, *read)
        return if_then_else(all_of(*inside), value, const(0, kernel.dtype)) if inside else value

    shape = (groups * count * features, inner, *[form.taps for form in forms])
    result: te.Tensor = te.compute(shape, element, name="kernel_transform", tag=default_tag("injective"))
    return result
