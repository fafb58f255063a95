"""Window: a block that sums products of an image and weights over a window, and which of its axes plays which part.

Y[n, o, y, x] += X[n, c, 2*y + dy, 2*x + dx] * W[o, c, dy, dx]

channel o (W, Y)         vectors run along it, whatever the layout of Y
pixels y, x (X, Y)       the last one is tiled: each of its numbers is spread over a vector of channels; it is the last
                         of several pixels: where an image is one pixel wide, its column is the line
around n (X, Y)          images of a batch, and groups: loops around everything
reduce c, dy, dx (X, W)  channels of the image first, then the window
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from loopwright.autosched.facts import Access, Axis, BlockFacts, const
from loopwright.ir import Expr, Mul, Var


@dataclass(frozen=True)
class Window:
    """The parts of a convolution. All sizes are known."""

    facts: BlockFacts
    image: Access
    weights: Access
    channel: Axis
    around: tuple[Axis, ...]
    pixels: tuple[Axis, ...]
    reduce: tuple[Axis, ...]

    @cached_property
    def channels(self) -> int:
        return extent(self.channel)

    @cached_property
    def k(self) -> int:
        """How many products are summed for one cell."""
        return prod(extent(axis) for axis in self.reduce)

    @cached_property
    def batch(self) -> int:
        return prod(extent(axis) for axis in self.around)

    @cached_property
    def places(self) -> int:
        """How many pixels an image of the result has."""
        return prod(extent(axis) for axis in self.pixels)

    @cached_property
    def row(self) -> Axis:
        """The pixels of one line, which is tiled."""
        return self.pixels[-1]

    @cached_property
    def pixels_in_order(self) -> tuple[Axis, ...]:
        """The axes of the pixels as the block has them."""
        return tuple(axis for axis in self.facts.spatial if axis in self.pixels)

    @cached_property
    def writes_channels_last(self) -> bool:
        return self.facts.write.stride(self.channel.var) == 1

    def channel_block(self, lanes: int) -> int:
        """How many channels of an image whose channels are neighbours are copied as one vector; 1: none are.

        Channels of one group are a part of a line, and a part has no blocks of its own.
        """
        if not self.reads_channels_last:
            return 1
        return next((size for size in (lanes, lanes // 2) if size > 1 and extent(self.reduce[0]) % size == 0), 1)

    @cached_property
    def reads_channels_last(self) -> bool:
        """Whether the first axis of the sum is the last dimension of the image, alone."""
        channel = self.reduce[0]
        return self._is_alone(channel) and self.image_dimension(channel) == len(self.image.indices) - 1

    @cached_property
    def channel_dimension(self) -> int:
        """The dimension of the weights that is the channel."""
        return next(
            k for k, form in enumerate(self.weights.forms) if form is not None and self.channel.var in form.terms
        )

    @cached_property
    def weight_reduce_dimensions(self) -> list[int]:
        """The dimensions of the weights in the order of the reduction."""
        return [
            next(k for k, form in enumerate(self.weights.forms) if form is not None and axis.var in form.terms)
            for axis in self.reduce
        ]

    def image_dimension(self, axis: Axis) -> int | None:
        """The dimension of the image that an axis moves in; None when it does not move one alone."""
        moved = [k for k, form in enumerate(self.image.forms) if form is not None and axis.var in form.variables()]
        return moved[0] if len(moved) == 1 else None

    def span(self, axis: Axis, count: int) -> int:
        """How many neighbours of the image along `axis` are read for `count` pixels of the result."""
        known = self._reach.get(axis.var)
        if known is None:
            dimension = self.image_dimension(axis)
            form = self.image.forms[dimension] if dimension is not None else None
            assert form is not None
            window = sum(abs(form.terms[own.var]) * (extent(own) - 1) for own in self.reduce if own.var in form.terms)
            known = self._reach[axis.var] = abs(form.terms[axis.var]), window
        step, window = known
        return step * (count - 1) + window + 1

    @cached_property
    def _reach(self) -> dict[Var, tuple[int, int]]:
        """By axis that was asked for: how far the image moves with it, and what the window adds."""
        return {}

    @cached_property
    def reduction_jump(self) -> int:
        """How many elements the image moves with one step of the first reduction."""
        return abs(self.image.stride(self.reduce[0].var) or 0)

    @cached_property
    def image_channels(self) -> int:
        """How many numbers of the image are summed for each place of the window."""
        of_pixels = [self.image_dimension(axis) for axis in self.pixels]
        return prod(extent(axis) for axis in self.reduce if self.image_dimension(axis) not in of_pixels)

    @cached_property
    def lines(self) -> int:
        """How many lines of the image a pixel is summed from: those of all channels."""
        dimension = self.image_dimension(self.row)
        return prod(extent(axis) for axis in self.reduce if self.image_dimension(axis) != dimension)

    def _is_alone(self, axis: Axis) -> bool:
        dimension = self.image_dimension(axis)
        form = self.image.forms[dimension] if dimension is not None else None
        return form is not None and form.terms == {axis.var: 1}


def extent(axis: Axis) -> int:
    """How far an axis runs, which is known of all axes of a window."""
    assert axis.extent is not None
    return axis.extent


def window_of(facts: BlockFacts) -> Window | None:
    """The block as a convolution, or None when it is none, or none that is done by vectors of channels."""
    combined = facts.combined
    if combined is None or combined.op != "sum" or not isinstance(combined.value, Mul):
        return None
    first, second = facts.factor(combined.value.a), facts.factor(combined.value.b)
    if first is None or second is None or first.buffer is second.buffer:
        return None
    if any(axis.extent is None or axis.extent == 0 for axis in facts.axes) or not _is_plain_write(facts):
        return None
    for image, weights in ((first, second), (second, first)):
        result = _window(facts, image, weights)
        if result is not None:
            return result
    return None


def _is_plain_write(facts: BlockFacts) -> bool:
    """Whether each index of the result is an axis of its own; an axis of a single value may be written as 0."""
    used = [index for index in facts.write.indices if const(index) is None]
    needed: set[Expr] = {axis.var for axis in facts.spatial if axis.extent != 1}
    return len(set(used)) == len(used) and needed <= set(used) <= {axis.var for axis in facts.spatial}


def _window(facts: BlockFacts, image: Access, weights: Access) -> Window | None:
    result = [axis for axis in facts.spatial if weights.uses(axis.var) and not image.uses(axis.var)]
    # Blocks of channels are two axes: the one whose channels are neighbours is the one of the vectors.
    channels = sorted(result, key=lambda axis: facts.write.stride(axis.var) != 1)
    # A window of one pixel may have axes that move nothing.
    reduce = [axis for axis in facts.reduce if axis.extent != 1 or image.uses(axis.var) or weights.uses(axis.var)]
    used = channels[:1]
    if not channels:  # one channel, which moves nothing, as that of a group may be
        channels = [axis for axis in facts.spatial if axis.extent == 1 and not image.uses(axis.var)]
    if not channels or any(weights.own_dimension(axis.var) is None for axis in (*reduce, *used)):
        return None
    if not reduce or not all(image.uses(axis.var) for axis in reduce):
        return None
    spatial = [axis for axis in facts.spatial if axis is not channels[0]]
    pixels = tuple(sorted([axis for axis in spatial if _is_pixel(axis, image, weights)], key=_is_long))
    around = tuple(axis for axis in spatial if axis not in pixels)
    moves = [_moved(image, axis) for axis in pixels]
    if not pixels or any(len(dimensions) != 1 for dimensions in moves):
        return None
    if len({dimensions[0] for dimensions in moves}) != len(pixels):
        return None
    if not all(any(index is axis.var for index in facts.write.indices) for axis in (*pixels, *used)):
        return None
    windows = [axis for axis in reduce if _in_window(image, axis, pixels)]
    strided = [axis for axis in pixels if image.steps(axis.var)[_moved(image, axis)[0]] != 1]
    if not windows and not strided and len(pixels) < 2:
        return None  # a product of matrices
    inside = sorted(reduce, key=lambda axis: _in_window(image, axis, pixels))
    return Window(facts, image, weights, channels[0], around, pixels, tuple(inside))


def _is_long(axis: Axis) -> bool:
    return axis.extent != 1


def _is_pixel(axis: Axis, image: Access, weights: Access) -> bool:
    """Whether the axis moves the image, in a dimension where it is not the batch: there are windows or strides in it.

    An axis that is the first dimension alone is a batch; one after it is a line or a column of the image.
    """
    if weights.uses(axis.var) or not image.uses(axis.var):
        return False
    dimensions = _moved(image, axis)
    form = image.forms[dimensions[0]]
    return not (dimensions == [0] and form is not None and form.terms == {axis.var: 1} and len(image.forms) > 2)


def _moved(access: Access, axis: Axis) -> list[int]:
    return [k for k, form in enumerate(access.forms) if form is None or axis.var in form.variables()]


def _in_window(image: Access, axis: Axis, pixels: tuple[Axis, ...]) -> int:
    """0 for a channel of the image, 1 for an axis of the window."""
    own = {dimension for pixel in pixels for dimension in _moved(image, pixel)}
    return int(any(dimension in own for dimension in _moved(image, axis)))
