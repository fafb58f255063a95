"""Rules about reductions along axes of one element: nothing is added up there, or compared.

    sum(x, axis=[1])                 →    squeeze(x, axis=[1])     axis 1 has one element; max, min, prod, mean likewise
    sum(x, axis=[1], keepdims=1)     →    x
    sqrt(x * x)                      →    abs(x)                   the norm of one element

The last one is exact also where the square is too large, or too small, for its type.
"""

from __future__ import annotations

from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.registry import make
from loopwright.relay.transform.simplify.rules.rule import rule, shape_of
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call


@rule("sum", "max", "min", "prod", "mean")
def reduction_of_one_element(call: Call, types: TypedRewrite) -> Expr | None:
    shape = shape_of(types, call.args[0])
    if shape is None:
        return None
    axes = call.attrs.axes(len(shape))
    if any(not isinstance(shape[axis], int) or shape[axis] != 1 for axis in axes):
        return None
    return call.args[0] if call.attrs.keepdims or not axes else make("squeeze", call.args[0], axis=tuple(axes))


@rule("sqrt")
def root_of_a_square(call: Call, types: TypedRewrite) -> Expr | None:
    """Also of a square that is reshaped before its root is taken."""
    square = call.args[0]
    moves = is_call(square, "squeeze", "reshape", "expand_dims")
    inner = square.args[0] if moves else square  # type: ignore[attr-defined]
    if not is_call(inner, "multiply") or inner.args[0] is not inner.args[1]:
        return None
    of = types.tensor_type(inner)
    if of is None or not of.dtype.is_float:
        return None
    result = make("abs", inner.args[0])
    return Call(square.op, [result, *square.args[1:]], square.attrs) if moves else result  # type: ignore[attr-defined]
