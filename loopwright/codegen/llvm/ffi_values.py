"""Values and tensors as tvm-ffi's C header and DLPack lay them out in memory, for code that reads and writes them.

A value is {i32 kind, i32, 8 bytes of payload}. A tensor object holds its DLTensor 24 bytes in. A DLTensor is {data, i32
device type, i32 device id, i32 ndim, u8 code, u8 bits, u16 lanes, shape, strides, byte offset}.
"""

from __future__ import annotations

from typing import Final

from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.codegen.llvm.types import register_type
from loopwright.runtime.dlpack import dlpack_type
from loopwright.runtime.dtype import FLOAT64, INT64, DataType

VALUE: Final = "{ i32, i32, i64 }"
VALUE_BYTES: Final = 16
PAYLOAD: Final = 8  # where it is in a value
NONE, INT, BOOL, FLOAT, POINTER, DLTENSOR, TEXT = 0, 1, 2, 3, 4, 7, 8  # kinds of values
FIRST_OBJECT: Final = 64  # kinds from here on are counted references
TENSOR: Final = 70
TENSOR_HEADER: Final = 24
CPU: Final = 1  # as a device type

RESULT_TOO_LARGE: Final = (
    "the result is 2^63 or more, which no result of a call can be\x1f\x1fwrite it to a buffer instead"
)


def type_word(dtype: DataType) -> int:
    """Code, bits and lanes of a DLTensor's elements as one little-endian integer."""
    return word(*dlpack_type(dtype))


def word(code: int, bits: int, lanes: int) -> int:
    """The same from its parts."""
    return code | bits << 8 | lanes << 16


def store_result(emitter: ControlFlow, dtype: DataType, value: str) -> None:
    """Write a number into the value that `%result` points to, widened; a uint64 is known to fit."""
    kind, wide = (FLOAT, FLOAT64) if dtype.is_float else (BOOL if dtype.is_bool else INT, INT64)
    widened = emitter.cast(value, dtype, wide)
    slot = emitter.b.value(f"getelementptr inbounds i8, ptr %result, i64 {PAYLOAD}")
    emitter.b.do(f"store i32 {kind}, ptr %result")
    emitter.b.do(f"store {register_type(wide)} {widened}, ptr {slot}")
