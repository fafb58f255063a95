"""rows: the lines of a tensor along one axis, for operators that walk each of them in order and all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import Expr, const
from loopwright.te import Tensor
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.row_major import product, unravel
from loopwright.topi.parts.sizes import is_zero
from loopwright.topi.types import Dim


def check_axis(op: str, data: Tensor, axis: int) -> int:
    """`axis` counted from the front; refuses what is no axis of `data`, or no tensor."""
    if not isinstance(data, Tensor):
        raise InvalidShapeError(op, f"the data is {type(data).__name__} {data!r}, not a tensor", None)
    return axis_of(op, axis, data.ndim)


def unravelled(flat: Expr, sizes: Sequence[Expr]) -> list[Expr]:
    """The indices of element number `flat` of a tensor of these sizes."""
    if any(is_zero(size) for size in sizes):
        return [const(0, flat.dtype)] * len(sizes)  # of no elements, none is ever asked for
    return unravel(flat, sizes)


def rows_along(shape: Sequence[Expr], axis: int) -> tuple[Expr, Callable[[Expr, Dim], tuple[Dim, ...]]]:
    """How many rows run along `axis`, and the indices of element `at` of row number `row`."""
    others = [size for k, size in enumerate(shape) if k != axis]

    def indices(row: Expr, at: Dim) -> tuple[Dim, ...]:
        around = unravelled(row, others)
        return (*around[:axis], at, *around[axis:])

    return product(others), indices
