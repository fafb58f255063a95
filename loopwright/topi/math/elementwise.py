"""Element-wise operators: each element of the result is a function of the element at the same place.

    topi.tanh(x)                  the functions of `tir`, a table row each
    topi.clip(x, 0, 6)            and those with attributes of their own
    topi.full((2, 3), "float32", 1)

Every one is a single stage, tagged `elemwise` and named `T_<operator>`, so that it is computed where it is read. How
exact the functions are is in docs/math.md; `fast_math.py` has approximations of some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, overload

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr, const, intrinsics
from loopwright.ir.intrinsics import clz, maximum, minimum
from loopwright.ir.machine_intrinsics import q_multiply_shift, q_multiply_shift_per_axis
from loopwright.ir.operators import bitwise_not as _bitwise_not
from loopwright.ir.operators import logical_not as _logical_not
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.te.whole_tensors import each_element
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import axes_of
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.sizes import check_same, one_size
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.testing.elementwise import (
    cast_python,
    cast_samples,
    ceil_log2_python,
    ceil_log2_samples,
    clip_python,
    clip_samples,
    elemwise_sum_samples,
    erf_python,
    exact_samples,
    fixed_point_multiply_per_axis_python,
    fixed_point_multiply_per_axis_samples,
    fixed_point_multiply_python,
    fixed_point_multiply_samples,
    full_like_samples,
    full_samples,
    function_samples,
    reinterpret_samples,
    round_python,
    sigmoid_python,
    trilu_python,
    trilu_samples,
    wide,
)
from loopwright.topi.types import Operand, Scalar, Shape


class Unary(Protocol):
    """A tensor gives a tensor; a number, an expression."""

    @overload
    def __call__(self, x: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, x: Expr | float) -> Expr: ...


def _row(
    name: str,
    function: Callable[[Expr], Expr],
    reference: Reference,
    samples: Callable[[], Iterable[Sample]],
    unchanged: Callable[[DataType], bool] = lambda dtype: False,
) -> Unary:
    """The operator of a function of one element; tensors of a type that it leaves `unchanged` come back as they are."""

    @overload
    def compute(x: te.Tensor) -> te.Tensor: ...
    @overload
    def compute(x: Expr | float) -> Expr: ...
    def compute(x: Operand) -> te.Tensor | Expr:
        if not isinstance(x, te.Tensor):
            return function(as_expr(x))
        return x if unchanged(x.dtype) else each_element(f"T_{name}", function, x)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{name} of every element."
    return operator(reference=reference, samples=samples)(compute)


def _function(name: str, reference: Reference, ulps: float, lo: float = -3.0, hi: float = 3.0) -> Unary:
    """A function of floating-point numbers, `ulps` off at most, tried between `lo` and `hi`."""
    return _row(name, getattr(intrinsics, name), wide(reference), lambda: function_samples(ulps, lo, hi))


def _rounds(name: str, reference: Reference) -> Unary:
    """A function that rounds to an integer of the same type, so that integers are what they were."""
    return _row(name, getattr(intrinsics, name), reference, exact_samples, lambda dtype: not dtype.is_float)


def _predicate(name: str, reference: Reference) -> Unary:
    return _row(name, getattr(intrinsics, name), reference, exact_samples)


exp = _function("exp", np.exp, 1.0, -20.0, 20.0)
erf = _function("erf", erf_python, 1.5)
tanh = _function("tanh", np.tanh, 3.0)
tan = _function("tan", np.tan, 4.0)
cos = _function("cos", np.cos, 2.0)
cosh = _function("cosh", np.cosh, 1.5)
sin = _function("sin", np.sin, 2.0)
sinh = _function("sinh", np.sinh, 2.5)
acos = _function("acos", np.arccos, 1.5, -1.0, 1.0)
acosh = _function("acosh", np.arccosh, 2.5, 1.0, 9.0)
asin = _function("asin", np.arcsin, 2.0, -1.0, 1.0)
asinh = _function("asinh", np.arcsinh, 2.5)
atan = _function("atan", np.arctan, 1.5)
atanh = _function("atanh", np.arctanh, 2.5, -0.96875, 0.96875)
sqrt = _function("sqrt", np.sqrt, 0.5, 0.0, 9.0)
rsqrt = _function("rsqrt", lambda x: 1 / np.sqrt(x), 1.5, 0.125, 9.0)
log = _function("log", np.log, 1.0, 0.125, 900.0)
log2 = _function("log2", np.log2, 1.5, 0.125, 900.0)
log10 = _function("log10", np.log10, 1.5, 0.125, 900.0)
sigmoid = _function("sigmoid", sigmoid_python, 2.5, -20.0, 20.0)

floor = _rounds("floor", np.floor)
ceil = _rounds("ceil", np.ceil)
trunc = _rounds("trunc", np.trunc)
round = _rounds("round", round_python)

isnan = _predicate("isnan", np.isnan)
isfinite = _predicate("isfinite", np.isfinite)
isinf = _predicate("isinf", np.isinf)


def _sign(x: Expr) -> Expr:
    # The third case is 0 or NaN, and stays.
    zero, one = const(0, x.dtype), const(1, x.dtype)
    upper = intrinsics.select(x > zero, one, x)
    return upper if x.dtype.is_unsigned else intrinsics.select(x < zero, const(-1, x.dtype), upper)


identity = _row("identity", lambda x: x, np.copy, lambda: exact_samples("bool"))
negative = _row("negative", lambda x: -x, np.negative, exact_samples)
abs = _row("abs", intrinsics.abs, np.abs, exact_samples, lambda dtype: dtype.is_unsigned or dtype.is_bool)
sign = _row("sign", _sign, np.sign, exact_samples)
logical_not = _row("logical_not", _logical_not, np.logical_not, lambda: exact_samples("bool", only=True))
bitwise_not = _row("bitwise_not", _bitwise_not, np.invert, lambda: exact_samples("bool", "int32", "uint8", only=True))


@operator(reference=clip_python, samples=clip_samples)
def clip(x: te.Tensor, a_min: Scalar, a_max: Scalar) -> te.Tensor:
    """Every element of `x`, but at most `a_max` and at least `a_min`, which wins where it is greater; NaN stays NaN.

    The limits are numbers or expressions, converted to the type of `x`; a number beyond that type is its limit.
    """
    low, high = [_limit(bound, x.dtype) for bound in (a_min, a_max)]
    return each_element("T_clip", lambda element: maximum(minimum(element, high), low), x)


def _limit(bound: Scalar, dtype: DataType) -> Expr:
    if isinstance(bound, (int, float)) and dtype.is_int:
        return const(int(min(max(bound, dtype.min_value()), dtype.max_value())), dtype)
    return const(bound, dtype) if isinstance(bound, (int, float)) else as_expr(bound).astype(dtype)


@overload
def cast(x: te.Tensor, dtype: str) -> te.Tensor: ...
@overload
def cast(x: Expr | float, dtype: str) -> Expr: ...
@operator(reference=cast_python, samples=cast_samples)
def cast(x: Operand, dtype: str) -> te.Tensor | Expr:
    """`x` (a tensor or an expression) converted to `dtype`; the same object where it has that type."""
    wanted = DataType(dtype)
    if not isinstance(x, te.Tensor):
        return as_expr(x).astype(wanted)
    return x if x.dtype is wanted else each_element("T_cast", lambda element: element.astype(wanted), x)


@operator(reference=lambda x, dtype: x, samples=reinterpret_samples)
def reinterpret(x: te.Tensor, dtype: str) -> te.Tensor:
    """The bits of every element of `x` read as `dtype`, which has the same width."""
    return each_element("T_reinterpret", lambda element: intrinsics.reinterpret(dtype, element), x)


@operator(reference=fixed_point_multiply_python, samples=fixed_point_multiply_samples)
def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """`x` · `multiplier` · 2^(`shift` - 31), rounded to the nearest, halves up: int32 by a fraction of 31 bits."""
    _require_int32("fixed_point_multiply", x)
    factor, bits, moved = [const(int(value), "int32") for value in (multiplier, 31, shift)]
    return each_element("T_fixed_point_multiply", lambda element: q_multiply_shift(element, factor, bits, moved), x)


@operator(reference=fixed_point_multiply_per_axis_python, samples=fixed_point_multiply_per_axis_samples)
def fixed_point_multiply_per_axis(
    x: te.Tensor,
    y: te.Tensor,
    lshift: te.Tensor,
    rshift: te.Tensor,
    is_lshift_required: int,
    is_rshift_required: int,
    axes: Sequence[int],
) -> te.Tensor:
    """As `fixed_point_multiply`, with a multiplier and shifts of their own for each place along `axes` of `x`.

    `x` is shifted left by `lshift`, multiplied by `y` as a fraction of 31 bits, and shifted right by `rshift`; shifts
    that are not required are not read.
    """
    for tensor in (x, y, lshift, rshift):
        _require_int32("fixed_point_multiply_per_axis", tensor)
    own = axes_of("fixed_point_multiply_per_axis", axes, x.ndim, "axes")
    for tensor in (y, lshift, rshift):
        if tensor.ndim != len(own):
            problem = f"{tensor.name} has {tensor.ndim} dimensions, and axes names {len(own)}"
            raise InvalidShapeError("fixed_point_multiply_per_axis", problem, "give one number for each place on them")
        for size, axis in zip(tensor.shape, own, strict=True):
            one, other = (x.name, x.shape[axis]), (tensor.name, size)
            check_same("fixed_point_multiply_per_axis", f"axis {axis} differs", one, other)
    flags = [const(int(bool(flag)), "bool") for flag in (is_lshift_required, is_rshift_required)]

    def product(*indices: Expr) -> Expr:
        at = [indices[axis] for axis in own]
        return q_multiply_shift_per_axis(x(*indices), y(*at), lshift(*at), rshift(*at), const(31, "int32"), *flags)

    name = "T_fixed_point_multiply_per_axis"
    result: te.Tensor = te.compute(x.shape, product, name=name, tag=default_tag(tag.BROADCAST))
    return result


def _require_int32(op: str, tensor: te.Tensor) -> None:
    if tensor.dtype != "int32":
        raise UnsuitableType(op, f"{tensor.name} has elements of type {tensor.dtype}", "it works on int32")


@overload
def ceil_log2(x: te.Tensor) -> te.Tensor: ...
@overload
def ceil_log2(x: Expr | float) -> Expr: ...
@operator(reference=ceil_log2_python, samples=ceil_log2_samples)
def ceil_log2(x: Operand) -> te.Tensor | Expr:
    """log2 of `x` (a tensor or an expression) rounded up: exact for integers, which are 1 or more."""
    if isinstance(x, te.Tensor):
        return each_element("T_ceil_log2", _ceil_log2, x)
    return _ceil_log2(as_expr(x))


def _ceil_log2(x: Expr) -> Expr:
    if x.dtype.is_float:
        return intrinsics.ceil(intrinsics.log2(x))
    # As many bits as x - 1 has.
    return (const(x.dtype.bits, "int32") - clz(x - 1)).astype(x.dtype)


@operator(reference=sum, samples=elemwise_sum_samples)
def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """The sum of tensors of one shape."""
    tensors = list(xs)
    if not tensors:
        raise InvalidShapeError("elemwise_sum", "there is nothing to add", "give at least one tensor")
    first = tensors[0]
    for other in tensors[1:]:
        if other.ndim != first.ndim or not all([one_size(b, a) for a, b in zip(other.shape, first.shape, strict=True)]):
            shapes = f"{first.name} has shape {shape_text(first.shape)}, {other.name} {shape_text(other.shape)}"
            raise InvalidShapeError("elemwise_sum", shapes, "the tensors have one shape; topi.add repeats them")

    def total(*indices: Expr) -> Expr:
        value: Expr = tensors[0](*indices)
        for tensor in tensors[1:]:
            value = value + tensor(*indices)
        return value

    result: te.Tensor = te.compute(first.shape, total, name="T_elemwise_sum", tag=default_tag(tag.ELEMWISE))
    return result


@operator(reference=lambda shape, dtype, value: np.full(shape, value), samples=full_samples)
def full(shape: Shape, dtype: str, fill_value: Scalar) -> te.Tensor:
    """A tensor of `shape` with `fill_value` (a number, an expression or a tensor of rank 0) everywhere."""
    return _filled("T_full", shape, dtype, fill_value)


@operator(reference=np.full_like, samples=full_like_samples)
def full_like(x: te.Tensor, fill_value: Scalar) -> te.Tensor:
    """A tensor of the shape and type of `x` with `fill_value` everywhere."""
    return _filled("T_full_like", x.shape, x.dtype, fill_value)


def _filled(name: str, shape: Shape, dtype: str | DataType, value: Scalar) -> te.Tensor:
    kind = DataType(dtype)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fill = const(value, kind) if is_number and not kind.is_bool else as_expr(value).astype(kind)
    sizes = [shape] if isinstance(shape, (int, Expr)) else list(shape)
    result: te.Tensor = te.compute(sizes, lambda *_: fill, name=name, tag=default_tag(tag.ELEMWISE))
    return result


@operator(reference=trilu_python, samples=trilu_samples)
def trilu(data: te.Tensor, k: Scalar, upper: bool) -> te.Tensor:
    """`data` with zeros below (`upper`) or above the `k`-th diagonal of its last two dimensions.

    Diagonal 0 is the main one, 1 the one above. `k` is a number, an expression or a tensor of rank 0.
    """
    if data.ndim < 2:
        problem = f"{data.name} has shape {shape_text(data.shape)}, which has no triangle"
        raise InvalidShapeError("trilu", problem, "give a tensor of 2 dimensions or more")
    diagonal = as_expr(k).astype("int32")

    def cell(*indices: Expr) -> Expr:
        row, column = indices[-2:]
        kept = column >= row + diagonal if upper else column <= row + diagonal
        return intrinsics.select(kept, data(*indices), const(0, data.dtype))

    result: te.Tensor = te.compute(data.shape, cell, name="T_trilu", tag=default_tag(tag.ELEMWISE))
    return result
