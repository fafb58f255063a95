"""Rules about conversions and limits: those that change nothing go, two become one.

cast(cast(x, "float64"), "float16")    →    cast(x, "float16")       from float32: nothing is lost on the way
clip(clip(x, 0, 6), 1, 9)              →    clip(x, 1, 6)
argmax(qnn.dequantize(x))              →    argmax(x)
"""

from __future__ import annotations

from loopwright.relay.expr import Call, Constant, Expr
from loopwright.relay.op.registry import make
from loopwright.relay.transform.simplify.rules.rule import rule, splat
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.runtime.dtype import DataType

# Bits of the fraction (with the leading one), greatest exponent.
_FLOATS = {"float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "float64": (53, 1023)}


@rule("cast")
def cast_to_own_type(call: Call, types: TypedRewrite) -> Expr | None:
    of = types.tensor_type(call.args[0])
    return call.args[0] if of is not None and str(of.dtype) == str(DataType(call.attrs.dtype)) else None


@rule("cast")
def cast_of_a_cast(call: Call, types: TypedRewrite) -> Expr | None:
    """The way through a type that holds all there was is not needed."""
    inner = call.args[0]
    if not is_call(inner, "cast"):
        return None
    first = types.tensor_type(inner.args[0])
    if first is None or not _holds(str(DataType(inner.attrs.dtype)), str(first.dtype)):
        return None
    return make("cast", inner.args[0], dtype=call.attrs.dtype)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every number of one type is one of the other."""
    if wide == narrow:
        return True
    one, other = DataType(wide), DataType(narrow)
    if other.is_bool:
        return one.is_int or wide in _FLOATS
    if wide in _FLOATS and narrow in _FLOATS:
        return all(a >= b for a, b in zip(_FLOATS[wide], _FLOATS[narrow], strict=True))
    if narrow in _FLOATS or one.is_bool:
        return False
    low, high = int(other.min_value()), int(other.max_value())
    if wide in _FLOATS:
        return max(-low, high) <= 2 ** _FLOATS[wide][0] and high < 2 ** _FLOATS[wide][1]
    if not (one.is_int and other.is_int):
        return False
    return int(one.min_value()) <= low and high <= int(one.max_value())


@rule("clip")
def clip_of_a_clip(call: Call, types: TypedRewrite) -> Expr | None:
    inner = call.args[0]
    if not is_call(inner, "clip"):
        return None
    low, high = max(call.attrs.a_min, inner.attrs.a_min), min(call.attrs.a_max, inner.attrs.a_max)
    return make("clip", inner.args[0], a_min=low, a_max=high) if low <= high else None


@rule("clip")
def clip_to_limits(call: Call, types: TypedRewrite) -> Expr | None:
    """An integer is within the limits of its type."""
    of = types.tensor_type(call)
    if of is None or not of.dtype.is_int:
        return None
    inside = call.attrs.a_min <= int(of.dtype.min_value()) and call.attrs.a_max >= int(of.dtype.max_value())
    return call.args[0] if inside else None


@rule("argmax", "argmin")
def order_of_stored_numbers(call: Call, types: TypedRewrite) -> Expr | None:
    """Stored integers are ordered as the numbers they stand for, where one positive scale is everywhere."""
    inner = call.args[0]
    if not is_call(inner, "qnn.dequantize") or not isinstance(inner.args[1], Constant):
        return None
    scale = splat(inner.args[1])
    if scale is None or not scale > 0 or not (isinstance(inner.args[2], Constant) and splat(inner.args[2]) is not None):
        return None
    return Call(call.op, [inner.args[0]], call.attrs)
