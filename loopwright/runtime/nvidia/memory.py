"""Tensors on a GPU: made from the pool of `native/cuda_memory.c`, copied to and from the host, handed to others."""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from loopwright.runtime.dlpack import dlpack_type, view_memory
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import core
from loopwright.runtime.nvidia.driver import driver

if TYPE_CHECKING:
    from collections.abc import Sequence

CUDA: Final = 2  # DLPack's code
_UNUSED: Final = b"dltensor"
_USED: Final = b"used_dltensor"
_new_capsule: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer_in: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


class BadStream(LoopwrightError, ValueError):
    """What was given as a stream is none: a stream is what `create_raw_stream` gave, or the handle of another library.

    In `__dlpack__` the number 0 is not allowed either, because it may mean two streams: 1 is the default stream.

    For example:

        from loopwright.runtime.nvidia.memory import check_stream

        check_stream("second")
    """

    code = "LW0171"


def check_stream(stream: object) -> int:
    """The handle of a stream; None is the default stream."""
    value = getattr(stream, "cuda_stream", stream)  # torch's
    value = getattr(value, "value", value)  # ctypes'
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadStream(f"{stream!r:.60} is no stream", hint="use what create_raw_stream() gave, or None")
    return value


def current_stream(device: int) -> int:
    """The stream that this thread puts work into; 0 is the default one."""
    result: int = core._env_get_current_stream(CUDA, device)
    return result


def set_current_stream(device: int, stream: int) -> None:
    """Put what this thread starts from now on into `stream`."""
    core._env_set_current_stream(CUDA, device, stream)


def new_tensor(device: int, shape: tuple[int, ...], dtype: DataType) -> object:
    """A DLPack capsule of new memory, which is given back when its tensor is dropped."""
    code, bits, lanes = dlpack_type(dtype)
    size = prod(shape) * dtype.nbytes * dtype.lanes
    packed = code | bits << 8 | lanes << 16
    address = driver().new("tensor", device, len(shape), _sizes(shape), packed, size, current_stream(device))
    return _new_capsule(address, _UNUSED, None)


def view(capsule: object, shape: Sequence[int]) -> object:
    """A capsule of the same memory with another shape; it takes the given one over."""
    source = _pointer_in(capsule, _UNUSED)
    _rename(capsule, _USED)
    return _new_capsule(driver().pointer("view", source, len(shape), _sizes(shape)), _UNUSED, None)


def read(tensor: core.Tensor, dtype: DataType) -> np.ndarray:
    """The contents of a tensor as a new numpy array."""
    device, shape, strides = tensor.__dlpack_device__()[1], tuple(tensor.shape), tuple(tensor.strides)
    begin, elements = _span(shape, strides)
    item = dtype.nbytes * dtype.lanes
    buffer = np.empty(elements * item, np.uint8)
    address = tensor.data_ptr() + begin * item
    driver().call("copy", device, buffer.ctypes.data, address, buffer.nbytes, current_stream(device), True)
    return view_memory(buffer.ctypes.data - begin * item, shape, strides, dtype, buffer)


def write(tensor: core.Tensor, data: np.ndarray) -> None:
    """Overwrite a row-major tensor with an array of its own type and shape."""
    device, data = tensor.__dlpack_device__()[1], np.ascontiguousarray(data)
    driver().call("copy", device, tensor.data_ptr(), data.ctypes.data, data.nbytes, current_stream(device), True)


def copy(target: core.Tensor, source: core.Tensor, size: int) -> None:
    """Copy bytes between row-major tensors on GPUs, queued behind what the current streams hold."""
    to, of = target.__dlpack_device__()[1], source.__dlpack_device__()[1]
    if to != of:
        driver().call("stream_synchronize", of, current_stream(of))
    stream = current_stream(to)
    driver().call("copy", to, target.data_ptr(), source.data_ptr(), size, stream, to != of)


def hand_over(device: int, stream: object) -> None:
    """Have the stream that a consumer names, by the rules of `__dlpack__`, wait for this thread's stream."""
    if isinstance(stream, int) and stream == -1:
        return  # the consumer sees to it
    if isinstance(stream, int) and not isinstance(stream, bool) and stream == 0:
        raise BadStream("__dlpack__: stream 0 may mean two streams", hint="1 is the default one, 2 that of the thread")
    consumer = check_stream(stream)
    driver().call("stream_wait", device, 0 if consumer == 1 else consumer, current_stream(device))


def take_over(source: object, device: int) -> object:
    """A capsule of another library's tensor, whose work on it comes before what this thread's stream does next."""
    return source.__dlpack__(stream=current_stream(device) or 1)  # type: ignore[attr-defined]


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """The offset of the first element in memory, at most 0, and how many elements lie from there to the last."""
    if 0 in shape:
        return 0, 0
    reach = [(size - 1) * stride for size, stride in zip(shape, strides)]
    begin = sum(min(0, one) for one in reach)
    return begin, sum(max(0, one) for one in reach) - begin + 1


def _sizes(shape: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(shape)))(*shape)
