"""Operators about the shapes of tensors, and tensors made of counted numbers."""

from __future__ import annotations

from math import ceil

import numpy as np

from loopwright import te
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Constant, Expr, const
from loopwright.relay.op.from_topi import FromTopi, only_interpreted
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.types import AnyDim, TensorType
from loopwright.topi.movement.moving import moved


@register("shape_of", Kind.OPAQUE)
class ShapeOf(FromTopi):
    """The sizes of the data, as a vector."""

    topi_name = "shape"
    dtype: str = "int32"

    def infer(self, data: TensorType) -> Type:
        return TensorType((len(data.shape),), self.dtype)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", call.args[0])]


@register("vm.shape_of", Kind.OPAQUE)
class VmShapeOf(ShapeOf):
    """`shape_of` of a tensor on any device; the sizes are on the CPU that runs the program."""

    host_result = True
    dtype: str = "int64"


@register("ndarray_size", Kind.OPAQUE)
class NdarraySize(FromTopi):
    """How many elements the data has."""

    dtype: str = "int32"

    def infer(self, data: TensorType) -> Type:
        return TensorType((), self.dtype)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", call.args[0])]


@register("arange", Kind.OPAQUE)
class Arange(Operator):
    """`start`, `start + step`, and so on up to `stop`, which is left out. `size` is how many, where that is known."""

    dtype: str = "float32"
    size: int | None = None

    def infer(self, start: TensorType, stop: TensorType, step: TensorType) -> Type:
        for what, given in (("start", start), ("stop", stop), ("step", step)):
            if given.shape:
                raise TypeMismatch(f"arange: {what} is {given}, not one number")
        return TensorType((AnyDim() if self.size is None else self.size,), self.dtype)

    def compute(self, start: te.Tensor, stop: te.Tensor, step: te.Tensor) -> te.Tensor:
        if self.size is None:
            raise only_interpreted("arange", "the range")
        first, way = start().astype(self.dtype), step().astype(self.dtype)
        return moved((self.size,), lambda i: first + way * i.astype(self.dtype), "T_arange")

    def reference(self, start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
        values = np.arange(start.reshape(()).item(), stop.reshape(()).item(), step.reshape(()).item())
        return values[: self.size]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("zeros_like", arg) for arg in call.args]


@calls("arange")
def arange(start: object, stop: object = None, step: object = None, dtype: str = "float32") -> Expr:
    """A range; its size is known when all of its arguments are numbers or constants."""
    if stop is None:
        start, stop = const(0, dtype), start
    bounds = [start, stop, const(1, dtype) if step is None else step]
    given = [bound if isinstance(bound, Expr) else const(bound, dtype) for bound in bounds]
    size = None
    if all(isinstance(bound, Constant) for bound in given):
        low, high, way = (bound.data.reshape(()).item() for bound in given if isinstance(bound, Constant))
        if way == 0:
            raise ValueError("relay.arange: step is 0")
        size = max(ceil((high - low) / way), 0)
    return make("arange", *given, dtype=dtype, size=size)
