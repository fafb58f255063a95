"""Pointwise: a convolution with a window of one pixel is a product of matrices, once lines of pixels are one axis.

    Y[n, o, y, x] += X[n, c, y, x] * W[o, c]      →      Y2[n, o, p] += X2[n, c, p] * W[o, c]

X2 and Y2 are other names for the same memory: the copies that make them are written into the blocks that use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, const
from loopwright.autosched.layouts import dimensions, folded, layout
from loopwright.autosched.program import Entry
from loopwright.autosched.rules.contraction.tiles import Size
from loopwright.autosched.rules.convolution.renaming import rename
from loopwright.autosched.rules.convolution.window import Window, extent
from loopwright.schedule import Schedule


def is_pointwise(window: Window) -> bool:
    """Whether each pixel of the result is made of one of the image, and lines follow each other in both."""
    last = len(window.pixels)
    if list(window.facts.write.indices[-last:]) != [axis.var for axis in window.pixels]:
        return False
    single = {axis.var for axis in window.reduce if axis.extent == 1}
    places = zip(window.image.forms[-last:], window.image.buffer.shape[-last:], window.pixels, strict=True)
    for form, size, axis in places:
        assert form is not None
        moving = {var: step for var, step in form.terms.items() if var not in single}
        if moving != {axis.var: 1} or form.const != 0 or const(size) != axis.extent:
            return False
    return True


def product_size(window: Window) -> Size:
    """The product that it is: rows are channels of the result, columns its pixels."""
    pixels = window.places
    return Size(window.channels, pixels, window.depth, window.copies, window.facts.dtype, pixels)


def fold_pixels(sch: Schedule, window: Window, epilogue: Sequence[Entry]) -> list[str]:
    """Make the pixels one axis; the names of the blocks of the product, in order."""
    block = sch.get_block(window.facts.name)
    image, result = _folding(window.image, window), _folding(window.facts.write, window)
    renamed = rename(sch, block, window.image.buffer, image, epilogue, result)
    axes = [axis.var for axis in window.facts.axes]
    names = dict(zip(axes, dimensions(len(axes)), strict=True))
    pixels = [names[axis.var] for axis in window.pixels]
    one = folded(pixels, [extent(axis) for axis in window.pixels])
    kept = [axis for axis in window.facts.axes if axis.extent != 1 or axis in window.pixels]
    order = [one if axis is window.pixels[0] else names[axis.var] for axis in kept if axis not in window.pixels[1:]]
    sch.transform_block_layout(block, layout(list(names.values()), order))
    return [renamed.operand.name, block.name, *[step.name for step in renamed.after]]


def _folding(access: Access, window: Window) -> str:
    """lambda n, c, y, x: (n, c, y * 56 + x), without what has one element."""
    names = dimensions(len(access.indices))
    last = len(window.pixels)
    others = [name for name, size in zip(names[:-last], access.buffer.shape, strict=False) if const(size) != 1]
    one = folded(names[-last:], [extent(axis) for axis in window.pixels])
    return layout(names, [*others, one])
