"""Rules for operators that take their shape or type from another tensor: they say it themselves, where it is known.

    zeros_like(x)       →    zeros(shape of x)
    cast_like(x, y)     →    cast(x, type of y)

The other tensor need not be there then.
"""

from __future__ import annotations

import numpy as np

from loopwright.relay.expr import Call, Constant, Expr, numpy_type
from loopwright.relay.op.registry import make
from loopwright.relay.transform.simplify.rules.rule import rule, same_value, shape_of, splat
from loopwright.relay.transform.typed_rewrite import TypedRewrite
from loopwright.relay.types import is_dynamic


@rule("zeros_like", "ones_like")
def filled(call: Call, types: TypedRewrite) -> Expr | None:
    shape = shape_of(types, call)
    if shape is None:
        return None
    return make(call.op.name.removesuffix("_like"), shape=shape, dtype=str(types.type_of_tensor(call).dtype))


@rule("full_like")
def full(call: Call, types: TypedRewrite) -> Expr | None:
    shape = shape_of(types, call)
    if shape is None:
        return None
    return make("full", call.args[1], shape=shape, dtype=str(types.type_of_tensor(call).dtype))


@rule("full")
def full_of_a_constant(call: Call, types: TypedRewrite) -> Expr | None:
    """A full tensor of no dimensions is its number."""
    value = splat(call.args[0])
    if value is None or call.attrs.shape:
        return None
    dtype = call.attrs.dtype or str(types.type_of_tensor(call).dtype)
    return Constant(np.asarray(value, numpy_type(dtype)))


@rule("cast_like")
def cast(call: Call, types: TypedRewrite) -> Expr | None:
    return make("cast", call.args[0], dtype=str(types.type_of_tensor(call).dtype))


@rule("reshape_like")
def reshape(call: Call, types: TypedRewrite) -> Expr | None:
    shape = shape_of(types, call)
    if shape is None or any(isinstance(size, int) and size == 0 for size in shape):
        return None
    return make("reshape", call.args[0], newshape=shape)


@rule("broadcast_to_like")
def broadcast_to(call: Call, types: TypedRewrite) -> Expr | None:
    shape = shape_of(types, call)
    return None if shape is None else make("broadcast_to", call.args[0], shape=shape)


@rule("collapse_sum_like")
def collapse_sum(call: Call, types: TypedRewrite) -> Expr | None:
    if same_value(types, call, call.args[0]):
        return call.args[0]
    shape = shape_of(types, call)
    return None if shape is None else make("collapse_sum_to", call.args[0], shape=shape)


@rule("slice_like")
def strided_slice(call: Call, types: TypedRewrite) -> Expr | None:
    if same_value(types, call, call.args[0]):
        return call.args[0]
    of = types.tensor_type(call)
    if of is None or is_dynamic(of):
        return None
    rank = len(of.shape)
    return make("strided_slice", call.args[0], begin=(0,) * rank, end=of.concrete_shape, strides=(1,) * rank)
