"""grid_sample: a picture read at given places; affine_grid: such places, moved, turned and stretched.

    grid = topi.image.affine_grid(theta, (height, width))
    warped = topi.image.grid_sample(data, grid)

A grid has one channel a spatial axis, x before y (before z), from -1 at one end of the picture to 1 at the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from loopwright import te
from loopwright.ir import Expr, as_expr, cast, const
from loopwright.ir.intrinsics import abs as magnitude
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import floor, if_then_else, maximum, minimum, nearbyint, select
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.image.sampled_pixels import nearest_pixels, pixels_around
from loopwright.topi.image.sampling import cubic_weights, interpolated, linear_weights
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import check_rank, check_same, is_zero, known
from loopwright.topi.registry import operator
from loopwright.topi.testing import image as meaning
from loopwright.topi.types import Shape

_LARGEST_PICTURE: Final = 2**31 - 1  # pixels whose offsets are int32


@operator(reference=meaning.affine_grid, samples=meaning.affine_grid_samples, name="image.affine_grid")
def affine_grid(data: te.Tensor, target_shape: Shape) -> te.Tensor:
    """For each matrix of `data` (n, 2, 3) the grid (n, 2, height, width) of `matrix · (x, y, 1)`."""
    check_rank("affine_grid", "data", data, "(n, 2, 3)", 3)
    for axis, size in ((1, 2), (2, 3)):
        check_same("affine_grid", f"axis {axis} of a matrix", ("data", data.shape[axis]), ("(n, 2, 3)", as_expr(size)))
    if not isinstance(target_shape, Sequence) or len(target_shape) != 2:
        raise InvalidShapeError("affine_grid", f"target_shape is {target_shape!r}", "give (height, width)")
    height, width = (as_expr(extent) for extent in target_shape)

    def along(index: Expr, size: Expr) -> Expr:
        """From -1 to 1; the only place there is lies in the middle."""
        if is_zero(size - 1):
            return const(0.0, data.dtype)
        # A symbolic size may be 1: the numerator is then 0, and so must be the quotient.
        steps = size - 1 if known(size) is not None else maximum(size - 1, 1)
        return cast(2 * index - (size - 1), data.dtype) / cast(steps, data.dtype)

    def body(n: Expr, row: Expr, y: Expr, x: Expr) -> Expr:
        result: Expr = data(n, row, 0) * along(x, width) + data(n, row, 1) * along(y, height) + data(n, row, 2)
        return result

    shape = (data.shape[0], data.shape[1], height, width)
    grid: te.Tensor = te.compute(shape, body, name="affine_grid", tag=default_tag(tag.INJECTIVE))
    return grid


@operator(reference=meaning.grid_sample, samples=meaning.grid_sample_samples, name="image.grid_sample")
def grid_sample(
    data: te.Tensor,
    grid: te.Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> te.Tensor:
    """`data` at the places of `grid` (n, 2, height, width), or of (n, 3, depth, height, width) for layout NCDHW.

    `method` is "bilinear", "nearest" or, of two dimensions, "bicubic" (alpha -0.75). Outside the picture there are
    zeros, or what is at its border, or its reflection (`padding_mode`). With `align_corners` -1 and 1 are the
    middles of the first and last pixel, otherwise their outer edges.
    """
    op = "grid_sample"
    if layout not in ("NCHW", "NCDHW"):
        raise UnsupportedLayout(op, layout, "use NCHW or NCDHW")
    count = len(layout) - 2
    choose(op, "method", method, ("bilinear", "nearest", "bicubic") if count == 2 else ("bilinear", "nearest"))
    choose(op, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
    check_rank(op, "data", data, layout, count + 2)
    check_rank(op, "grid", grid, layout, count + 2)
    check_same(op, "channels of the grid", ("the grid", grid.shape[1]), ("the layout", as_expr(count)))
    check_same(op, "the batch", ("the data", data.shape[0]), ("the grid", grid.shape[0]))
    sizes = data.shape[2:]
    real = DataType("float64" if data.dtype == "float64" else "float32")
    shape = [data.shape[0], data.shape[1], *grid.shape[2:]]

    def location(axis: int, n: Expr, at: Sequence[Expr]) -> Expr:
        # The last spatial axis is x, the first channel of the grid.
        size = sizes[axis]
        offset = _place(cast(grid(n, count - 1 - axis, *at), real), size, align_corners)
        if method == "bicubic" and padding_mode == "reflection":
            # The reflected picture is the same from both sides of its mirror, and so is what lies between its pixels.
            offset = _reflected(offset, size, align_corners)
        elif method != "bicubic":
            offset = _kept(offset, size, padding_mode, align_corners)
        # What is far outside is as good as just outside; it would not fit into an index.
        return maximum(minimum(offset, cast(size + 3, real)), -4.0)

    known_sizes = [known(size) for size in sizes]
    if method != "bicubic" and all(known_sizes) and prod([size or 0 for size in known_sizes]) <= _LARGEST_PICTURE:
        find = nearest_pixels if method == "nearest" else pixels_around
        value = find(data, [size or 0 for size in known_sizes], [data.shape[0], *grid.shape[2:]], location, real)
        result: te.Tensor = te.compute(shape, value, name=op, tag=default_tag(tag.INJECTIVE))
        return result

    def body(n: Expr, c: Expr, *at: Expr) -> Expr:
        locations = [location(axis, n, at) for axis in range(count)]

        def read(pixels: Sequence[Expr]) -> Expr:
            if method == "bicubic" and padding_mode != "zeros":
                pixels = [
                    _kept_pixel(pixel, size, padding_mode, align_corners)
                    for pixel, size in zip(pixels, sizes, strict=True)
                ]
            inside = [all_of(pixel >= 0, pixel < size) for pixel, size in zip(pixels, sizes, strict=True)]
            return if_then_else(all_of(*inside), cast(data(n, c, *pixels), real), const(0.0, real))

        def whole(value: Expr) -> Expr:
            return cast(value, data.shape[0].dtype)

        if method == "nearest":
            return cast(read([whole(nearbyint(location)) for location in locations]), data.dtype)
        base = [whole(floor(location)) for location in locations]
        rests = [location - floor(location) for location in locations]
        if method == "bilinear":
            value = interpolated(read, base, (0, 1), [linear_weights(rest) for rest in rests])
        else:
            value = interpolated(read, base, (-1, 0, 1, 2), [cubic_weights(rest, -0.75) for rest in rests])
        return cast(value, data.dtype)

    result = te.compute(shape, body, name=op, tag=default_tag(tag.INJECTIVE))
    return result


def _place(value: Expr, size: Expr, align_corners: bool) -> Expr:
    """The pixel coordinate of a place from -1 to 1."""
    if align_corners:
        return (value + 1.0) * 0.5 * cast(size - 1, value.dtype)
    return ((value + 1.0) * cast(size, value.dtype) - 1.0) * 0.5


def _kept(index: Expr, size: Expr, padding_mode: str, align_corners: bool) -> Expr:
    """A place outside the picture brought back into it, unless there are zeros."""
    if padding_mode == "zeros":
        return index
    if padding_mode == "reflection":
        index = _reflected(index, size, align_corners)
    return maximum(minimum(index, cast(size - 1, index.dtype)), 0.0)


def _reflected(index: Expr, size: Expr, align_corners: bool) -> Expr:
    """A place outside the picture reflected into it, as often as it takes."""
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if is_zero(span):
        return const(0.0, index.dtype)
    period = cast(2 * span, index.dtype)
    distance = magnitude(index - low)
    into = distance - floor(distance / period) * period
    reflected = minimum(into, period - into) + low
    # A symbolic span may be 0: the quotient above is then 0 / 0.
    return reflected if known(span) is not None else select(span > 0, reflected, const(0.0, index.dtype))


def _kept_pixel(pixel: Expr, size: Expr, padding_mode: str, align_corners: bool) -> Expr:
    """The same for whole pixels."""
    if padding_mode == "reflection":
        if align_corners and is_zero(size - 1):
            return const(0, pixel.dtype)
        period = 2 * (size - 1) if align_corners else 2 * size
        if known(size) is None:
            period = maximum(period, 1)  # a symbolic period may be 0, by which nothing can be divided
        if align_corners:
            into = magnitude(pixel) % period
            pixel = minimum(into, period - into)
        else:
            into = pixel % period
            pixel = minimum(into, period - 1 - into)
    return maximum(minimum(pixel, size - 1), 0)
