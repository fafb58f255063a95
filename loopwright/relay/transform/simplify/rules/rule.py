"""rule: how a simplification is written.

    @rule("cast")
    def cast_to_own_type(call, types):
        return call.args[0] if types.tensor_type(call.args[0]).dtype == call.attrs.dtype else None

A rule returns what the call becomes, or None where it has nothing to say. `types` answers for the types of expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from loopwright.relay.expr import Call, Constant, Expr
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import Dim, TensorType, same_type

Rule = Callable[[Call, TypedRewrite], Expr | None]

RULES: Final[dict[str, list[Rule]]] = {}  # operator → its rules, in the order they are tried


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Enter a rule for calls of these operators."""

    def enter(result: Rule) -> Rule:
        for name in operators:
            RULES.setdefault(name, []).append(result)
        return result

    return enter


def same_value(types: TypedRewrite, one: Expr, other: Expr) -> bool:
    """Whether two expressions have the same type, so that one may stand for the other."""
    return same_type(types.type_of(one), types.type_of(other))


def shape_of(types: TypedRewrite, expression: Expr) -> tuple[Dim, ...] | None:
    """The shape of an expression whose every size is a number or an expression of size variables."""
    of = types.tensor_type(expression)
    if of is None or not _is_known(of):
        return None
    return of.shape


def _is_known(of: TensorType) -> bool:
    from loopwright.relay.types import is_any

    return not any(is_any(size) for size in of.shape)


def splat(expression: Expr) -> np.ndarray | None:
    """The one number that an expression has everywhere, as an array of no dimensions; None where it has several."""
    if isinstance(expression, Constant):
        data = expression.data
        if data.size and (data.size == 1 or (data.size <= 4096 and bool((data == data.flat[0]).all()))):
            return np.asarray(data.flat[0])
        return None
    if is_call(expression, "zeros", "ones"):
        from loopwright.relay.expr import numpy_type

        return np.asarray(int(expression.op.name == "ones"), numpy_type(expression.attrs.dtype))
    if is_call(expression, "full", "broadcast_to", "reshape", "expand_dims"):
        inner = splat(expression.args[0])
        if inner is not None and is_call(expression, "full") and expression.attrs.dtype:
            from loopwright.relay.expr import numpy_type

            return inner.astype(numpy_type(expression.attrs.dtype))
        return inner
    return None
