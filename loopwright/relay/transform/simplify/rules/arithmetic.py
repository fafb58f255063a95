"""Rules of arithmetic: what adds nothing goes, constants meet, sums and products take shorter forms.

    x + 0, x * 1             →    x
    (x * a) * b              →    x * (a * b)                 a and b constants
    (x + a) * b              →    x * b + a * b
    x + x                    →    x * 2
    x*x + 2*x*y + y*y        →    (x + y) * (x + y)
    y / sqrt(x)              →    y * rsqrt(x)

Real numbers may be rounded otherwise by these, as they are by a compiler that orders sums anew.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from loopwright.relay.expr import Call, Constant, Expr, numpy_type
from loopwright.relay.op.registry import make
from loopwright.relay.transform.simplify.rules.rule import rule, same_value, splat
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import TensorType, is_any, same_type

# The number that changes nothing, and whether it may stand on either side.
_NEUTRAL = {"add": (0, True), "subtract": (0, False), "multiply": (1, True), "divide": (1, False)}


@rule(*_NEUTRAL)
def neutral_operand(call: Call, types: TypedRewrite) -> Expr | None:
    """x + 0, x - 0, x * 1, x / 1."""
    number, either = _NEUTRAL[call.op.name]
    for location in (1, 0) if either else (1,):
        value = splat(call.args[location])
        other = call.args[1 - location]
        if value is not None and value == number and same_value(types, call, other):
            return other
    return None


@rule("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "equal", "less", "greater")
def operand_of_one_value(call: Call, types: TypedRewrite) -> Expr | None:
    """A tensor of one number everywhere is that number, where the other operand has the shape already."""
    of = types.tensor_type(call)
    for location in (0, 1):
        given, other = call.args[location], types.tensor_type(call.args[1 - location])
        if not is_call(given, "full", "zeros", "ones", "broadcast_to") or of is None or other is None:
            continue
        value = splat(given)
        if value is None or not _same_shape(of, other):
            continue
        args = list(call.args)
        args[location] = Constant(value)
        return Call(call.op, args, call.attrs)
    return None


def _same_shape(one: TensorType, other: TensorType) -> bool:
    if any(is_any(size) for size in (*one.shape, *other.shape)):
        return False
    return same_type(TensorType(one.shape, "float32"), TensorType(other.shape, "float32"))


def _folded(name: str, one: Constant, other: Constant) -> Constant | None:
    """The constant of two constants; None where it is no number, or larger than both."""
    with np.errstate(all="ignore"):
        value = one.data + other.data if name == "add" else one.data * other.data
    result = np.asarray(value, one.data.dtype)
    if result.size > max(one.data.size, other.data.size):
        return None
    if result.dtype.kind not in "iub" and not bool(np.isfinite(result.astype("float32")).all()):
        return None
    return Constant(result)


def _constant_side(call: Call) -> tuple[Expr, Constant] | None:
    """The operand that is no constant, and the one that is."""
    one, other = call.args
    if isinstance(other, Constant) and not isinstance(one, Constant):
        return one, other
    if isinstance(one, Constant) and not isinstance(other, Constant):
        return other, one
    return None


@rule("add", "multiply")
def constants_meet(call: Call, types: TypedRewrite) -> Expr | None:
    """(x + a) + b, (x * a) * b and (x + a) * b, where a and b are constants."""
    outer = _constant_side(call)
    if outer is None or not is_call(outer[0], "add", "multiply"):
        return None
    inner = _constant_side(outer[0])
    if inner is None or (outer[0].op.name == "multiply" and call.op.name == "add"):
        return None
    joined = _folded(call.op.name, inner[1], outer[1])
    if joined is None:
        return None
    if outer[0].op.name == call.op.name:
        result = Call(call.op, [inner[0], joined], call.attrs)
    else:
        result = make("add", make("multiply", inner[0], outer[1]), joined)
    return result if same_value(types, call, result) else None


@rule("add")
def twice(call: Call, types: TypedRewrite) -> Expr | None:
    """x + x."""
    of = types.tensor_type(call)
    if call.args[0] is not call.args[1] or of is None or of.dtype.is_bool:
        return None
    return make("multiply", call.args[0], Constant(np.asarray(2, numpy_type(str(of.dtype)))))


@rule("add")
def binomial(call: Call, types: TypedRewrite) -> Expr | None:
    """x*x + 2*x*y + y*y, the three in any order."""
    terms = _terms(call)
    if len(terms) != 3:
        return None
    squares = [term for term in terms if is_call(term, "multiply") and term.args[0] is term.args[1]]
    mixed = [term for term in terms if not any(term is square for square in squares)]
    if len(squares) != 2 or len(mixed) != 1:
        return None
    x, y = squares[0].args[0], squares[1].args[0]
    if Counter(_double_product(mixed[0])) != Counter((x, y)):
        return None
    total = make("add", x, y)
    result = make("multiply", total, total)
    return result if same_value(types, call, result) else None


def _terms(call: Call) -> list[Expr]:
    one, other = call.args
    result: list[Expr] = []
    for side in (one, other):
        result.extend(side.args if is_call(side, "add") else [side])
    return result if len(result) <= 3 else []


def _double_product(term: Expr) -> list[Expr]:
    """x and y of 2 * (x * y), or (x * 2) * y."""
    factors: list[Expr] = []
    stack = [term]
    while stack:
        current = stack.pop()
        if is_call(current, "multiply") and len(factors) + len(stack) < 4:
            stack.extend(current.args)
        else:
            factors.append(current)
    twos = [factor for factor in factors if (value := splat(factor)) is not None and value == 2]
    rest = [factor for factor in factors if not any(factor is two for two in twos)]
    return rest if len(twos) == 1 and len(rest) == 2 else []


@rule("divide")
def divided_by_a_root(call: Call, types: TypedRewrite) -> Expr | None:
    """y / sqrt(x)."""
    if not is_call(call.args[1], "sqrt"):
        return None
    root = make("rsqrt", call.args[1].args[0])
    value = splat(call.args[0])
    if value is not None and value == 1 and same_value(types, call, root):
        return root
    return make("multiply", call.args[0], root)
