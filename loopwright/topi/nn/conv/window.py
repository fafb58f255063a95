"""Window: how a window moves along the spatial dimensions of its data, and the padding that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.ir import Expr
from loopwright.topi.parts.pad_amounts import get_pad_tuple_generic
from loopwright.topi.parts.sizes import each, places, simplify
from loopwright.topi.types import Dim, Dims, Padding, Shape


class Window(NamedTuple):
    """One entry a dimension in each list."""

    strides: list[int]
    dilations: list[int]
    before: Sequence[Dim]  # cells of padding
    after: Sequence[Dim]
    places: list[Expr]  # how many the window has


def window_over(
    op: str, sizes: Sequence[Expr], kernel: Shape, stride: Dims, padding: Padding, dilation: Dims
) -> Window:
    """The window of size `kernel` over data of these `sizes`, with the other numbers as users may give them."""
    count = len(kernel)
    strides, dilations = each(op, "stride", stride, count), each(op, "dilation", dilation, count)
    reach = [simplify((size - 1) * step + 1) for size, step in zip(kernel, dilations, strict=True)]
    before, after = get_pad_tuple_generic(padding, reach)
    pads = [low + high for low, high in zip(before, after, strict=True)]
    result = [places(op, *numbers) for numbers in zip(sizes, kernel, strides, dilations, pads, strict=True)]
    return Window(strides, dilations, before, after, result)
