"""Phases: how a transposed convolution of stride s is computed along each dimension without products with zeros.

    out[t] = Σ over k of data[(t + padding - k · dilation) / stride] · weight[k]        where that is a whole number

With t + padding = stride · q + phase, the taps k that meet a cell are the same for all q: a first one and every few
after it. Two forms follow, and a dimension may have either:

    WINDOW   one channel for each phase; the window has the taps of one phase   conv[phase, q] → out[t]
    TAPS     one channel for each tap; the window is one cell                   Σ over taps of conv[k, cell] → out[t]

The first computes products with zeros where phases have not equally many taps, and results past the ends; the second
computes what is needed and no more, and has more results to move. `choose_forms` counts both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import Final, NamedTuple

CHANNEL_BLOCK: Final = 8  # channels that are computed together, about: fewer leave lanes of vectors empty
MOVED: Final = 16  # products that take as long as one sum that is written and read again
MOST_TERMS: Final = 16  # sums that one result is made of: more of them are a kernel of their own


class Line(NamedTuple):
    """A transposed convolution along one dimension; `places` is how many results there are."""

    size: int
    taps: int
    stride: int
    dilation: int
    padding: int
    places: int

    @property
    def step(self) -> int:
        """From one tap of a phase to the next."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def spread(self) -> int:
        """Cells between those that two such taps meet."""
        return self.dilation // gcd(self.stride, self.dilation)

    @property
    def terms(self) -> int:
        """The most taps that a phase has."""
        return -(-self.taps // self.step)

    def cell(self, place: int, tap: int) -> int | None:
        """The cell of the data that a tap adds to a result; None when it adds none."""
        cell, rest = divmod(place + self.padding - tap * self.dilation, self.stride)
        return cell if rest == 0 and 0 <= cell < self.size else None


class Form(NamedTuple):
    """What is computed along a dimension: `channels` times the channels, by a window of `taps` taps.

    `begin` is the first q (see above) that has results, `places` how many are computed; `before` and `after` are cells
    that the data lacks there: negative where no window sees some that it has.
    """

    is_window: bool
    channels: int
    taps: int
    places: int
    begin: int = 0
    before: int = 0
    after: int = 0


def choose_forms(lines: Sequence[Line], channels: int, inputs: int) -> list[Form] | None:
    """The form of each dimension that takes the least time; None where results would be sums of too many terms.

    `channels` are those of the result and `inputs` those of the data, both of one group.
    """
    forms = [list(_forms(line)) for line in lines]
    options = [list(chosen) for chosen in product(*forms) if _terms(lines, chosen) <= MOST_TERMS]
    return min(options, key=lambda chosen: _work(chosen, channels, inputs), default=None)


def _terms(lines: Sequence[Line], forms: Sequence[Form]) -> int:
    return prod(line.terms for line, form in zip(lines, forms, strict=True) if not form.is_window)


def _work(forms: Sequence[Form], channels: int, inputs: int) -> int:
    """Products that are computed, those in empty lanes too, and what it takes to move the sums, in products."""
    wide = prod(form.channels for form in forms) * channels
    places = prod(form.places for form in forms)
    lanes = -(-wide // CHANNEL_BLOCK) * CHANNEL_BLOCK
    return places * (prod(form.taps for form in forms) * lanes * inputs + wide * MOVED)


def _forms(line: Line) -> Iterator[Form]:
    if line.dilation == 1 or line.step == 1:
        phases = min(line.step, line.taps)
        begin = -((phases - 1 - line.padding) // line.stride)
        end = (line.places - 1 + line.padding) // line.stride
        before = (line.terms - 1) * line.spread - begin
        if end >= begin:
            yield Form(True, phases, line.terms, end - begin + 1, begin, before, end - line.size + 1)
    if line.stride > 1:  # else there is one phase, which a window makes as it is
        yield Form(False, line.taps, 1, line.size)
