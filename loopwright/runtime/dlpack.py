"""DLPack structures by hand: give an array's capsule another element type before it is read.

numpy exports neither the types of `ml_dtypes` (bfloat16, float8) nor arrays that must not be written. The bytes are
fine, only the label is not: so a plain view of the same memory is exported and the label in the capsule is changed.
The capsule's structure belongs to that one export, so nobody else sees the change.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

from loopwright.runtime.dtype import DataType


class _DLTensor(ctypes.Structure):
    """`DLTensor` of dlpack.h; the same layout in every version of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer: Final = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def dlpack_type(dtype: DataType) -> tuple[int, int, int]:
    """DLPack's (code, bits, lanes); in memory a bool is a byte, and says so."""
    return dtype.type_code, 8 * dtype.nbytes, dtype.lanes


def capsule(array: np.ndarray, dtype: DataType) -> object:
    """A DLPack capsule of `array`'s memory, labelled `dtype`; nothing is copied.

    `array` may be read-only and of an ml_dtypes type. For a vector `dtype` its last axis holds the lanes.
    """
    plain = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    if not plain.flags.writeable:
        plain = writeable_view(plain)
    exported = plain.__dlpack__()
    tensor = _DLTensor.from_address(_capsule_pointer(exported, b"dltensor"))  # DLManagedTensor begins with it
    tensor.type_code, tensor.bits, tensor.lanes = dlpack_type(dtype)
    if dtype.lanes > 1:
        tensor.ndim -= 1  # the lanes are inside the element now
        tensor.strides = None  # strides count elements; a vector array is always compact
    return exported


def not_exported(source: object, error: BaseException | None) -> str:
    """What to say of an object whose `__dlpack__` failed, or gave no tensor."""
    return f"{type(source).__name__} exports no tensor ({type(error).__name__}: {error})"


def writeable_view(array: np.ndarray) -> np.ndarray:
    """The same memory without its read-only mark; for handing it to code that only reads."""
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(interface, array))


def view_memory(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DataType, owner: object
) -> np.ndarray:
    """A numpy array over memory at `address` that `owner` keeps; strides count elements, lanes become the last axis."""
    plain = np.dtype(bool) if dtype.is_bool else np.dtype(f"u{dtype.nbytes}")
    size, lanes = dtype.nbytes, dtype.lanes
    byte_strides = tuple(stride * size * lanes for stride in strides)
    if lanes > 1:
        shape, byte_strides = (*shape, lanes), (*byte_strides, size)
    interface = {"version": 3, "typestr": plain.str, "shape": shape, "strides": byte_strides, "data": (address, False)}
    return np.asarray(_Memory(interface, owner)).view(dtype.numpy())


class _Memory:
    """Memory as numpy's array protocol describes it; an array made from it keeps this object, and so the owner."""

    def __init__(self, interface: dict[str, object], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner
