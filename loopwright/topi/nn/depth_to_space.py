"""Depth and space: channels that become blocks of pixels, and back.

depth_to_space(data, 2)    (n, 4·c, h, w)  →  (n, c, 2·h, 2·w)
space_to_depth(data, 2)    (n, c, 2·h, 2·w)  →  (n, 4·c, h, w)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import check_rank, each, known, multiple_of, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type

_LAYOUTS: Final = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2)}  # where N, C, H and W are


def _checked(op: str, data: te.Tensor, block_size: int, layout: str) -> tuple[int, list[Expr]]:
    """The size of a block, and the sizes of N, C, H and W."""
    if layout not in _LAYOUTS:
        raise UnsupportedLayout(op, layout, "the layouts are NCHW and NHWC")
    check_rank(op, "data", data, layout, 4)
    (block,) = each(op, "block_size", block_size, 1)
    return block, [data.shape[k] for k in _LAYOUTS[layout]]


def _divisible(op: str, data: te.Tensor, size: Expr, by: int, what: str) -> None:
    if not multiple_of(size, by):
        raise InvalidShapeError(
            op,
            f"{data.name} of shape {shape_text(data.shape)} has {known(size)} {what}, which {by} does not divide",
            "take another block size, or pad the data",
        )


def _in_layout(values: tuple[Expr, Expr, Expr, Expr], layout: str) -> list[Expr]:
    """N, C, H and W in the order of the layout."""
    return [values["NCHW".index(letter)] for letter in layout]


def _to_space_reference(data: np.ndarray, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> np.ndarray:
    x = data if layout == "NCHW" else data.transpose(0, 3, 1, 2)
    n, c, h, w = x.shape
    b, rest = block_size, c // block_size**2
    if mode == "DCR":
        y = x.reshape(n, b, b, rest, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, rest, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    y = y.reshape(n, rest, h * b, w * b)
    return y if layout == "NCHW" else y.transpose(0, 2, 3, 1)


def _to_space_samples() -> Iterator[Sample]:
    yield Sample((numbers((1, 8, 2, 3)), 2))
    yield Sample((numbers((2, 8, 2, 3)), 2), {"mode": "CDR"})
    yield Sample((numbers((1, 2, 3, 18)), 3, "NHWC"))
    yield Sample((numbers((1, 2, 3, 8)), 2, "NHWC", "CDR"))
    yield Sample((numbers((1, 3, 2, 2)), 1))
    yield Sample((numbers((0, 4, 2, 2)), 2))
    yield from of_each_type((1, 4, 2, 1), 2)


@operator(reference=_to_space_reference, samples=_to_space_samples, name="nn.depth_to_space")
def depth_to_space(data: te.Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> te.Tensor:
    """`data` with its channels parallelised over blocks of pixels.

    With mode "DCR" the place in the block is the outer part of the channel, with "CDR" its inner part.
    """
    op = "depth_to_space"
    choose(op, "mode", mode, ("DCR", "CDR"))
    b, (n, c, h, w) = _checked(op, data, block_size, layout)
    _divisible(op, data, c, b * b, "channels")
    rest = simplify(c // (b * b))

    def cell(*at: Expr) -> Expr:
        image, channel, y, x = (at[k] for k in _LAYOUTS[layout])
        corner = (y % b) * b + x % b
        depth = corner * rest + channel if mode == "DCR" else channel * (b * b) + corner
        return data(*_in_layout((image, depth, y // b, x // b), layout))

    return moved(_in_layout((n, rest, simplify(h * b), simplify(w * b)), layout), cell, op)


def _to_depth_reference(data: np.ndarray, block_size: int, layout: str = "NCHW") -> np.ndarray:
    x = data if layout == "NCHW" else data.transpose(0, 3, 1, 2)
    n, c, h, w = x.shape
    b = block_size
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)
    return y if layout == "NCHW" else y.transpose(0, 2, 3, 1)


def _to_depth_samples() -> Iterator[Sample]:
    yield Sample((numbers((1, 3, 4, 6)), 2))
    yield Sample((numbers((2, 3, 6, 2)), 3, "NHWC"))
    yield Sample((numbers((1, 2, 3, 3)), 1))
    yield Sample((numbers((1, 0, 4, 4)), 2))
    yield from of_each_type((1, 1, 2, 4), 2)


@operator(reference=_to_depth_reference, samples=_to_depth_samples, name="nn.space_to_depth")
def space_to_depth(data: te.Tensor, block_size: int, layout: str = "NCHW") -> te.Tensor:
    """`data` with each block of pixels put into channels: the place in the block is the outer part of the channel."""
    op = "space_to_depth"
    b, (n, c, h, w) = _checked(op, data, block_size, layout)
    _divisible(op, data, h, b, "rows")
    _divisible(op, data, w, b, "columns")

    def cell(*at: Expr) -> Expr:
        image, depth, y, x = (at[k] for k in _LAYOUTS[layout])
        if known(c) == 0:
            return data(0, 0, 0, 0)  # never computed; and nothing is divided by 0
        corner = depth // c
        return data(*_in_layout((image, depth % c, y * b + corner // b, x * b + corner % b), layout))

    return moved(_in_layout((n, simplify(c * (b * b)), simplify(h // b), simplify(w // b)), layout), cell, op)
