"""Pixels of a picture by tables: where they are and what they weigh is computed once for all channels.

    offsets[n, y, x] = row · width + column      of the first pixel that is read, inside the picture
    rests[n, y, x]                               how far the location is from that pixel, along an axis

All pixels of a location are so at constant distances from one offset, and one index is loaded for them. A pixel that
takes no part (it is next to those around the location, or that is outside) has an infinite weight, by which it is left
out: a weight of 0 would not do where the pixel is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import inf, prod
from operator import mul

from loopwright import te
from loopwright.ir import Expr, cast, const
from loopwright.ir.intrinsics import abs as magnitude
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import floor, maximum, minimum, nearbyint, select
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi import tag

# Along an axis, for an image and the indices of a pixel of the result: where it is in the picture.
Location = Callable[[int, Expr, Sequence[Expr]], Expr]


def nearest_pixels(
    data: te.Tensor, sizes: Sequence[int], shape: Sequence[Expr], location: Location, real: DataType
) -> Callable[..., Expr]:
    """The value of the pixel that is nearest to a location, 0 outside the picture."""

    def offset(n: Expr, *at: Expr) -> Expr:
        pixels = [nearbyint(location(axis, n, at)) for axis in range(len(sizes))]
        inside = [all_of(pixel >= 0.0, pixel <= float(size - 1)) for pixel, size in zip(pixels, sizes, strict=True)]
        return select(all_of(*inside), _flat(pixels, sizes), const(-1, "int32"))

    offsets = _table("offsets", shape, offset)

    def value(n: Expr, c: Expr, *at: Expr) -> Expr:
        pixel = offsets(n, *at)
        read = data(n, c, *_indices(pixel, sizes))
        return select(pixel >= 0, read, const(0, data.dtype))

    return value


def pixels_around(
    data: te.Tensor, sizes: Sequence[int], shape: Sequence[Expr], location: Location, real: DataType
) -> Callable[..., Expr]:
    """The value between the pixels around a location, in proportion to how near they are; 0 outside the picture."""
    none = const(inf, real)
    axes = range(len(sizes))

    def first(axis: int, n: Expr, at: Sequence[Expr]) -> Expr:
        """The first pixel that is read: the one below the location, or the nearest that has a next one."""
        return maximum(minimum(floor(location(axis, n, at)), float(max(sizes[axis] - 2, 0))), 0.0)

    def rest_along(axis: int) -> Callable[..., Expr]:
        return lambda n, *at: location(axis, n, at) - first(axis, n, at)

    def near(rest: Expr) -> Expr:
        return select(all_of(rest >= -1.0, rest < 1.0), 1.0 - magnitude(rest), none)

    def far(rest: Expr) -> Expr:
        return select(all_of(rest >= 0.0, rest < 2.0), minimum(rest, 2.0 - rest), none)

    offsets = _table("offsets", shape, lambda n, *at: _flat([first(axis, n, at) for axis in axes], sizes))
    rests = [_table("rests", shape, rest_along(axis)) for axis in axes]

    def value(n: Expr, c: Expr, *at: Expr) -> Expr:
        weights = [
            [near(rest(n, *at)), *([far(rest(n, *at))] if size > 1 else [])]
            for rest, size in zip(rests, sizes, strict=True)
        ]
        total: Expr | None = None
        for steps in product(*[range(len(of_axis)) for of_axis in weights]):
            weight = reduce(mul, [of_axis[step] for of_axis, step in zip(weights, steps, strict=True)])
            read = cast(data(n, c, *_indices(offsets(n, *at), sizes, steps)), real)
            term = select(weight <= 1.0, read * weight, const(0.0, real))
            total = term if total is None else total + term
        assert total is not None
        return cast(total, data.dtype)

    return value


def _table(name: str, shape: Sequence[Expr], value: Callable[..., Expr]) -> te.Tensor:
    result: te.Tensor = te.compute(shape, value, name=f"sampled_{name}", tag=default_tag(tag.INJECTIVE))
    return result


def _flat(pixels: Sequence[Expr], sizes: Sequence[int]) -> Expr:
    """The offset of a pixel in its picture; any offset inside for one that is outside."""
    flat: Expr = const(0, "int32")
    for pixel, size in zip(pixels, sizes, strict=True):
        flat = flat * size + maximum(minimum(cast(pixel, DataType("int32")), size - 1), 0)
    return flat


def _indices(first: Expr, sizes: Sequence[int], steps: Sequence[int] = ()) -> list[Expr]:
    """The indices of the pixel `steps` further than the one at offset `first`.

    The limits show that it lies inside, so that nothing is checked; the sum that addresses it has no quotients left.
    """
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    furthest = sum([stride for stride, size in zip(strides, sizes, strict=True) if steps and size > 1])
    flat = maximum(minimum(first, prod(sizes) - 1 - furthest), 0)
    flat = flat + sum([stride * step for stride, step in zip(strides, steps)])
    quotients = [flat // stride if stride > 1 else flat for stride in strides]
    return [quotient % size if axis else quotient for axis, (quotient, size) in enumerate(zip(quotients, sizes))]
