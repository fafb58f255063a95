"""attention_masks: what conditions and constants hide from a softmax of scores, for FuseAttention.

triangle(cond, (4, 4), types)       0: true up to the diagonal; 1: up to one place after it; None: another condition
tells_dead(dead, cond, types)       whether `dead` is !any(cond) along the keys: the rows that see nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loopwright.relay.expr import Call, Constant, Expr, const
from loopwright.relay.op.registry import make
from loopwright.relay.transform.simplify.rules.rule import shape_of, splat
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import Dim, same_dims

HIDDEN: Final = -1e8  # so low, a number added to a score hides it


def as_mask(cond: Expr, dtype: str) -> Expr:
    """0 where the condition holds, -inf where not."""
    if isinstance(cond, Constant):
        return Constant(np.where(cond.data, 0.0, -np.inf).astype(dtype))
    return make("where", cond, const(0.0, dtype), const(-np.inf, dtype))


def tells_dead(dead: object, of: object, types: TypedRewrite) -> bool:
    """Whether `dead` says which rows of the mask `of` hide everything."""
    if is_call(dead, "logical_not") and is_call(dead.args[0], "any"):
        return dead.args[0].args[0] is of and _is_along_keys(dead.args[0], types)
    if is_call(dead, "equal") and is_call(dead.args[0], "max"):
        low = splat(dead.args[1])
        result = dead.args[0].args[0] is of and _is_along_keys(dead.args[0], types)
        return result and low is not None and float(low) == -np.inf
    return False


def _is_along_keys(reduction: Call, types: TypedRewrite) -> bool:
    """Whether a reduction has one result for each row, where it can be laid beside the row."""
    shape, attrs = shape_of(types, reduction.args[0]), reduction.attrs
    if not shape or attrs.axis is None or not attrs.keepdims or attrs.exclude:
        return False
    axes = [attrs.axis] if isinstance(attrs.axis, int) else list(attrs.axis)
    return [int(axis) % len(shape) for axis in axes] == [len(shape) - 1]


def triangle(cond: Expr, matrix: Sequence[Dim], types: TypedRewrite) -> int | None:
    """d, where the condition on scores of shape `matrix` is that a key comes no later than d places after the query."""
    if is_call(cond, "cast") and is_call(cond.args[0], "trilu"):
        result = cond.args[0]
        number = splat(result.args[1]) if len(result.args) > 1 else None
        ones = splat(result.args[0])
        plain = ones is not None and float(ones) == 1.0 and not result.attrs.upper
        if not plain or number is None or int(number) < 0 or not _covers(shape_of(types, result), matrix):
            return None
        return int(number)
    if not isinstance(cond, Constant) or not _covers(cond.data.shape, matrix):
        return None
    if cond.data.size != np.prod(cond.data.shape[-2:]):
        return None
    table = cond.data.reshape(cond.data.shape[-2:]).astype(bool)
    if not table.size or not table[0, 0]:
        return None
    diagonal = int(table[0].sum()) - 1
    return diagonal if np.array_equal(table, np.tri(*table.shape, diagonal, dtype=bool)) else None


def low_triangle(mask: object, matrix: Sequence[Dim], types: TypedRewrite) -> int | None:
    """The same of a constant that is added: 0, and very negative where keys are later."""
    if not isinstance(mask, Constant) or mask.data.dtype.kind != "f":
        return None
    seen = mask.data == 0
    return triangle(Constant(seen), matrix, types) if bool((seen | (mask.data <= HIDDEN)).all()) else None


def _covers(shape: Sequence[Dim] | None, matrix: Sequence[Dim]) -> bool:
    """Whether there is an element for each score: one row that is the same for all queries is no triangle."""
    return shape is not None and same_dims(shape[-2:], matrix)
