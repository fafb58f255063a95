"""Operators that name memory: storage of so many bytes, a tensor in it, and its end.

    storage = relay.memory.alloc_storage(size, shape, alignment, "cpu")
    tensor = relay.memory.alloc_tensor(storage, relay.const(0, "int64"), relay.const([2, 4], "int64"))
    relay.memory.kill(storage)

Programs that passes of others wrote hold them. They are planned (`PlanDevices`) and interpreted; `relay.build` plans
the memory of a model itself, and compiles none of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import te
from loopwright.ir.node import when_used
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import CannotCompile, TypeMismatch
from loopwright.relay.expr import Constant, Expr, numpy_type
from loopwright.relay.op.devices import virtual_device as as_device
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.types import AnyDim, TensorType, TypeCall
from loopwright.target import VirtualDevice

_core = when_used("loopwright.relay.prelude", "core")  # whose text names operators


def storage_type() -> Type:
    """The type of storage, as `core.rly` declares it."""
    return TypeCall(_core().get_global_type_var("Storage"), [])


class _Memory(Operator):
    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        raise CannotCompile(
            f"{self.op_name} names memory, which a compiled model plans itself",
            hint='relay.create_executor("debug", mod) interprets it',
        )


@register("memory.alloc_storage", Kind.OPAQUE)
class AllocStorage(_Memory):
    """Storage of `size` bytes on a device; `shape` and `dtype` say what it is for."""

    stateful = True
    host_inputs = ("size", "shape", "alignment")
    virtual_device: VirtualDevice = VirtualDevice()  # which never changes
    dtype: str = "float32"

    def infer(self, size: TensorType, shape: TensorType, alignment: TensorType) -> Type:
        for name, given in (("size", size), ("alignment", alignment)):
            if given.shape:
                raise TypeMismatch(f"memory.alloc_storage: {name} is {given}, not one number")
        return storage_type()

    def reference(self, size: np.ndarray, shape: np.ndarray, alignment: np.ndarray) -> np.ndarray:
        return np.zeros(int(size), "uint8")


@register("memory.alloc_tensor", Kind.OPAQUE)
class AllocTensor(_Memory):
    """A tensor in storage, `offset` bytes from its beginning; its elements are what lies there."""

    host_inputs = ("offset", "shape")
    const_shape: object = None  # the shape, where it is known before the program runs
    assert_shape: tuple[int, ...] = ()  # the shape that the result is declared to have
    dtype: str = "float32"

    def infer(self, storage: Type, offset: TensorType, shape: TensorType) -> Type:
        if not isinstance(storage, TypeCall):
            raise TypeMismatch(f"memory.alloc_tensor: {storage} is no storage")
        known = self.assert_shape or self.const_shape
        if known is not None:
            return TensorType([int(size) for size in np.asarray(known).reshape(-1)], self.dtype)
        return TensorType([AnyDim() for _ in range(_length(shape))], self.dtype)

    def reference(self, storage: np.ndarray, offset: np.ndarray, shape: np.ndarray) -> np.ndarray:
        kind = numpy_type(self.dtype)
        sizes = tuple(int(size) for size in shape)
        start = int(offset)
        end = start + int(np.prod(sizes, dtype="int64")) * kind.itemsize
        if start < 0 or end > storage.size:
            raise ValueError(f"a tensor at bytes {start} to {end} of storage that has {storage.size}")
        return storage[start:end].view(kind).reshape(sizes)


@register("memory.kill", Kind.OPAQUE)
class Kill(_Memory):
    """The end of a value: nothing uses it after this."""

    stateful = True

    def infer(self, data: Type) -> Type:
        return TupleType(())

    def reference(self, data: np.ndarray) -> Sequence[np.ndarray]:
        return []


def _length(shape: TensorType) -> int:
    if len(shape.shape) != 1 or not isinstance(shape.shape[0], int):
        raise TypeMismatch(f"memory.alloc_tensor: the shape is {shape}, not a vector of known length")
    return shape.shape[0]


@calls("memory.alloc_storage")
def alloc_storage(
    size: Expr, shape: Expr, alignment: Expr, virtual_device: object, dtype_hint: str = "float32"
) -> Expr:
    """Storage of `size` bytes on a device."""
    device = as_device(virtual_device)
    result: Expr = make("memory.alloc_storage", size, shape, alignment, virtual_device=device, dtype=dtype_hint)
    return result


@calls("memory.alloc_tensor")
def alloc_tensor(
    storage: Expr, offset: Expr, shape: Expr, dtype: str = "float32", assert_shape: Sequence[int] | None = None
) -> Expr:
    """A tensor in storage, `offset` bytes from its beginning."""
    known = shape.data if isinstance(shape, Constant) else None
    declared = tuple(assert_shape or ())
    result: Expr = make(
        "memory.alloc_tensor", storage, offset, shape, const_shape=known, assert_shape=declared, dtype=dtype
    )
    return result
