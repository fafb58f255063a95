"""Row-major order: the place of an element when a tensor is read row after row, and the indices of such a place.

ravel((y, x), (4, 5))     →  y * 5 + x
unravel(place, (4, 5))    →  [place // 5, place % 5]
"""

from __future__ import annotations

from loopwright import ir
from loopwright.ir import Expr, IntImm, Var, as_expr
from loopwright.runtime.dtype import INT64, DataType
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.sizes import simplify
from loopwright.topi.types import Dim, DType, Shape


def ravel(indices: Shape, shape: Shape) -> Expr:
    """The place of the element at `indices` of a tensor of `shape`."""
    location = as_expr(0)
    for index, size in zip(indices, shape, strict=True):
        location = location * size + index
    return location


def unravel(location: Dim, shape: Shape) -> list[Expr]:
    """The indices of a place. The first one is not wrapped: a place within the tensor needs no division there."""
    indices: list[Expr] = []
    rest = as_expr(location)
    for size in reversed(shape[1:]):
        indices.append(rest % size)
        rest = rest // size
    return [*([rest] if shape else []), *reversed(indices)]


def product(sizes: Shape) -> Expr:
    """How many elements a tensor of these sizes has, in the type of the sizes; int64 where a literal needs it."""
    return simplify(ir.product(sizes))


def count_as(dtype: DType, sizes: Shape, op: str) -> Expr:
    """`product` as a value of a type, which has to hold it."""
    kind, total = DataType(dtype), product(sizes)
    if isinstance(total, IntImm):
        if kind.is_int and not kind.lowest <= total.value <= kind.highest:
            raise InvalidShapeError(
                op, f"{total.value} elements are more than {kind} can count", 'ask for dtype="int64"', dtype=str(kind)
            )
        return total.astype(kind)
    # A conversion takes the low bits of its operand's type: what may be larger is multiplied in 64.
    return (total if isinstance(total, Var) else ir.product(sizes, INT64)).astype(kind)
