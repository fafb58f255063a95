"""Repeating: each element several times, or the whole tensor several times.

repeat([a, b], 2, axis=0)    [a, a, b, b]
tile([a, b], (2,))           [a, b, a, b]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.sizes import known, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.types import Shape


def _repeat_samples() -> Iterator[Sample]:
    yield Sample((numbers((3, 2)), 2, 0))
    yield Sample((numbers((3, 2)), 3, -1))
    yield Sample((numbers((3, 2)), 1, 1))
    yield Sample((numbers((0, 2)), 4, 0))
    yield from of_each_type((3,), 2, 0)


@operator(reference=np.repeat, samples=_repeat_samples)
def repeat(a: te.Tensor, repeats: int, axis: int) -> te.Tensor:
    """Each element of `a` `repeats` times, one after another along `axis`."""
    along = axis_of("repeat", axis, a.ndim)
    count = known(repeats)
    if count is not None and count < 1:
        raise InvalidShapeError("repeat", f"repeats is {count}", "it is at least 1")

    def cell(*indices: Expr) -> Expr:
        return a(*indices[:along], indices[along] // repeats, *indices[along + 1 :])

    shape = (*a.shape[:along], simplify(a.shape[along] * repeats), *a.shape[along + 1 :])
    return moved(shape, cell, "T_repeat", tag.BROADCAST)


def _tile_samples() -> Iterator[Sample]:
    yield Sample((numbers((3, 2)), (2, 3)))
    yield Sample((numbers((3, 2)), (2,)))
    yield Sample((numbers((3,)), (2, 1, 2)))
    yield Sample((numbers((1, 3)), (4, 1)))
    yield Sample((numbers(()), (2, 2)))
    yield Sample((numbers((3,)), (0,)))
    yield Sample((numbers((0, 3)), (2, 2)))
    yield from of_each_type((3,), (2,))


@operator(reference=np.tile, samples=_tile_samples)
def tile(a: te.Tensor, reps: Shape) -> te.Tensor:
    """`a` as many times along each axis as `reps` says; the shorter of `a.shape` and `reps` begins with ones."""
    counts = list(reps) if isinstance(reps, Sequence) else [reps]
    for count in counts:
        number = known(count)
        if number is not None and number < 0:
            raise InvalidShapeError("tile", f"reps {tuple(counts)} holds {number}", "it is at least 0")
    rank = max(len(counts), a.ndim)
    sizes = [*[as_expr(1)] * (rank - a.ndim), *a.shape]
    counts = [*[1] * (rank - len(counts)), *counts]

    def cell(*indices: Expr) -> Expr:
        at = []
        for index, size, count in list(zip(indices, sizes, counts, strict=True))[rank - a.ndim :]:
            whole = known(count) == 1 or known(size) == 0
            at.append(as_expr(0) if known(size) == 1 else index if whole else index % size)
        return a(*at)

    shape = [simplify(size * count) for size, count in zip(sizes, counts, strict=True)]
    return moved(shape, cell, "T_tile", tag.BROADCAST)
