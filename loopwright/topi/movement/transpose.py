"""Transposing and flipping: axes in another order, or read from their end.

transpose(a, (1, 0))    out[j, i] = a[i, j]
flip(a, 0)              out[i, j] = a[n - 1 - i, j]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import BadAxis, axes_of, axis_of
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type


def _transpose_samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 3, 5)),))
    yield Sample((numbers((2, 3, 5)), (1, 2, 0)))
    yield Sample((numbers((2, 3, 4, 1)), (0, -1, 1, -2)))
    yield Sample((numbers((17, 33)), (1, 0)))
    yield Sample((numbers((0, 4)),))
    yield Sample((numbers(()),))
    yield from of_each_type((3, 2))


@operator(reference=np.transpose, samples=_transpose_samples)
def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """`a` with its axes in the order of `axes`, or reversed."""
    order = list(range(a.ndim))[::-1] if axes is None else axes_of("transpose", axes, a.ndim, "axes")
    if len(order) != a.ndim:
        raise BadAxis("transpose", f"axes {tuple(order)} do not name all {a.ndim} of {a.name}", "name each axis once")

    def cell(*indices: Expr) -> Expr:
        at = dict(zip(order, indices, strict=True))
        return a(*[at[axis] for axis in range(a.ndim)])

    shape = tuple(a.shape[k] for k in order)
    return moved(shape, cell, "T_transpose")


def _flip_samples() -> Iterator[Sample]:
    yield Sample((numbers((3, 5)),))
    yield Sample((numbers((3, 5)), -1))
    yield Sample((numbers((2, 3, 4)), 1))
    yield Sample((numbers((0, 5)), 0))
    yield from of_each_type((5,), 0)


@operator(reference=lambda a, axis=0: np.flip(a, axis), samples=_flip_samples)
def flip(a: te.Tensor, axis: int = 0) -> te.Tensor:
    """`a` read from the end of `axis`."""
    along = axis_of("flip", axis, a.ndim)

    def cell(*indices: Expr) -> Expr:
        return a(*indices[:along], a.shape[along] - 1 - indices[along], *indices[along + 1 :])

    return moved(a.shape, cell, "T_reverse_sequence")
