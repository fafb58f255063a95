"""Pointwise: a convolution with a window of one pixel is a product of matrices, once lines of pixels are one axis.

    Y[n, o, y, x] += X[n, c, y, x] * W[o, c]      →      Y2[n, o, p] += X2[n, c, p] * W[o, c]
    Y[n, y, x, o] += X[n, y, x, c] * W[c, o]      →      Y2[n, p, o] += X2[n, p, c] * W[c, o]

X2 and Y2 are other names for the same memory: the copies that make them are written into the blocks that use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, const
from loopwright.autosched.layouts import dimensions, folded, layout
from loopwright.autosched.program import Entry
from loopwright.autosched.renaming import rename
from loopwright.autosched.rules.contraction.tiles import Size
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.schedule import Schedule


def is_pointwise(window: Window) -> bool:
    """Whether each pixel of the result is made of one of the image, and lines follow each other in both."""
    result, image = _first_pixel(window.facts.write, window), _first_pixel(window.image, window)
    if result is None or image is None:
        return False
    count = len(window.pixels_in_order)
    if list(window.facts.write.indices[result : result + count]) != [axis.var for axis in window.pixels_in_order]:
        return False
    single = {axis.var for axis in window.reduce if axis.extent == 1}
    there = slice(image, image + count)
    forms, sizes = window.image.forms[there], window.image.buffer.shape[there]
    for form, size, axis in zip(forms, sizes, window.pixels_in_order, strict=True):
        assert form is not None
        moving = {var: step for var, step in form.terms.items() if var not in single}
        if moving != {axis.var: 1} or form.const != 0 or const(size) != axis.extent:
            return False
    return window.writes_channels_last == (image + count < len(window.image.indices))


def _first_pixel(access: Access, window: Window) -> int | None:
    """The dimension of the first of the pixels' axes, if those of the others follow it."""
    locations = [
        [index for index, form in enumerate(access.forms) if form is not None and axis.var in form.terms]
        for axis in window.pixels_in_order
    ]
    first = locations[0][0] if locations[0] else None
    return first if first is not None and locations == [[first + k] for k in range(len(locations))] else None


def product_size(window: Window, is_prepacked: bool) -> Size:
    """The product that it is: channels of the result by its pixels, or pixels by channels where those lie together."""
    pixels, channels, dtype = window.places, window.channels, window.facts.dtype
    if window.writes_channels_last:
        return Size(pixels, channels, window.k, window.batch, dtype, channels, is_prepacked=is_prepacked)
    return Size(channels, pixels, window.k, window.batch, dtype, pixels)


def fold_pixels(sch: Schedule, window: Window, epilogue: Sequence[Entry]) -> list[str]:
    """Make the pixels one axis; the names of the blocks of the product, in order."""
    block = sch.get_block(window.facts.name)
    image, result = _folding(window.image, window), _folding(window.facts.write, window)
    renamed = rename(sch, block, window.image.buffer, image, epilogue, result)
    axes = [axis.var for axis in window.facts.axes]
    names = dict(zip(axes, dimensions(len(axes)), strict=True))
    first, *others = window.pixels_in_order
    one = folded([names[axis.var] for axis in (first, *others)], [extent(axis) for axis in (first, *others)])
    kept = [axis for axis in window.facts.axes if (axis.extent != 1 or axis is first) and axis not in others]
    order = [one if axis is first else names[axis.var] for axis in kept]
    sch.transform_block_layout(block, layout(list(names.values()), order))
    return [renamed.operand.name, block.name, *[step.name for step in renamed.after]]


def _folding(access: Access, window: Window) -> str:
    """lambda n, c, y, x: (n, c, y * 56 + x), without what has one element."""
    names = dimensions(len(access.indices))
    first = _first_pixel(access, window)
    assert first is not None
    end = first + len(window.pixels_in_order)
    one = folded(names[first:end], [extent(axis) for axis in window.pixels_in_order])
    kept = [
        one if index == first else name
        for index, (name, size) in enumerate(zip(names, access.buffer.shape, strict=True))
        if index == first or (not first < index < end and const(size) != 1)
    ]
    return layout(names, kept)
