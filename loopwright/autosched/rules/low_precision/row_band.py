"""Band: a convolution of pixels that are neighbours in the result, read from a band of the image in place of a matrix.

    Y[n, f, y, x] += X[n, c, y * sy + ky * dy, x * sx + kx * dx] * W[f, c, ky, kx]

A band is some lines of the image with 4 channels side by side, B[c // 4, line, x % sx, x // sx, c % 4]: 16 pixels of it
are a tile of the right factor for each place of the window. So the image is copied once, where a matrix of windows
would be as many copies as the window has places. A convolution whose window is one place has no lines: its pixels are
one long line.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from loopwright.autosched.facts import Access, Axis, const
from loopwright.autosched.rules.low_precision.im2col import Matrices, size_of


@dataclass(frozen=True)
class Band:
    """The parts of such a convolution; lists go along `pixels`."""

    matrices: Matrices
    filter: Axis
    channel: Axis
    pixels: tuple[Axis, ...]  # of the result: lines, and those in a line
    window: tuple[Axis | None, ...]  # the axis of the window that moves with each of them
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def image(self) -> Access:
        return self.matrices.column_operand

    @property
    def weights(self) -> Access:
        return self.matrices.row_operand

    @property
    def is_flat(self) -> bool:
        """Whether pixels are one long line."""
        return all(axis is None or axis.extent == 1 for axis in self.window)

    @property
    def around(self) -> list[Axis]:
        """The loops around everything: images of a batch."""
        return [axis for (axis,) in self.matrices.around(self.image)]

    @property
    def batch(self) -> int:
        return size_of(self.around)

    @property
    def lines(self) -> int:
        return 1 if self.is_flat else self.pixels[0].extent or 1

    @property
    def line(self) -> int:
        """The pixels of one line of the result."""
        return size_of(self.pixels) if self.is_flat else self.pixels[-1].extent or 1

    @property
    def places(self) -> tuple[int, ...]:
        """The sizes of the window."""
        return tuple([1 if axis is None else axis.extent or 1 for axis in self.window])

    @property
    def k(self) -> int:
        return prod(self.places) * (self.channel.extent or 1)

    def lines_read(self, count: int) -> int:
        """How many lines of the image are read for `count` lines of the result."""
        if self.is_flat:
            return 1
        return (count - 1) * self.strides[0] + (self.places[0] - 1) * self.dilations[0] + 1

    def reach(self) -> int:
        """How many more pixels of a band than of the result are read along a line."""
        return (self.places[-1] - 1) * self.dilations[-1] // self.strides[-1]


def band_of(matrices: Matrices) -> Band | None:
    """The convolution as one of bands; None when its image does not lie like that."""
    image, weights, pixels = matrices.column_operand, matrices.row_operand, matrices.columns
    if len(matrices.rows) != 1 or not 1 <= len(pixels) <= 2:
        return None
    rank = len(image.indices)
    if [image_dimension(image, axis) for axis in pixels] != [*range(rank - len(pixels), rank)]:
        return None
    alone = [axis for axis in matrices.reduce if image_dimension(image, axis) not in range(rank - len(pixels), rank)]
    others = [axis for axis in alone if axis.extent != 1]
    if len(others) > 1 or not alone or image.own_dimension((others or alone)[0].var) is None:
        return None
    channel = (others or alone)[0]
    window: list[Axis | None] = []
    strides, dilations = [], []
    for axis in pixels:
        dimension = image_dimension(image, axis)
        form = image.forms[dimension] if dimension is not None else None
        assert form is not None
        moving = [own for own in matrices.reduce if own.var in form.terms]
        if len(moving) > 1 or form.const or form.parts() or len(form.terms) != 1 + len(moving):
            return None
        strides.append(form.terms[axis.var])
        dilations.append(form.terms[moving[0].var] if moving else 1)
        window.append(moving[0] if moving else None)
    if min(strides) < 1 or min(dilations) < 1:
        return None
    used = [channel, *[axis for axis in window if axis is not None]]
    if any(axis.extent != 1 for axis in matrices.reduce if axis not in used):
        return None
    if any(weights.own_dimension(axis.var) is None for axis in (*used, matrices.rows[0])):
        return None
    if matrices.around(weights):
        return None  # groups: each has weights of its own
    result = Band(matrices, matrices.rows[0], channel, pixels, tuple(window), tuple(strides), tuple(dilations))
    # Pixels of a line are parted by the stride, into equally many.
    is_parted = (const(image.buffer.shape[-1]) or 1) % result.strides[-1] == 0
    return result if result.is_flat or (len(pixels) == 2 and is_parted) else None


def image_dimension(image: Access, axis: Axis) -> int | None:
    """The dimension of the image that an axis moves in; None when it does not move one alone."""
    moved = [k for k, form in enumerate(image.forms) if form is None or axis.var in form.variables()]
    return moved[0] if len(moved) == 1 else None
