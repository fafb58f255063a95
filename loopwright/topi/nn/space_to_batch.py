"""Space and batch: blocks of a spatial grid parallelised over the batch, and back.

    space_to_batch_nd(data, (2, 2), (0, 0), (0, 0))     (n, 2·h, 2·w, c)  →  (4·n, h, w, c)
    batch_to_space_nd(data, (2, 2), (0, 0), (0, 0))     (4·n, h, w, c)  →  (n, 2·h, 2·w, c)

The batch is dimension 0, the spatial dimensions follow it. What a dilated convolution reads becomes dense this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import BadWindow, InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.row_major import ravel, unravel
from loopwright.topi.parts.sizes import at_least, each, is_zero, known, multiple_of, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.types import Shape


def _blocks(
    op: str, data: te.Tensor, block_shape: Shape, first: tuple[str, Shape], last: tuple[str, Shape]
) -> tuple[list[int], list[int], list[int]]:
    """The sizes of a block, and what is added or cut at both ends."""
    count = len(block_shape) if isinstance(block_shape, Sequence) else 1
    if data.ndim < count + 1:
        raise InvalidShapeError(
            op,
            f"{data.name} of shape {shape_text(data.shape)} has no batch and {count} spatial dimensions",
            "give one size of a block for each spatial dimension, after the batch",
        )
    return each(op, "block_shape", block_shape, count), *(
        each(op, what, amounts, count, least=0) for what, amounts in (first, last)
    )  # type: ignore[return-value]


def _to_batch_reference(
    data: np.ndarray,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> np.ndarray:
    m = len(block_shape)
    ends = [(0, 0), *zip(pad_before, pad_after, strict=True), *[(0, 0)] * (data.ndim - m - 1)]
    x = np.pad(data, ends, constant_values=pad_value)
    sizes = [size // block for size, block in zip(x.shape[1:], block_shape, strict=False)]
    rest = x.shape[m + 1 :]
    split = [part for pair in zip(sizes, block_shape, strict=True) for part in pair]
    x = x.reshape([x.shape[0], *split, *rest])
    order = [2 * k + 2 for k in range(m)] + [0] + [2 * k + 1 for k in range(m)] + list(range(2 * m + 1, x.ndim))
    return x.transpose(order).reshape([data.shape[0] * prod(block_shape), *sizes, *rest])


def _to_batch_samples() -> Iterator[Sample]:
    yield Sample((numbers((1, 4, 6, 2)), [2, 3], [0, 0], [0, 0]))
    yield Sample((numbers((2, 3, 5, 2)), [2, 3], [1, 0], [0, 1]), {"pad_value": -1.5})
    yield Sample((numbers((2, 7)), [4], [0], [1]))
    yield Sample((numbers((3, 2, 2)), [1, 1], [0, 0], [0, 0]))
    yield Sample((numbers((0, 4)), [2], [0], [0]))
    yield from of_each_type((2, 4), [2], [0], [0])


@operator(reference=_to_batch_reference, samples=_to_batch_samples, name="nn.space_to_batch_nd")
def space_to_batch_nd(
    data: te.Tensor, block_shape: Sequence[int], pad_before: Shape, pad_after: Shape, pad_value: float = 0.0
) -> te.Tensor:
    """`data`, padded, with the elements of each block parallelised over as many batches."""
    op = "space_to_batch_nd"
    blocks, before, after = _blocks(op, data, block_shape, ("pad_before", pad_before), ("pad_after", pad_after))
    count = len(blocks)
    batch, spatial, rest = data.shape[0], data.shape[1 : count + 1], data.shape[count + 1 :]
    padded = [simplify(size + low + high) for size, low, high in zip(spatial, before, after, strict=True)]
    for k, (size, block) in enumerate(zip(padded, blocks, strict=True)):
        if not multiple_of(size, block):
            problem = f"spatial dimension {k} has size {known(size)}, padding included, which {block} does not divide"
            raise BadWindow(op, problem, "pad more, or take another block")
    value = as_expr(pad_value).astype(data.dtype)

    def cell(*at: Expr) -> Expr:
        if is_zero(batch):
            return data(*[0] * data.ndim)  # never computed; and nothing is divided by 0
        corner = unravel(at[0] // batch, blocks)
        locations, inside = [], []
        for k, (low, high) in enumerate(zip(before, after, strict=True)):
            location = at[k + 1] * blocks[k] + corner[k] - low
            locations.append(location)
            inside += [location >= 0] if low else []
            inside += [location < spatial[k]] if high else []
        read = data(at[0] % batch, *locations, *at[count + 1 :])
        return if_then_else(all_of(*inside), read, value) if inside else read

    sizes = [simplify(size // block) for size, block in zip(padded, blocks, strict=True)]
    return moved((simplify(batch * prod(blocks)), *sizes, *rest), cell, op)


def _to_space_reference(
    data: np.ndarray, block_shape: Sequence[int], crop_begin: Sequence[int], crop_end: Sequence[int]
) -> np.ndarray:
    m = len(block_shape)
    batch = data.shape[0] // prod(block_shape)
    x = data.reshape([*block_shape, batch, *data.shape[1:]])
    order = [m, *[axis for k in range(m) for axis in (m + 1 + k, k)], *range(2 * m + 1, x.ndim)]
    sizes = [size * block for size, block in zip(data.shape[1:], block_shape, strict=False)]
    x = x.transpose(order).reshape([batch, *sizes, *data.shape[m + 1 :]])
    cuts = [slice(low, size - high) for low, high, size in zip(crop_begin, crop_end, sizes, strict=True)]
    return x[(slice(None), *cuts)]


def _to_space_samples() -> Iterator[Sample]:
    yield Sample((numbers((6, 2, 3, 2)), [2, 3], [0, 0], [0, 0]))
    yield Sample((numbers((12, 2, 3)), [2, 3], [1, 0], [0, 4]))
    yield Sample((numbers((8, 3)), [4], [2], [3]))
    yield Sample((numbers((3, 2, 2)), [1, 1], [0, 0], [0, 0]))
    yield Sample((numbers((4, 0, 3)), [2], [0], [0]))
    yield from of_each_type((4, 2), [2], [0], [1])


@operator(reference=_to_space_reference, samples=_to_space_samples, name="nn.batch_to_space_nd")
def batch_to_space_nd(data: te.Tensor, block_shape: Sequence[int], crop_begin: Shape, crop_end: Shape) -> te.Tensor:
    """`data` with its batches put back into blocks of the spatial grid, which is then cut at both ends."""
    op = "batch_to_space_nd"
    blocks, begin, end = _blocks(op, data, block_shape, ("crop_begin", crop_begin), ("crop_end", crop_end))
    count = len(blocks)
    if not multiple_of(data.shape[0], prod(blocks)):
        problem = f"{known(data.shape[0])} batches do not fill blocks of {' × '.join(map(str, blocks))}"
        raise InvalidShapeError(op, problem, "the batch is a multiple of the size of a block")
    batch = simplify(data.shape[0] // prod(blocks))
    sizes = [
        simplify(size * block - low - high)
        for size, block, low, high in zip(data.shape[1:], blocks, begin, end, strict=False)
    ]
    for k, size in enumerate(sizes):
        if not at_least(size, 0):
            problem = f"spatial dimension {k} has {known(size + begin[k] + end[k])} elements, fewer than are cut off"
            raise BadWindow(op, problem, "cut off less")

    def cell(*at: Expr) -> Expr:
        locations = [at[k + 1] + low for k, low in enumerate(begin)]
        corner = ravel([location % block for location, block in zip(locations, blocks, strict=True)], blocks)
        inner = [location // block for location, block in zip(locations, blocks, strict=True)]
        return data(corner * batch + at[0], *inner, *at[count + 1 :])

    return moved((batch, *sizes, *data.shape[count + 1 :]), cell, op)
