"""fifo_buffer: a window of the latest data, moved on by what has just come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.ir.intrinsics import if_then_else
from loopwright.te.assumed_sizes import assume
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.sizes import known, one_size, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers


def _reference(data: np.ndarray, buffer: np.ndarray, axis: int) -> np.ndarray:
    both = np.concatenate([buffer, data], axis)
    return np.take(both, np.arange(data.shape[axis], both.shape[axis]), axis)


def _samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 1, 3)), numbers((2, 4, 3), seed=1), 1))
    yield Sample((numbers((2, 3)), numbers((2, 7), seed=1), -1))
    yield Sample((numbers((4,)), numbers((4,), seed=1), 0))
    yield Sample((numbers((0, 3)), numbers((4, 3), seed=1), 0))
    for dtype in TYPES:
        yield Sample((numbers((2,), dtype), numbers((5,), dtype, 1), 0))


@operator(reference=_reference, samples=_samples, name="nn.fifo_buffer")
def fifo_buffer(data: te.Tensor, buffer: te.Tensor, axis: int) -> te.Tensor:
    """`buffer` with its oldest elements along `axis` dropped and `data` put at its end, as many."""
    op = "fifo_buffer"
    along = axis_of(op, axis, buffer.ndim)
    others = [k for k in range(buffer.ndim) if k != along]
    fits = data.ndim == buffer.ndim and all([one_size(data.shape[k], buffer.shape[k]) for k in others])
    kept = simplify(buffer.shape[along] - data.shape[along]) if fits else None
    if kept is None or data.dtype != buffer.dtype or (known(kept) or 0) < 0:
        raise InvalidShapeError(
            op,
            f"{data.dtype} {data.name} of shape {shape_text(data.shape)} does not go into {buffer.dtype} "
            f"{buffer.name} of shape {shape_text(buffer.shape)} along axis {along}",
            "data has the type and the shape of the buffer, and is no longer along the axis",
        )
    if known(kept) is None:
        assume(kept >= 0, [data.shape[along], buffer.shape[along]], "the first to be no larger than the second")

    def cell(*at: Expr) -> Expr:
        def read(source: te.Tensor, index: Expr) -> Expr:
            return source(*at[:along], index, *at[along + 1 :])

        old = read(buffer, at[along] + data.shape[along])
        return if_then_else(at[along] < kept, old, read(data, at[along] - kept))

    return moved(buffer.shape, cell, op)
