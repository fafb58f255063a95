"""Pointwise: a convolution with a window of one pixel is a product of matrices, once lines of pixels are one axis.

    Y[n, o, y, x] += X[n, c, y, x] * W[o, c]      →      Y2[n, o, p] += X2[n, c, p] * W[o, c]

X2 and Y2 are other names for the same memory: the copies that make them are written into the blocks that use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import Access, const
from loopwright.autosched.program import Entry
from loopwright.autosched.rules.contraction.tiles import Size
from loopwright.autosched.rules.convolution.steps import folded
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


def size_of(window: Window) -> Size:
    """The product that it is: rows are channels of the result, columns its pixels."""
    pixels = 1
    for axis in window.pixels:
        pixels *= extent(axis)
    return Size(window.channels, pixels, window.depth, window.copies, window.facts.dtype, pixels)


def fold_pixels(sch: Schedule, window: Window, epilogue: Sequence[Entry]) -> list[str]:
    """Make the pixels one axis; the names of the blocks of the product, in order."""
    block = sch.get_block(window.facts.name)
    operand = [region.buffer for region in sch.get(block).reads].index(window.image.buffer)
    image = sch.cache_read(block, operand, "global", [block])
    layout = _folding(window.image, window)
    sch.transform_layout(image, ("write", 0), layout)
    sch.transform_block_layout(image, layout)
    after = [sch.get_block(entry.name) for entry in epilogue]
    if not after:
        after = [sch.cache_write(block, 0, "global")]
    layout = _folding(window.facts.write, window)
    sch.transform_layout(block, ("write", 0), layout)
    for step in after:
        if step is not after[-1]:
            sch.transform_layout(step, ("write", 0), layout)
        sch.transform_block_layout(step, layout)
    axes = [axis.var for axis in window.facts.axes]
    names = {var: f"d{k}" for k, var in enumerate(axes)}
    pixels = [names[axis.var] for axis in window.pixels]
    one = folded(pixels, [extent(axis) for axis in window.pixels])
    kept = [axis for axis in window.facts.axes if axis.extent != 1 or axis in window.pixels]
    order = [one if axis is window.pixels[0] else names[axis.var] for axis in kept if axis not in window.pixels[1:]]
    sch.transform_block_layout(block, f"lambda {', '.join(names.values())}: ({', '.join(order)})")
    return [image.name, block.name, *[step.name for step in after]]


def _folding(access: Access, window: Window) -> str:
    """lambda n, c, y, x: (n, c, y * 56 + x), without what has one element."""
    names = [f"d{k}" for k in range(len(access.indices))]
    last = len(window.pixels)
    others = [name for name, size in zip(names[:-last], access.buffer.shape, strict=False) if const(size) != 1]
    one = folded(names[-last:], [extent(axis) for axis in window.pixels])
    return f"lambda {', '.join(names)}: ({', '.join([*others, one])})"
