"""array_call: a compiled function as a callable on numpy arrays that costs a fraction of a microsecond.

    call = array_call(address, inputs, outputs, sizes, otherwise, owner)
    y = call(a, b)                  a fresh output, or a list of several

The work is done by `native/array_call.c`, which reads arrays as extension modules do, through the binary interface that
numpy and Python keep stable. What is relied on of it is compared with this process first (`_interpreter`); where
anything differs, or the library cannot be had, there is no such call, and arrays pass through DLPack.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.runtime import ffi
from loopwright.runtime.dlpack import dlpack_type
from loopwright.runtime.dtype import DataType
from loopwright.runtime.native_library import NativeLibrary

ArrayCall: TypeAlias = Callable[..., Any]

_MOST_ARGUMENTS: Final = 1024  # which are described on the stack
_MOST_SIZES: Final = 8192
_NUMPY_ABIS: Final = (1, 2)  # whose arrays have the fields below
_GET_VERSION, _NDARRAY, _NEW_FROM_DESCR = 0, 2, 94  # indices in numpy's table of C functions; fixed since numpy 1.0

_native: Final = NativeLibrary(Path(__file__).parent / "native" / "array_call.c")


class _Argument(ctypes.Structure):
    _fields_ = [
        ("element_type", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


class _Call(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_void_p),
        ("arguments", ctypes.POINTER(_Argument)),
        ("output_sizes", ctypes.POINTER(ctypes.c_int64)),
        ("num_inputs", ctypes.c_int32),
        ("num_outputs", ctypes.c_int32),
        ("num_sizes", ctypes.c_int32),
        ("otherwise", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
    ]


class _Interpreter(ctypes.Structure):
    _fields_ = [("object_header", ctypes.c_size_t)] + [
        (name, ctypes.c_void_p)
        for name in (
            "array_type",
            "new_array",
            "increase_references",
            "decrease_references",
            "vectorcall",
            "save_thread",
            "restore_thread",
            "new_list",
            "set_item",
            "capsule_pointer",
            "take_error",
            "drop_error",
        )
    ]


class _ArrayFields(ctypes.Structure):
    """What follows the object header in numpy's PyArrayObject."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("base", ctypes.c_void_p),
        ("element_type", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    ]


class _ElementTypeFields(ctypes.Structure):
    """What follows it in numpy's PyArray_Descr, as far as numpy 1 and 2 share it."""

    _fields_ = [
        ("scalar_type", ctypes.c_void_p),
        ("kind", ctypes.c_char),
        ("type", ctypes.c_char),
        ("byte_order", ctypes.c_char),
        ("unused", ctypes.c_char),
        ("number", ctypes.c_int),
    ]


def array_call(
    address: int,
    inputs: Sequence[tuple[DataType, int]],
    outputs: Sequence[tuple[DataType, int]],
    sizes: Sequence[int],
    otherwise: ArrayCall,
    owner: object,
) -> ArrayCall | None:
    """The call of the packed function at `address`, which takes inputs, then outputs; None where there can be none.

    Arguments are given as element type and rank. `sizes` are those of all outputs in a row; ~k stands for size k of
    the inputs in a row. What is no such array, or what the function refuses, is given to `otherwise`. `owner` keeps the
    code alive. Any number of threads may call at once.
    """
    arguments = [*inputs, *outputs]
    num_sizes = sum(ndim for _, ndim in arguments)
    plain = all(dtype.lanes == 1 and (dtype.bits >= 8 or dtype.is_bool) for dtype, _ in arguments)
    if not (plain and outputs and len(arguments) <= _MOST_ARGUMENTS and num_sizes <= _MOST_SIZES):
        return None
    native = _library()
    if native is None:
        return None
    kinds = [dtype.numpy() for dtype, _ in arguments]
    table = (_Argument * len(arguments))(
        *[_Argument(id(kind), ndim, *dlpack_type(dtype)) for kind, (dtype, ndim) in zip(kinds, arguments, strict=True)]
    )
    call = _Call(address, table, (ctypes.c_int64 * len(sizes))(*sizes), len(inputs), len(outputs), num_sizes)
    kept = (owner, otherwise, kinds, call)
    call.otherwise, call.owner = id(otherwise), id(kept)
    python = ctypes.pythonapi
    python.Py_IncRef(ctypes.py_object(kept))  # which the capsule's destructor gives back
    new_capsule = _prototype(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", python)
    )
    capsule = new_capsule(ctypes.addressof(call), None, ffi.address_of(native.lw_drop_array_call))
    new_function = _prototype(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", python)
    )
    result: ArrayCall = new_function(native.lw_array_call_method(), capsule, None)
    return result


