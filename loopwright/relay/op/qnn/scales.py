"""What operators on quantized tensors share: scales along an axis, limits of integers, constants that are zero."""

from __future__ import annotations

import numpy as np

from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.registry import make
from loopwright.relay.op.sizes import normal_axis, repeats_to
from loopwright.relay.types import TensorType
from loopwright.runtime.dtype import DataType


def along(value: Expr, axis: int, rank: int) -> Expr:
    """A scalar as it is; one number a place along `axis` with sizes of 1 after it, to be repeated over the others."""
    if not tensor_type(value).shape or rank == 0:
        return value
    after = rank - 1 - normal_axis("qnn", axis, rank)
    result: Expr = value if after == 0 else make("expand_dims", value, axis=1, num_newaxis=after)
    return result


def tensor_type(value: Expr) -> TensorType:
    """The type of an expression that is a tensor."""
    result = value.checked_type
    assert isinstance(result, TensorType)
    return result


def rank_of(value: Expr) -> int:
    return len(tensor_type(value).shape)


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    kind = DataType(dtype)
    return int(kind.min_value()), int(kind.max_value())


def is_zero(value: Expr) -> bool:
    """Whether an expression is known to be zero everywhere."""
    return isinstance(value, Constant) and bool((value.data == 0).all())


def cast(value: Expr, dtype: str) -> Expr:
    """`value` converted, unless it has that type."""
    result: Expr = value if str(tensor_type(value).dtype) == dtype else make("cast", value, dtype=dtype)
    return result


def saturated(value: Expr, dtype: str) -> Expr:
    """Integers converted to a narrower type; those beyond it become its limits."""
    low, high = limits(dtype)
    result: Expr = make("cast", make("clip", value, a_min=float(low), a_max=float(high)), dtype=dtype)
    return result


def check_scale(op: str, data: TensorType, axis: int, scale: TensorType, zero_point: TensorType) -> None:
    """Refuse scales and zero points that are not one number, or one a place along the axis."""
    for what, given, dtype in (("scale", scale, "float32"), ("zero point", zero_point, "int32")):
        if str(given.dtype) != dtype:
            raise TypeMismatch(f"{op}: the {what} is {given}, and should be {dtype}")
        if len(given.shape) > 1:
            raise TypeMismatch(f"{op}: the {what} is {given}; give one number, or one a place along the axis")
        if given.shape and data.shape:
            size = data.shape[normal_axis(op, axis, len(data.shape))]
            if not repeats_to(given.shape[0], size):
                raise TypeMismatch(f"{op}: the {what} has {given.shape[0]} numbers, and axis {axis} of {data} {size}")


def numbers(value: Expr) -> np.ndarray | None:
    """The numbers of a constant."""
    return value.data if isinstance(value, Constant) else None
