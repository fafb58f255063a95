"""matrix_set_diag: matrices whose diagonals are replaced.

A diagonal is named by how far it is above the main one: 0 is the main diagonal, 1 the one above it, -1 the one below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum, minimum, select
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import known, one_size
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.types import Dim, Dims, Ints

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _reference(data: np.ndarray, diagonal: np.ndarray, k: Ints = 0, align: str = "RIGHT_LEFT") -> np.ndarray:
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    rows, columns = data.shape[-2:]
    above, below = align.split("_")
    result = data.copy()
    lines = diagonal if low != high else diagonal[..., None, :]
    for d in range(low, high + 1):
        length = min(rows + min(d, 0), columns - max(d, 0))
        side = above if d >= 0 else below
        offset = lines.shape[-1] - length if side == "RIGHT" else 0
        for i in range(length):
            result[..., i - min(d, 0), i + max(d, 0)] = lines[..., high - d, i + offset]
    return result


def _samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 3, 4)), numbers((2, 3), seed=1)))
    yield Sample((numbers((4, 4)), numbers((3,), seed=1), 1))
    yield Sample((numbers((5, 3)), numbers((3,), seed=1), -1))
    for align in _ALIGNMENTS:
        yield Sample((numbers((2, 3, 5)), numbers((2, 4, 3), seed=1), (-1, 2)), {"align": align})
    yield Sample((numbers((0, 2, 2)), numbers((0, 2)), 0))
    yield from of_each_type((2, 2), numbers((2,)))


def _samples_of_one_type() -> Iterator[Sample]:
    for sample in _samples():
        data, diagonal, *rest = sample.args
        yield Sample((data, diagonal.astype(data.dtype), *rest), sample.attributes)


@operator(reference=_reference, samples=_samples_of_one_type)
def matrix_set_diag(data: te.Tensor, diagonal: te.Tensor, k: Dims = 0, align: str = "RIGHT_LEFT") -> te.Tensor:
    """`data`, a matrix or many, with the diagonals `k` (one, or from the lowest to the highest) replaced.

    Of several diagonals, `diagonal` holds one a line, the highest first. Shorter ones are aligned within their line:
    the first word of `align` says how those above the main diagonal are, the second those below.
    """
    op = "matrix_set_diag"
    choose(op, "align", align, _ALIGNMENTS)
    bounds = list(k) if isinstance(k, Sequence) else [k]
    low, high = known(bounds[0]), known(bounds[-1])
    if low is None or high is None or low > high or len(bounds) > 2:
        raise InvalidShapeError(op, f"k is {k!r}", "give the number of a diagonal, or the lowest and the highest")
    lines = 1 if low == high else 2  # dimensions of `diagonal` that are not those of the batch
    rows, columns = data.shape[-2:] if data.ndim >= 2 else (as_expr(0), as_expr(0))
    longest = minimum(rows + min(high, 0), columns - max(low, 0))
    fits = data.ndim >= 2 and diagonal.ndim == data.ndim - 2 + lines and diagonal.dtype == data.dtype
    wanted: list[Dim] = [*data.shape[:-2], *([high - low + 1] if lines == 2 else []), longest] if fits else []
    if not fits or not all([one_size(own, size) for size, own in zip(wanted, diagonal.shape, strict=True)]):
        raise InvalidShapeError(
            op,
            f"diagonals {low} to {high} of {data.dtype} {data.name}, of shape {shape_text(data.shape)}, cannot be "
            f"{diagonal.dtype} {diagonal.name}, of shape {shape_text(diagonal.shape)}",
            "the last dimension is as long as the longest diagonal, the one before it, for several, their number",
        )
    above, below = align.split("_")
    width = diagonal.shape[-1]

    def cell(*at: Expr) -> Expr:
        row, column = at[-2:]
        number = column - row
        along = minimum(row, column)
        offset: Expr = as_expr(0)
        if lines == 2:
            length = minimum(rows + minimum(number, 0), columns - maximum(number, 0))
            right = width - length
            offset = select(
                number >= 0,
                right if above == "RIGHT" else as_expr(0),
                right if below == "RIGHT" else as_expr(0),
            )
        location = [*at[:-2], *([high - number] if lines == 2 else []), along + offset]
        return if_then_else(all_of(number >= low, number <= high), diagonal(*location), data(*at))

    return moved(data.shape, cell, "T_matrix_set_diag")
