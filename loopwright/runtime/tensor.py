"""NDArray: a tensor in memory, shared with numpy and torch through DLPack without copying.

An NDArray *is* a `tvm_ffi.Tensor` (a subclass with more methods and no more state), so a call passes it with no
work in Python. `array` and `empty` allocate; `from_dlpack` and `from_numpy` share. `numpy()` copies, as scripts
expect; `numpy.asarray(x)` and `numpy.from_dlpack(x)` share. Tensors on a GPU are the same class: `nd.array(x, cuda(0))`
makes one, `numpy()` and `copyto` bring it back, and torch shares it.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from loopwright.runtime.devices import CPU, CUDA, Device, cpu
from loopwright.runtime.dlpack import capsule, not_exported, view_memory
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import core
from loopwright.runtime.nvidia import memory

if TYPE_CHECKING:
    import ctypes

    import numpy.typing as npt

ALIGNMENT: Final = 64  # bytes: a cache line, and the widest vector register


class BadTensorData(LoopwrightError, ValueError):
    """What was to be put into a tensor, or made into one, does not fit it.

    A tensor takes data of its own shape; element types are converted. Only whole tensors are assigned: `a[:] = x`.

    For example:

        from loopwright import nd
        nd.empty((4,)).copyfrom([1, 2, 3])
    """

    code = "LW0105"


class _Tensors(type):
    def __instancecheck__(cls, value: object) -> bool:
        """Arrays that answer as tensors do (`relay/arrays.py`) count as tensors for scripts that ask what came back."""
        return super().__instancecheck__(value) or getattr(type(value), "answers_as_tensor", False)


class NDArray(core.Tensor, metaclass=_Tensors):
    """A tensor: `shape`, `dtype`, `device`, and memory that numpy and torch can share."""

    __slots__ = ()

    @property
    def dtype(self) -> DataType:
        """The element type, as text with `bits`, `lanes` and `type_code`."""
        return DataType(super().dtype)

    @property
    def device(self) -> Device:
        """Where the memory lies."""
        return Device(*self.__dlpack_device__())

    @property
    def handle(self) -> ctypes.c_void_p:
        """The tensor's native handle, as a ctypes pointer."""
        return self.__ctypes_handle__()

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array; bfloat16 and float8 come as `ml_dtypes` types, lanes as a trailing axis."""
        return self.__array__(copy=True)

    def asnumpy(self) -> np.ndarray:
        """The old name of `numpy`."""
        return self.numpy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """The tensor's own memory as a numpy array: `numpy.asarray(x)` copies nothing, except from a GPU."""
        if self.device.device_type != CPU:
            return self._read(dtype, copy)
        shared = view_memory(self.data_ptr(), self.shape, self.strides, self.dtype, self)
        if dtype is not None and shared.dtype != dtype:
            if copy is False:
                raise BadTensorData(f"a {self.dtype} tensor cannot be read as {np.dtype(dtype)} without a copy")
            return shared.astype(dtype)
        return shared.copy() if copy else shared

    def _read(self, dtype: npt.DTypeLike | None, copy: bool | None) -> np.ndarray:
        self.device.require("reading a tensor")
        if copy is False:
            raise BadTensorData(f"a tensor on {self.device} cannot be read as a numpy array without a copy")
        result = memory.read(self, self.dtype)
        return result if dtype is None else result.astype(dtype, copy=False)

    def copyfrom(self, source: object) -> NDArray:
        """Overwrite this tensor with `source` (numpy, tensor, list) of the same shape, converting its type."""
        if self.device.device_type != CPU:
            return self._write(source)
        mine = self.__array__()
        other = self._fitting(source)
        try:
            np.copyto(mine, other, casting="unsafe")
        except (TypeError, ValueError) as error:
            raise BadTensorData(f"copyfrom: {other.dtype} cannot become {self.dtype}", why=str(error)) from error
        return self

    def _fitting(self, source: object) -> np.ndarray:
        """`source` as an array of this tensor's shape."""
        dtype = self.dtype
        shape = tuple(self.shape) if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        other = _host_data(source)
        if {str(dtype.element), str(other.dtype)} == {"bfloat16", "uint16"}:  # older scripts carry one as its bits
            other = other.view(dtype.numpy())
        if other.shape != shape:
            raise BadTensorData(
                f"copyfrom: the tensor has shape {shape}, the data has shape {other.shape}",
                hint="reshape the data; copyfrom does not broadcast",
                fields={"expected": shape, "given": other.shape},
            )
        return other

    def _write(self, source: object) -> NDArray:
        """The same on a GPU: from another GPU tensor there, or by way of the host."""
        self.device.require("writing a tensor")
        if not self.is_contiguous():
            raise BadTensorData(
                f"copyfrom: the elements of the tensor on {self.device} do not lie next to each other",
                hint="copy into a tensor of its own, and assign that where it came from",
            )
        if _is_on_gpu(source):
            other = source if isinstance(source, core.Tensor) and isinstance(source, NDArray) else from_dlpack(source)
            if (other.dtype, other.shape) == (self.dtype, self.shape) and other.is_contiguous():
                memory.copy(self, other, prod(self.shape) * self.dtype.nbytes * self.dtype.lanes)
                return self
            source = other
        data = self._fitting(source)
        try:
            memory.write(self, data.astype(self.dtype.numpy(), copy=False))
        except (TypeError, ValueError) as error:
            raise BadTensorData(f"copyfrom: {data.dtype} cannot become {self.dtype}", why=str(error)) from error
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy into another tensor, or into a new one on a device; gives back the target."""
        if isinstance(target, core.Tensor) and isinstance(target, NDArray):
            return target.copyfrom(self)
        if isinstance(target, core.Device):
            return empty(self.shape, self.dtype, target, mem_scope).copyfrom(self)
        raise TypeError(f"copyto: the target must be an NDArray or a Device, not {type(target).__name__}")

    def __setitem__(self, where: object, value: object) -> None:
        if where != slice(None) and where is not Ellipsis:
            raise BadTensorData(
                f"only the whole tensor can be assigned, not [{where!r}]",
                hint="write a[:] = x, or change part of it through numpy: numpy.asarray(a)[...] = x",
            )
        shape = tuple(self.shape) if self.dtype.lanes == 1 else (*self.shape, self.dtype.lanes)
        self.copyfrom(np.broadcast_to(value, shape) if np.isscalar(value) else value)

    def to_dlpack(self) -> object:
        """A DLPack capsule of this memory."""
        return self.__dlpack__()

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """What `from_dlpack` of other libraries asks for; on a GPU their stream then waits for this thread's."""
        kind, index = self.__dlpack_device__()
        if kind == CUDA:
            memory.hand_over(index, stream)
        return super().__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def _create_view(self, shape: Sequence[int]) -> NDArray:
        """The same memory under another shape with as many elements."""
        if not self.is_contiguous():
            raise BadTensorData("_create_view: the tensor's elements do not lie next to each other")
        if prod(shape) != prod(self.shape):
            raise BadTensorData(f"_create_view: shape {tuple(shape)} has not as many elements as {self.shape}")
        if self.device.device_type != CPU:
            return from_dlpack(memory.view(super().__dlpack__(), shape))
        mine = self.__array__()
        new_shape = (*shape, *mine.shape[self.ndim :])
        return from_numpy(mine.reshape(new_shape), self.dtype)

    def __repr__(self) -> str:
        return f"<NDArray shape={self.shape}, dtype={self.dtype}, {self.device}>\n{self.__array__()!r}"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.numpy(), str(self.dtype), self.device)


