"""layout_transform: the axes of a tensor in another order, split into blocks or joined again, as their letters say.

    layout_transform(data, "NCHW", "NHWC")       out[n, h, w, c] = data[n, c, h, w]
    layout_transform(data, "NCHW", "NCHW8c")     out[n, C, h, w, c] = data[n, C * 8 + c, h, w]

Where a block does not divide its axis, the last block ends in zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from loopwright import te
from loopwright.arith.layout import BijectiveLayout, Layout, bijective_layout
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.sizes import check_rank, check_same, known
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type


def _reference(array: np.ndarray, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> np.ndarray:
    way = bijective_layout(src_layout, dst_layout)
    letters = [axis.name for axis in way.src_layout.axes if not axis.factor]
    source, target = ([axis.name for axis in one.axes] for one in (way.src_layout, way.dst_layout))

    def apart(names: Sequence[str]) -> list[int]:
        """The places of each axis and then of its parts, letter by letter."""
        wanted = [name for letter in letters for name in (letter, letter.lower())]
        return [index for name in wanted for index, own in enumerate(names) if own == name]

    def inner(layout: Layout, letter: str) -> int:
        return prod(axis.factor for axis in layout.axes if axis.name == letter.lower())

    sizes = dict(zip(source, array.shape, strict=True))
    whole = [sizes[letter] * inner(way.src_layout, letter) for letter in letters]
    joined = array.transpose(apart(source)).reshape(whole)
    blocks = [inner(way.dst_layout, letter) for letter in letters]
    missing = [-size % block for size, block in zip(whole, blocks, strict=True)]
    padded = np.pad(joined, [(0, cells) for cells in missing]) if any(missing) else joined  # which copies anyway
    order = apart(target)
    outer = {letter: size // block for letter, size, block in zip(letters, padded.shape, blocks, strict=True)}
    lengths = [axis.factor or outer[axis.name] for axis in way.dst_layout.axes]
    return np.ascontiguousarray(padded.reshape([lengths[location] for location in order]).transpose(np.argsort(order)))


def _samples() -> Iterator[Sample]:
    yield Sample((numbers((1, 3, 2, 4)), "NCHW", "NHWC"))
    yield Sample((numbers((1, 4, 2, 3)), "NCHW", "NCHW2c"))
    yield Sample((numbers((1, 5, 2, 3)), "NCHW", "NCHW4c"))
    yield Sample((numbers((1, 2, 2, 3, 4)), "NCHW4c", "NCHW"))
    yield Sample((numbers((1, 2, 2, 1, 4)), "NCHW4c", "NHWC8c"))
    yield Sample((numbers((5, 6, 1, 2)), "OIHW", "OIHW4i2o"))
    yield Sample((numbers((2, 3)), "NC", "NC"))
    yield Sample((numbers((0, 3)), "NC", "CN"))
    yield from of_each_type((2, 3), "NC", "CN2c")


@operator(reference=_reference, samples=_samples)
def layout_transform(array: te.Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> te.Tensor:
    """`array`, which lies in `src_layout`, laid out as `dst_layout` says; the rule is kept for schedules to read."""
    if src_layout == dst_layout:
        return array
    way: BijectiveLayout = bijective_layout(src_layout, dst_layout)
    check_rank("layout_transform", "array", array, src_layout, len(way.src_layout))
    for axis, size in zip(way.src_layout.axes, array.shape, strict=True):
        if axis.factor:
            check_same("layout_transform", f"axis {axis.name}", (array.name, size), (src_layout, as_expr(axis.factor)))
    shape = way.forward_shape(array.shape)
    padded = [
        k
        for k, (size, whole) in enumerate(zip(array.shape, way.backward_shape(shape), strict=True))
        if known(whole - size) != 0
    ]

    def cell(*indices: Expr) -> Expr:
        at = way.backward_index(indices)
        if not padded:
            return array(*at)
        inside = all_of(*[at[k] < array.shape[k] for k in padded])
        return if_then_else(inside, array(*at), const(0, array.dtype))

    attrs: dict[str, object] = {"src_layout": src_layout, "dst_layout": dst_layout, "schedule_rule": schedule_rule}
    return moved(shape, cell, "T_layout_trans", attrs=attrs)
