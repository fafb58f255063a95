"""packed_stacks: the stacks on which a function lays out what it hands to packed functions, and an array's fields.

`lower_packed_calls.py` fills them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from loopwright.ir import (
    Buffer,
    Call,
    DeclBuffer,
    Expr,
    IntImm,
    LetStmt,
    Op,
    PointerType,
    PrimType,
    Stmt,
    Var,
    cast,
    const,
)
from loopwright.ir.machine_intrinsics import tvm_stack_alloca
from loopwright.runtime.dtype import HANDLE, INT32, INT64, DataType

# Fields of the structures of the C runtime, by their numbers; the last is the content of a packed value.
ADDRESS, DATA, SHAPE, STRIDES, NDIM, TYPE_CODE, TYPE_BITS, TYPE_LANES, BYTE_OFFSET, DEVICE_ID, DEVICE_TYPE = range(11)
VALUE: Final = 12
SIZE: Final = DataType("uint64")


class Code(IntEnum):
    """Type codes of packed values."""

    INT = 0
    FLOAT = 2
    POINTER = 3
    ARRAY = 7
    TEXT = 11


@dataclass
class Sizes:
    """How many slots a scope needs of each stack."""

    args: int = 0
    arrays: int = 0
    shapes: int = -1  # an array without dimensions has a shape, too


class Stacks:
    """The stacks of a function or of a parallel loop's body; `most` is what the statements so far need of them."""

    def __init__(self, sizes: Sizes) -> None:
        self.now, self.most = Sizes(shapes=0), Sizes()
        self.value, self.array = Var("stack_value", HANDLE), Var("stack_array", HANDLE)
        self.tcode = _stack("stack_tcode", INT32, sizes.args)
        self.shape = _stack("stack_shape", INT64, sizes.shapes)

    def note(self, args: int = 0, arrays: int = 0, shapes: int = -1) -> None:
        self.most.args, self.most.arrays = max(self.most.args, args), max(self.most.arrays, arrays)
        self.most.shapes = max(self.most.shapes, shapes)

    def around(self, body: Stmt) -> Stmt:
        """`body` with its stacks."""
        if self.most.shapes >= 0:
            slots = tvm_stack_alloca("shape", self.most.shapes)
            body = LetStmt(self.shape.data, slots, DeclBuffer(self.shape, body))
        if self.most.arrays:
            body = LetStmt(self.array, tvm_stack_alloca("array", self.most.arrays), body)
        if self.most.args:
            body = LetStmt(self.value, tvm_stack_alloca("arg_value", self.most.args), body)
            slots = tvm_stack_alloca("arg_tcode", self.most.args)
            body = LetStmt(self.tcode.data, slots, DeclBuffer(self.tcode, body))
        return body


def _stack(name: str, dtype: DataType, size: int) -> Buffer:
    return Buffer(Var(name, PointerType(PrimType(dtype))), dtype, (max(size, 0),), name=name)


def array_fields(
    data: Expr, shape: Expr, strides: Expr, rank: Expr, dtype: DataType, offset: Expr
) -> dict[int, Expr]:
    """What an array's structure holds, by field; strides of an array without are a constant, and become null."""
    null = Call(HANDLE, Op.get("tir.reinterpret"), (const(0, SIZE),))
    return {
        DATA: data,
        SHAPE: shape,
        STRIDES: null if isinstance(strides, IntImm) else strides,
        NDIM: rank,
        TYPE_CODE: const(type_code(dtype), "uint8"),
        TYPE_BITS: const(dtype.bits, "uint8"),
        TYPE_LANES: const(dtype.lanes, "uint16"),
        BYTE_OFFSET: cast(offset, SIZE) * const(dtype.nbytes * dtype.lanes, SIZE),
    }


def type_code(dtype: DataType) -> int:
    """DLPack's code of a type."""
    return {"int": 0, "uint": 1, "bool": 1, "float": 2, "handle": 3, "bfloat": 4}.get(dtype.kind, 2)