_install_lock = threading.Lock()
if core._CLASS_TENSOR is core.Tensor:
    # Tensors that functions return or hand to Python callbacks are then of this class too. Where another package has
    # put its own class there, its functions keep it, and ours is put there only for the moment of making a tensor.
    core._set_class_tensor(NDArray)


def from_dlpack(source: object) -> NDArray:
    """A tensor on the memory of `source` (numpy, torch, a capsule …), which it keeps alive."""
    if core._CLASS_TENSOR is NDArray:
        return _imported(source)
    with _install_lock:
        foreign = core._CLASS_TENSOR
        core._set_class_tensor(NDArray)
        try:
            return _imported(source)
        finally:
            core._set_class_tensor(foreign)


def _imported(source: object) -> NDArray:
    try:
        if _is_on_gpu(source) and not isinstance(source, core.Tensor):
            source = memory.take_over(source, source.__dlpack_device__()[1])  # type: ignore[attr-defined]
        return core.from_dlpack(source)  # type: ignore[return-value]
    except Exception as error:  # whatever the exporting code raises, which is not ours
        raise BadTensorData(f"from_dlpack: {not_exported(source, error)}") from error


def from_numpy(source: np.ndarray, dtype: str | None = None) -> NDArray:
    """A tensor on the memory of a numpy array, also a read-only one or one of an ml_dtypes type.

    Nothing watches a read-only array here: hand the tensor only to functions that do not write it. For a vector
    `dtype` the array's last axis holds the lanes.
    """
    return from_dlpack(capsule(source, DataType(source.dtype if dtype is None else dtype)))


def lent(view: core.Tensor) -> core.Tensor:
    """A tensor on memory that native code lends for the length of a call.

    What arrives is a bare view without an owner, which `numpy.from_dlpack` and the like must not be given.
    """
    if view.__dlpack_device__()[0] != CPU:
        return view
    dtype = DataType(str(view.dtype))
    return from_numpy(view_memory(view.data_ptr(), tuple(view.shape), tuple(view.strides), dtype, view), dtype)


