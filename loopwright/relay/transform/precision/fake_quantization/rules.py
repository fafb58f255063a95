"""The rules by which operators compute on stored integers.

    @integer_rule("nn.relu")
    def relu(call, args, wanted): ...

A rule takes the call, its arguments as integers (`Quantized`, or an expression where the argument is no quantized
tensor) and the affine that the end of the island wants, where that may be given already (None where it may not). It
returns the result as integers, or None where it does not apply. Users add their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from loopwright.relay.expr import Call, Constant, Expr, Tuple, const
from loopwright.relay.op.qnn.scales import limits
from loopwright.relay.op.registry import make
from loopwright.relay.op.sizes import normal_axes
from loopwright.relay.transform.precision.fake_quantization.affine import (
    Affine,
    Operand,
    Quantized,
    no_zero_point,
    products_scale,
    requantized,
)
from loopwright.relay.types import TensorType

Rule = Callable[[Call, Sequence[Operand], Affine | None], Quantized | None]

RULES: Final[dict[str, Rule]] = {}


def integer_rule(*operators: str) -> Callable[[Rule], Rule]:
    """Enter the rule of an operator (or of several)."""

    def enter(rule: Rule) -> Rule:
        for name in operators:
            RULES[name] = rule
        return rule

    return enter


def _integers(arg: Operand) -> Quantized:
    """An argument that is a quantized tensor wherever the operator has one."""
    assert isinstance(arg, Quantized)
    return arg


# Operators whose results are the numbers of their first argument: the end of an island may be chosen before them.
KEEPS_NUMBERS: Final = frozenset(
    (
        "reshape transpose squeeze expand_dims strided_slice nn.batch_flatten copy reverse tile repeat broadcast_to "
        "take layout_transform concatenate nn.pad nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.global_max_pool2d "
        "nn.depth_to_space nn.space_to_depth max min maximum minimum nn.relu clip"
    ).split()
)


@integer_rule(
    "reshape",
    "squeeze",
    "expand_dims",
    "strided_slice",
    "nn.batch_flatten",
    "copy",
    "reverse",
    "tile",
    "repeat",
    "nn.max_pool1d",
    "nn.max_pool2d",
    "nn.max_pool3d",
    "nn.global_max_pool2d",
    "nn.depth_to_space",
    "nn.space_to_depth",
    "broadcast_to",
    "layout_transform",
    "take",
    "max",
    "min",
)
def moves(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """Numbers are moved, or chosen by their order: so are the integers."""
    data, others = _integers(args[0]), [arg for arg in args[1:] if isinstance(arg, Expr)]
    if data.affine.is_per_channel or len(others) < len(args) - 1:
        return None
    return Quantized(Call(call.op, [data.expr, *others], call.attrs, span=call.span), data.affine)


@integer_rule("transpose")
def transpose(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    data = _integers(args[0])
    affine = data.affine
    if affine.is_per_channel:
        of = call.args[0].checked_type
        assert isinstance(of, TensorType)
        rank = len(of.shape)
        order = list(range(rank))[::-1] if call.attrs.axes is None else [axis % rank for axis in call.attrs.axes]
        affine = Affine(affine.scale, affine.zero_point, affine.dtype, order.index(affine.axis % rank))
    return Quantized(Call(call.op, [data.expr], call.attrs, span=call.span), affine)


@integer_rule("nn.pad")
def pad(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """0 is the zero point; other numbers must be ones that an integer stands for."""
    data = _integers(args[0])
    if call.attrs.pad_mode != "constant":
        return moves(call, args, wanted)
    value, scale, zero = call.args[1], data.affine.scale, data.affine.zero_point
    if not isinstance(value, Constant) or not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    if data.affine.is_per_channel:
        return None
    cell = value.data.astype("float64") / scale.data + zero.data
    low, high = limits(data.affine.dtype)
    filled = const(np.clip(np.round(cell), low, high).reshape(()), data.affine.dtype)
    return Quantized(Call(call.op, [data.expr, filled], call.attrs, span=call.span), data.affine)


@integer_rule("nn.relu", "clip")
def limited(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """Limits of the numbers as limits of the integers."""
    data = _integers(args[0])
    low, high = limits(data.affine.dtype)
    if call.op.name == "nn.relu" and data.affine.has_no_zero_point:
        return Quantized(make("clip", data.expr, a_min=0.0, a_max=float(high)), data.affine)
    if data.affine.is_per_channel or not data.affine.is_constant:
        return None
    bounds = (0.0, np.inf) if call.op.name == "nn.relu" else (call.attrs.a_min, call.attrs.a_max)
    places = [float(bound) / data.affine.scale.data + data.affine.zero_point.data for bound in bounds]  # type: ignore[attr-defined]
    ends = [float(np.clip(np.round(location), low, high).reshape(())) for location in places]
    return Quantized(make("clip", data.expr, a_min=ends[0], a_max=ends[1]), data.affine)


@integer_rule("nn.conv2d", "nn.conv2d_transpose")
def convolution(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """Sums of products of the integers, of the scale of products."""
    data, weight = args
    if not isinstance(data, Quantized) or not isinstance(weight, Quantized) or data.affine.is_per_channel:
        return None
    attrs = call.attrs
    kernel = weight.affine
    if kernel.is_per_channel and attrs.kernel_layout.index("O") != kernel.axis % 4:
        return None
    window = attrs.kernel_size
    shape = call.args[1].checked_type.shape  # type: ignore[attr-defined]
    sizes = dict(zip(attrs.kernel_layout, shape, strict=True))
    given = dict(attrs.items()) | {"out_dtype": "int32", "kernel_size": window or (sizes["H"], sizes["W"])}
    scales = data.affine.zero_point, kernel.zero_point, data.affine.scale, kernel.scale
    made = make(f"qnn.{call.op.name.removeprefix('nn.')}", data.expr, weight.expr, *scales, **given)
    out_layout = attrs.out_layout or attrs.data_layout
    return Quantized(made, Affine(products_scale(data.affine, kernel), no_zero_point(), "int32", out_layout.index("C")))


@integer_rule("nn.dense")
def dense(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    data, weight = args
    if not isinstance(data, Quantized) or not isinstance(weight, Quantized) or data.affine.is_per_channel:
        return None
    kernel = weight.affine
    if kernel.is_per_channel and kernel.axis % 2 != 0:
        return None
    scales = data.affine.zero_point, kernel.zero_point, data.affine.scale, kernel.scale
    result = make("qnn.dense", data.expr, weight.expr, *scales, units=call.attrs.units, out_dtype="int32")
    rank = len(call.checked_type.shape)  # type: ignore[attr-defined]
    return Quantized(result, Affine(products_scale(data.affine, kernel), no_zero_point(), "int32", rank - 1))


@integer_rule("nn.batch_matmul")
def batch_matmul(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    one, other = args
    if not isinstance(one, Quantized) or not isinstance(other, Quantized):
        return None
    if one.affine.is_per_channel or other.affine.is_per_channel or call.attrs.transpose_a or not call.attrs.transpose_b:
        return None
    scales = one.affine.zero_point, other.affine.zero_point, one.affine.scale, other.affine.scale
    result = make("qnn.batch_matmul", one.expr, other.expr, *scales, out_dtype="int32")
    return Quantized(result, Affine(products_scale(one.affine, other.affine), no_zero_point(), "int32"))


def _as_integers(value: Operand, affine: Affine, axis: int, rank: int) -> Expr | None:
    """A constant, or integers of the same scale, as int32 of that scale; None where it is neither."""
    if isinstance(value, Quantized):
        alike = value.affine.dtype == affine.dtype and Affine(
            value.affine.scale, value.affine.zero_point, affine.dtype, affine.axis
        ).same(affine)
        return value.expr if alike else None
    if not isinstance(value, Constant) or not isinstance(affine.scale, Constant):
        return None
    scale = np.asarray(affine.scale.data, "float64")
    if scale.size > 1:
        own = [1] * (rank - value.data.ndim) + list(value.data.shape)
        if own[axis] not in (1, scale.size):
            return None
        scale = scale.reshape([-1 if k == axis else 1 for k in range(rank)])
        locations = np.round(value.data.astype("float64").reshape(own) / scale)
    else:
        locations = np.round(value.data.astype("float64") / scale.reshape(()))
    if np.abs(locations).max(initial=0) >= 2**31:
        return None
    return const(locations, "int32")


@integer_rule("nn.bias_add")
def bias_add(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """A bias of the scale of the sums, or a constant that is brought to it."""
    data, bias = args
    if not isinstance(data, Quantized) or data.affine.dtype != "int32" or not data.affine.has_no_zero_point:
        return None
    rank = len(call.checked_type.shape)  # type: ignore[attr-defined]
    axis = call.attrs.axis % rank
    if isinstance(bias, Quantized):
        term = bias.expr if _same_scale(bias.affine, data.affine) else None
    elif isinstance(bias, Constant):
        spread = Constant(bias.data.reshape(-1, *[1] * (rank - 1 - axis)))
        result = _as_integers(spread, data.affine, data.affine.axis % rank, rank)
        term = const(result.data.reshape(-1), "int32") if isinstance(result, Constant) else None
    else:
        term = None
    if term is None:
        return None
    return Quantized(Call(call.op, [data.expr, term], call.attrs, span=call.span), data.affine)


def _same_scale(one: Affine, other: Affine) -> bool:
    """Whether two int32 tensors without zero points have the same scales, whichever axis those lie along."""
    if not (one.has_no_zero_point and other.has_no_zero_point and one.dtype == other.dtype == "int32"):
        return False
    if not isinstance(one.scale, Constant) or not isinstance(other.scale, Constant):
        return one.scale is other.scale
    a, b = one.scale.data.reshape(-1), other.scale.data.reshape(-1)
    # Scales of biases are products that were rounded by whoever wrote the model.
    return a.size in (1, b.size) and bool(np.allclose(a, b, rtol=1e-6, atol=0))


@integer_rule("add", "subtract")
def sums(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    one, other = args
    rank = len(call.checked_type.shape)  # type: ignore[attr-defined]
    for data, term, transposed in ((one, other, False), (other, one, True)):
        if not isinstance(data, Quantized) or data.affine.dtype != "int32" or not data.affine.has_no_zero_point:
            continue
        if len(call.args[int(transposed)].checked_type.shape) != rank:  # type: ignore[attr-defined]
            continue
        result = _as_integers(term, data.affine, data.affine.axis % rank, rank)
        if result is not None:
            both = [result, data.expr] if transposed else [data.expr, result]
            return Quantized(Call(call.op, both, call.attrs, span=call.span), data.affine)
    return _two_tensors(call, one, other, wanted, f"qnn.{call.op.name}")


@integer_rule("multiply")
def products(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    return _two_tensors(call, args[0], args[1], wanted, "qnn.mul")


def _two_tensors(call: Call, one: Operand, other: Operand, wanted: Affine | None, name: str) -> Quantized | None:
    """An operator on two quantized tensors whose result has the wanted scale."""
    if wanted is None or wanted.is_per_channel or not isinstance(one, Quantized) or not isinstance(other, Quantized):
        return None
    if one.affine.is_per_channel or other.affine.is_per_channel or one.affine.dtype != other.affine.dtype:
        return None
    if one.affine.dtype != wanted.dtype or wanted.dtype not in ("int8", "uint8"):
        return None
    scales = (
        one.affine.scale,
        one.affine.zero_point,
        other.affine.scale,
        other.affine.zero_point,
        wanted.scale,
        wanted.zero_point,
    )
    return Quantized(make(name, one.expr, other.expr, *scales), wanted)


@integer_rule("maximum", "minimum")
def extremes(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """Integers of one scale are ordered as their numbers."""
    one, other = args
    if not isinstance(one, Quantized) or not isinstance(other, Quantized):
        return None
    common = one.affine if one.affine.same(other.affine) else wanted
    if common is None or common.is_per_channel:
        return None
    both = [requantized(one, common), requantized(other, common)]
    return Quantized(Call(call.op, both, call.attrs, span=call.span), common)


@integer_rule("concatenate")
def concatenate(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    parts = args[0]
    if not isinstance(parts, list):
        return None
    quantized = [part for part in parts if isinstance(part, Quantized)]
    if len(quantized) < len(parts):
        return None
    first = quantized[0].affine
    common = first if all(part.affine.same(first) for part in quantized) else wanted
    if common is None or common.is_per_channel:
        return None
    joined = Tuple([requantized(part, common) for part in quantized])
    return Quantized(Call(call.op, [joined], call.attrs, span=call.span), common)


@integer_rule("nn.global_avg_pool2d", "mean")
def means(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """The sum, whose scale is smaller by the number of terms: nothing is rounded."""
    data = _integers(args[0])
    of = call.args[0].checked_type
    if data.affine.is_per_channel or not isinstance(of, TensorType) or not data.affine.is_constant:
        return None
    if call.op.name == "mean":
        axes = normal_axes("mean", call.attrs.axis, len(of.shape))
        if call.attrs.exclude:
            axes = [axis for axis in range(len(of.shape)) if axis not in axes]
        keep = bool(call.attrs.keepdims)
    else:
        letters = [axis for axis in call.attrs.layout if axis.isalpha()]
        axes, keep = [letters.index("H"), letters.index("W")], True
    sizes = [of.shape[axis] for axis in axes]
    if not all(isinstance(size, int) for size in sizes):
        return None
    count = int(np.prod([int(size) for size in sizes]))  # type: ignore[arg-type]
    if count == 0:
        return None
    total = make("sum", make("cast", data.expr, dtype="int32"), axis=tuple(axes), keepdims=keep, exclude=False)
    scale = const(data.affine.scale.data.astype("float32") / np.float32(count), "float32")  # type: ignore[attr-defined]
    zero = const(data.affine.zero_point.data.astype("int32") * count, "int32")  # type: ignore[attr-defined]
    return Quantized(total, Affine(scale, zero, "int32"))


@integer_rule("nn.avg_pool2d")
def avg_pool(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    data = _integers(args[0])
    if wanted is None or wanted.is_per_channel or data.affine.is_per_channel or wanted.dtype != data.affine.dtype:
        return None
    scales = data.affine.scale, data.affine.zero_point, wanted.scale, wanted.zero_point
    return Quantized(make("qnn.avg_pool2d", data.expr, *scales, **dict(call.attrs.items())), wanted)


@integer_rule("sigmoid", "tanh", "exp", "sqrt", "rsqrt", "erf", "abs", "log", "nn.softmax", "nn.leaky_relu")
def function_of_one(call: Call, args: Sequence[Operand], wanted: Affine | None) -> Quantized | None:
    """An operator of its own on integers, which knows the scale it is to give."""
    data = _integers(args[0])
    if wanted is None or wanted.is_per_channel or data.affine.is_per_channel or wanted.dtype != data.affine.dtype:
        return None
    scales = data.affine.scale, data.affine.zero_point, wanted.scale, wanted.zero_point
    name = f"qnn.{call.op.name.removeprefix('nn.')}"
    return Quantized(make(name, data.expr, *scales, **dict(call.attrs.items())), wanted)


def register_fake_quantization_to_integer(
    op_name: str, func: Rule | None = None, level: int = 10
) -> Rule | Callable[[Rule], Rule]:
    """Enter a rule of the user's; a decorator where no function is given."""

    def enter(rule: Rule) -> Rule:
        RULES[op_name] = rule
        return rule

    return enter if func is None else enter(func)


__all__ = ["KEEPS_NUMBERS", "RULES", "integer_rule", "register_fake_quantization_to_integer"]
