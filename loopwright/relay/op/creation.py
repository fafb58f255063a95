"""Operators that make tensors of one value: zeros, ones, full, and those that take their shape from another tensor.

A shape that is an expression of the graph is known only when the program runs: operators `dyn.*` take it as an input.
"""

from __future__ import annotations

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.from_topi import numbers_of, only_interpreted
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.reshaping import vector_length
from loopwright.relay.types import AnyDim, TensorType
from loopwright.runtime.dtype import DataType


class _OneValue(Operator):
    """A tensor of `shape` with the same number everywhere."""

    shape: tuple[int, ...]
    dtype: str

    def infer(self) -> Type:
        return TensorType(self.shape, self.dtype)

    def compute(self) -> te.Tensor:
        return topi.full(self.shape, self.dtype, self._value)

    def reference(self) -> np.ndarray:
        return np.full(self.shape, self._value, DataType(self.dtype).numpy())

    @property
    def _value(self) -> int:
        return int(self.op_name == "ones")


@register("zeros", Kind.ELEMWISE)
class Zeros(_OneValue):
    """A tensor of zeros."""


@register("ones", Kind.ELEMWISE)
class Ones(_OneValue):
    """A tensor of ones."""


class _OneValueLike(Operator):
    """A tensor of the same type with the same number everywhere."""

    def infer(self, data: TensorType) -> Type:
        return data

    def compute(self, data: te.Tensor) -> te.Tensor:
        return topi.full_like(data, self._value)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.full_like(data, self._value)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", call.args[0])]

    @property
    def _value(self) -> int:
        return int(self.op_name == "ones_like")


@register("zeros_like", Kind.ELEMWISE)
class ZerosLike(_OneValueLike):
    """Zeros, as many as there are elements."""


@register("ones_like", Kind.ELEMWISE)
class OnesLike(_OneValueLike):
    """Ones, as many as there are elements."""


@register("full", Kind.ELEMWISE)
class Full(Operator):
    """A tensor of `shape` with a value everywhere; without `dtype`, of the value's own type."""

    shape: tuple[int, ...] = ()
    dtype: str = ""

    def infer(self, fill_value: TensorType) -> Type:
        _require_number(self.op_name, fill_value)
        return TensorType(self.shape, self.dtype or str(fill_value.dtype))

    def compute(self, fill_value: te.Tensor) -> te.Tensor:
        return topi.full(self.shape, self.dtype or str(fill_value.dtype), fill_value())

    def reference(self, fill_value: np.ndarray) -> np.ndarray:
        return np.full(self.shape, fill_value, DataType(self.dtype or str(fill_value.dtype)).numpy())

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("cast_like", make("sum", grad), call.args[0])]


@register("full_like", Kind.ELEMWISE)
class FullLike(Operator):
    """A value as often as there are elements, converted to their type."""

    def infer(self, data: TensorType, fill_value: TensorType) -> Type:
        _require_number(self.op_name, fill_value)
        return data

    def compute(self, data: te.Tensor, fill_value: te.Tensor) -> te.Tensor:
        return topi.full_like(data, fill_value())

    def reference(self, data: np.ndarray, fill_value: np.ndarray) -> np.ndarray:
        return np.full_like(data, fill_value)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        data, value = call.args
        return [make("zeros_like", data), make("cast_like", make("sum", grad), value)]


def _require_number(name: str, value: TensorType) -> None:
    if len(value.shape):
        raise TypeMismatch(f"{name}: the fill value is one number, and not {value}")


class _WithShape(Operator):
    """A tensor whose shape is an input."""

    dtype: str

    def infer(self, shape: TensorType) -> Type:
        return TensorType([AnyDim() for _ in range(vector_length(self.op_name, "the shape", shape))], self.dtype)

    def compute(self, shape: te.Tensor) -> te.Tensor:
        raise only_interpreted(self.op_name, "the shape")

    def reference(self, shape: np.ndarray) -> np.ndarray:
        return np.full([int(size) for size in shape], int(self.op_name == "dyn.ones"), DataType(self.dtype).numpy())


@register("dyn.zeros", Kind.OPAQUE)
class DynZeros(_WithShape):
    """Zeros; the shape is known when the program runs."""


@register("dyn.ones", Kind.OPAQUE)
class DynOnes(_WithShape):
    """Ones; the shape is known when the program runs."""


@register("dyn.full", Kind.OPAQUE)
class DynFull(Operator):
    """A value everywhere; the shape is known when the program runs."""

    dtype: str = ""

    def infer(self, fill_value: TensorType, shape: TensorType) -> Type:
        _require_number(self.op_name, fill_value)
        sizes = [AnyDim() for _ in range(vector_length(self.op_name, "the shape", shape))]
        return TensorType(sizes, self.dtype or str(fill_value.dtype))

    def compute(self, fill_value: te.Tensor, shape: te.Tensor) -> te.Tensor:
        raise only_interpreted(self.op_name, "the shape")

    def reference(self, fill_value: np.ndarray, shape: np.ndarray) -> np.ndarray:
        kind = DataType(self.dtype or str(fill_value.dtype)).numpy()
        return np.full([int(size) for size in shape], fill_value, kind)


def _filled(name: str, shape: object, dtype: str) -> Expr:
    numbers = numbers_of(shape)
    built: Expr = make(f"dyn.{name}", shape, dtype=dtype) if numbers is None else make(name, shape=numbers, dtype=dtype)
    return built


@calls("zeros")
def zeros(shape: object, dtype: str) -> Expr:
    """Zeros of a shape: a number, several, or an expression."""
    return _filled("zeros", shape, dtype)


@calls("ones")
def ones(shape: object, dtype: str) -> Expr:
    """Ones of a shape: a number, several, or an expression."""
    return _filled("ones", shape, dtype)


@calls("full")
def full(fill_value: Expr, shape: object = (), dtype: str = "") -> Expr:
    """A tensor of a shape (numbers or an expression) with the value of a scalar everywhere."""
    numbers = numbers_of(shape)
    if numbers is None:
        result: Expr = make("dyn.full", fill_value, shape, dtype=dtype)
    else:
        result = make("full", fill_value, shape=numbers, dtype=dtype)
    return result