def empty(
    shape: int | Sequence[int], dtype: str = "float32", device: Device | None = None, mem_scope: str | None = None
) -> NDArray:
    """A new tensor with arbitrary contents, its memory aligned to 64 bytes."""
    device = cpu(0) if device is None else device
    if not isinstance(device, Device):
        device = Device(*_device_pair(device))
    device.require("making a tensor")
    if mem_scope not in (None, "", "global"):
        raise BadTensorData(f"{device} has no memory scope {mem_scope!r}", hint="leave mem_scope out, or use 'global'")
    kind = DataType(dtype)
    axes = _as_shape(shape)
    if any(axis < 0 for axis in axes):
        raise BadTensorData(f"empty: the shape {axes} has a negative length")
    if prod(axes) * kind.nbytes * kind.lanes >= 1 << 63:
        raise BadTensorData(f"empty: a {kind} tensor of shape {axes} is larger than the address space")
    if device.device_type == CUDA:
        return from_dlpack(memory.new_tensor(device.index, axes, kind))
    return from_numpy(_aligned(axes if kind.lanes == 1 else (*axes, kind.lanes), kind.numpy()), kind)


def _as_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple([operator.index(axis) for axis in ((shape,) if isinstance(shape, (int, np.integer)) else shape)])
    except TypeError:
        raise BadTensorData(f"empty: {shape!r:.60} is no shape", hint="give an integer, or a tuple of them") from None


def empty_like(source: NDArray | np.ndarray, device: Device | None = None) -> NDArray:
    """A new tensor of the shape and type of `source`, with arbitrary contents."""
    return empty(tuple(source.shape), DataType(source.dtype), device)


def array(
    source: object, device: Device | None = None, mem_scope: str | None = None, dtype: str | None = None
) -> NDArray:
    """A new tensor with the contents of `source`: numpy, another tensor, a (nested) list or a number."""
    if isinstance(source, core.Tensor) and isinstance(source, NDArray):
        return empty(source.shape, dtype or source.dtype, device, mem_scope).copyfrom(source)
    data = _host_data(source)
    if data.dtype == object or (data.dtype.kind in "USVMm" and not _is_ml_dtype(data.dtype)):
        raise BadTensorData(
            f"array: {type(source).__name__} with elements of type {data.dtype} is no tensor data",
            hint="give numbers, in lists of equal length or in a numpy array",
        )
    return empty(data.shape, dtype or DataType(data.dtype), device, mem_scope).copyfrom(data)


def numpyasarray(source: np.ndarray) -> NDArray:
    """A tensor on the memory of a numpy array; the older name of `from_numpy`."""
    return from_numpy(source)


def as_argument(value: object) -> object:
    """What to pass for `value`: a re-typed tensor for an array that numpy does not export, else `value` itself."""
    if isinstance(value, np.ndarray) and (_is_ml_dtype(value.dtype) or not value.flags.writeable):
        return from_numpy(value)
    return value


def why_not_exported(array: np.ndarray) -> str | None:
    """What keeps an array from being passed in any form, or None."""
    if _is_ml_dtype(array.dtype):
        return None
    if array.dtype.kind not in "biufc" or array.dtype.char in "gG":  # longdouble, of a size of its own on each machine
        return f"has element type {array.dtype}, which no function takes"
    if not array.dtype.isnative:
        return f"has element type {array.dtype} with its bytes in the other order"
    return None


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    size = prod(shape) * dtype.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, buffer=raw, offset=-raw.ctypes.data % ALIGNMENT)


def _host_data(source: object) -> np.ndarray:
    if isinstance(source, np.ndarray):
        return source
    if isinstance(source, core.Tensor) and not isinstance(source, NDArray):
        source = from_dlpack(source)
    try:
        if not isinstance(source, NDArray) and hasattr(source, "__dlpack__"):
            return np.asarray(from_dlpack(source))
        return np.asarray(source)
    except ValueError as error:
        if isinstance(error, LoopwrightError):
            raise
        raise BadTensorData(f"{type(source).__name__} is no tensor data", why=str(error)) from error


def _is_on_gpu(source: object) -> bool:
    where = getattr(source, "__dlpack_device__", None)
    return where is not None and where()[0] == CUDA


def _is_ml_dtype(dtype: np.dtype) -> bool:
    return dtype.isbuiltin == 2  # numpy's mark for types that other packages registered


def _device_pair(device: object) -> tuple[int, int]:
    if isinstance(device, core.Device):
        return device.dlpack_device_type(), device.index
    if hasattr(device, "__dlpack_device__"):
        return device.__dlpack_device__()
    raise TypeError(f"a device is needed, not {type(device).__name__}; write loopwright.cpu(0)")


def _restore(data: np.ndarray, dtype: str, device: Device | None = None) -> NDArray:
    shape = data.shape[:-1] if DataType(dtype).lanes > 1 else data.shape
    return empty(shape, dtype, device).copyfrom(data)