def why_not() -> str | None:
    """Why arrays pass through DLPack instead, or None where they need not."""
    return None if _library() is not None else _native.why_not or "numpy or Python is laid out in another way"


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The native part, ready to be called; None where it cannot be had, or does not fit this Python and numpy."""
    interpreter = _interpreter()
    if interpreter is None:
        return None
    native = _native.load()
    if native is None:
        return None
    native.lw_array_call_method.restype = ctypes.c_void_p
    native.lw_set_up_array_calls.argtypes, native.lw_set_up_array_calls.restype = [ctypes.c_void_p], None
    native.lw_set_up_array_calls(ctypes.byref(interpreter))
    return native


def _interpreter() -> _Interpreter | None:
    """The functions and types of this process; None where an array is not what the native part takes it for."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != ctypes.sizeof(ctypes.c_int64):
        return None
    header = object.__basicsize__
    functions = _numpy_functions()
    if functions is None or not _fields_are_as_read(header):
        return None
    python, known = ctypes.pythonapi, ffi.symbols()
    return _Interpreter(
        object_header=header,
        array_type=id(np.ndarray),
        new_array=functions[_NEW_FROM_DESCR],
        increase_references=ffi.address_of(python.Py_IncRef),
        decrease_references=ffi.address_of(python.Py_DecRef),
        vectorcall=ffi.address_of(python.PyObject_Vectorcall),
        save_thread=ffi.address_of(python.PyEval_SaveThread),
        restore_thread=ffi.address_of(python.PyEval_RestoreThread),
        new_list=ffi.address_of(python.PyList_New),
        set_item=ffi.address_of(python.PyList_SetItem),
        capsule_pointer=ffi.address_of(python.PyCapsule_GetPointer),
        take_error=known["TVMFFIErrorMoveFromRaised"],
        drop_error=known["TVMFFIObjectDecRef"],
    )


def _numpy_functions() -> ctypes.Array[ctypes.c_void_p] | None:
    """numpy's table of C functions, as extension modules have it; None for one of an unknown interface."""
    core = getattr(np, "_core", None) or np.core  # numpy 2, numpy 1
    table = getattr(getattr(core, "_multiarray_umath", None), "_ARRAY_API", None)
    if table is None:
        return None
    pointer = _prototype(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(table, None)
    functions = (ctypes.c_void_p * (_NEW_FROM_DESCR + 1)).from_address(pointer)
    get_version = ctypes.CFUNCTYPE(ctypes.c_uint)(functions[_GET_VERSION] or 0)
    abi = get_version() >> 24
    return functions if abi in _NUMPY_ABIS and functions[_NDARRAY] == id(np.ndarray) else None


def _fields_are_as_read(header: int) -> bool:
    """Whether the fields of an array and of its element type, read from memory, are what numpy says of them."""
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    for array in (whole, whole[1:, ::2], whole.byteswap().view(whole.dtype.newbyteorder())):
        kind = ctypes.c_void_p.from_address(id(array) + header - ctypes.sizeof(ctypes.c_void_p)).value
        read = _ArrayFields.from_address(id(array) + header)
        if kind != id(np.ndarray) or (read.data, read.ndim) != (array.__array_interface__["data"][0], array.ndim):
            return False
        if (tuple(read.shape[:2]), tuple(read.strides[:2])) != (array.shape, array.strides):
            return False
        if (read.element_type, read.flags) != (id(array.dtype), array.flags.num):
            return False
        dtype = array.dtype
        of = _ElementTypeFields.from_address(id(dtype) + header)
        if (of.scalar_type, of.byte_order, of.number) != (id(dtype.type), dtype.byteorder.encode(), dtype.num):
            return False
    return True


_prototype: Final = ctypes.PYFUNCTYPE  # Python's own functions: called with the GIL, and their errors are raised
