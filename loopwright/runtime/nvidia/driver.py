"""The CUDA driver, found when it is first asked for: `find_driver()`, and the addresses that compiled code calls.

`LOOPWRIGHT_CUDA_DRIVER` names another library than `libcuda.so.1`; tests put a driver of their own there.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import warnings
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.runtime import call_errors, device_errors, ffi
from loopwright.runtime.call_errors import SEPARATOR
from loopwright.runtime.errors import LoopwrightError, user_stack_level
from loopwright.runtime.native_library import NativeLibrary
from loopwright.runtime.nvidia import errors

LIBRARY: Final = "libcuda.so.1"
_ENVIRONMENT: Final = "LOOPWRIGHT_CUDA_DRIVER"
_native: Final = NativeLibrary(Path(__file__).parent.parent / "native" / "cuda.c")

# What compiled host code may call; `docs/gpu_devices.md` and the C files say how.
_LINKED: Final = (
    *("lw_cuda_module", "lw_cuda_module_release", "lw_cuda_kernel", "lw_cuda_kernel_load", "lw_cuda_launch"),
    *("lw_cuda_launch_embedded", "lw_cuda_device", "lw_cuda_stream", "lw_cuda_alloc", "lw_cuda_free"),
    "lw_cuda_tensor_map",
    *("lw_cuda_copy", "lw_cuda_fill", "lw_cuda_synchronize"),
)
_i32, _i64, _pointer, _text = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
_SIGNATURES: Final = {
    "lw_cuda_open": ([_text], _i32),
    "lw_cuda_error_kind": ([], _text),
    "lw_cuda_error_message": ([], _text),
    "lw_cuda_set_hooks": ([_pointer, _pointer, _pointer], None),
    "lw_cuda_driver_version": ([], _i32),
    "lw_cuda_device_count": ([], _i32),
    "lw_cuda_device_attribute": ([_i32, _i32, _pointer], _i32),
    "lw_cuda_device_name": ([_i32, _pointer, _i32], _i32),
    "lw_cuda_memory": ([_i32, _pointer], _i32),
    "lw_cuda_stream": ([_i32], _pointer),
    "lw_cuda_stream_create": ([_i32, _pointer], _i32),
    "lw_cuda_stream_destroy": ([_i32, _pointer], _i32),
    "lw_cuda_stream_synchronize": ([_i32, _pointer], _i32),
    "lw_cuda_stream_wait": ([_i32, _pointer, _pointer], _i32),
    "lw_cuda_synchronize": ([_i32], _i32),
    "lw_cuda_event_create": ([_i32, _pointer], _i32),
    "lw_cuda_event_destroy": ([_i32, _pointer], _i32),
    "lw_cuda_event_record": ([_i32, _pointer, _pointer], _i32),
    "lw_cuda_event_elapsed": ([_i32, _pointer, _pointer, _pointer], _i32),
    "lw_cuda_alloc": ([_i32, _i64, _pointer, _pointer], _i32),
    "lw_cuda_free": ([_i32, _pointer, _pointer], _i32),
    "lw_cuda_trim": ([_i32], _i32),
    "lw_cuda_copy": ([_i32, _pointer, _pointer, _i64, _pointer, _i32], _i32),
    "lw_cuda_fill": ([_i32, _pointer, _i32, _i64, _pointer], _i32),
    "lw_cuda_tensor": ([_i32, _i32, _pointer, ctypes.c_uint32, _i64, _pointer, _pointer], _i32),
    "lw_cuda_view": ([_pointer, _i32, _pointer], _pointer),
    "lw_cuda_module": ([_pointer, _i32], _pointer),
    "lw_cuda_module_release": ([_pointer], None),
    "lw_cuda_module_note": ([_pointer, _i32], _text),
    "lw_cuda_kernel": ([_pointer, _text, _text], _pointer),
    "lw_cuda_kernel_load": ([_pointer, _i32, _pointer], _i32),
    "lw_cuda_launch": ([_pointer, _i32, _pointer, _pointer, _i64, _pointer], _i32),
    "lw_cuda_images_release": ([_pointer], None),
}


class OtherImageLoaded(UserWarning):
    """Kernels came without machine code for the GPU, and the driver compiled their PTX; or it refused what came.

    They run all the same. The first launch takes longer, and code for this GPU may be faster: build for it, too.
    """


class Unusable(NamedTuple):
    """Why no GPU can be used: the class of the error, and in words."""

    kind: type[device_errors.DeviceUnavailable]
    why: str


class Driver:
    """The driver, started; every function of the C part by its name without `lw_cuda_`."""

    def __init__(self, native: ctypes.CDLL) -> None:
        self._native = native
        self.version: int = native.lw_cuda_driver_version()  # 13000 is CUDA 13.0
        self.device_count: int = native.lw_cuda_device_count()

    def call(self, name: str, *args: object) -> None:
        """Call a function that gives a status, and raise its error."""
        if getattr(self._native, "lw_cuda_" + name)(*args) != 0:
            raise last_error(self._native)

    def pointer(self, name: str, *args: object) -> int:
        """Call a function that gives an address, which is 0 only for streams and after an error."""
        result = getattr(self._native, "lw_cuda_" + name)(*args)
        if result is None and name != "stream":
            raise last_error(self._native)
        return result or 0

    def new(self, name: str, device: int, *args: object) -> int:
        """Call a function that puts an address behind its last argument."""
        result = _pointer()
        self.call(name, device, *args, ctypes.byref(result))
        return result.value or 0

    def attribute(self, device: int, number: int) -> int:
        """A CUdevice_attribute."""
        result = _i32()
        self.call("device_attribute", device, number, ctypes.byref(result))
        return result.value

    def device_name(self, device: int) -> str:
        """What the vendor calls the device."""
        result = ctypes.create_string_buffer(256)
        self.call("device_name", device, result, len(result))
        return result.value.decode(errors="replace")

    def memory(self, device: int) -> tuple[int, int, int, int]:
        """Bytes: free, of the whole device, in our pool, and those of the pool that are in use."""
        result = (_i64 * 4)()
        self.call("memory", device, result)
        return result[0], result[1], result[2], result[3]

    def release_images(self, table: int) -> None:
        """Unload what was loaded of a table of images, whose code is about to go."""
        self._native.lw_cuda_images_release(table)

    def note(self, module: int, device: int) -> str | None:
        """Why another image of a module than the best one was loaded on the device, if so."""
        text: bytes | None = self._native.lw_cuda_module_note(module, device)
        return None if text is None else text.decode(errors="replace")


@functools.cache
def find_driver() -> Driver | Unusable:
    """The driver, or why there is none; looked for once."""
    library = os.environ.get(_ENVIRONMENT) or LIBRARY
    try:
        ctypes.CDLL(library)
    except OSError as error:  # found out before our part in C is built for it
        return Unusable(device_errors.NoCudaDriver, _found(f"{library} was not found", str(error)))
    native = _library()
    if native is None:
        return Unusable(device_errors.NoCudaDriver, f"our part in C cannot be had: {_native.why_not}")
    if native.lw_cuda_open(library.encode()) == 0:
        return Driver(native)
    kind = device_errors.KINDS.get(native.lw_cuda_error_kind().decode(), device_errors.NoCudaDriver)
    problem, why, _ = native.lw_cuda_error_message().decode(errors="replace").split(SEPARATOR)
    return Unusable(kind, _found(problem, why))


def driver() -> Driver:
    """The driver, for a device that was asked for and is there (`Device.require`)."""
    found = find_driver()
    if isinstance(found, Unusable):
        raise found.kind(f"CUDA cannot be used here{SEPARATOR}{found.why}")
    return found


def why_unusable(index: int) -> Unusable | None:
    """Why `cuda(index)` cannot be used, or None."""
    found = find_driver()
    if isinstance(found, Unusable) or 0 <= index < found.device_count:
        return found if isinstance(found, Unusable) else None
    devices = "1 device" if found.device_count == 1 else f"{found.device_count} devices"
    return Unusable(device_errors.NoSuchGpu, f"the driver has {devices}")


def symbols() -> dict[str, int]:
    """The addresses that compiled host code links against, by C name; empty where our part in C cannot be had.

    Without a driver they give -1 and the error that says so.
    """
    native = _library()
    return {} if native is None else {name: ffi.address_of(getattr(native, name)) for name in _LINKED}


def last_error(native: ctypes.CDLL) -> LoopwrightError:
    """The error that the last call of this thread ended with."""
    kind = native.lw_cuda_error_kind().decode()
    message = native.lw_cuda_error_message().decode(errors="replace")
    known = {**errors.KINDS, **device_errors.KINDS, "DeviceMismatch": call_errors.DeviceMismatch}
    return known.get(kind, errors.CudaError)(message)


def native_library() -> ctypes.CDLL | None:
    """Our part in C, or None where it cannot be had."""
    return _library()


@functools.cache
def _library() -> ctypes.CDLL | None:
    native = _native.load()
    if native is None:
        return None
    for name, (arguments, result) in _SIGNATURES.items():
        function = getattr(native, name)
        function.argtypes, function.restype = arguments, result
    _set_hooks(native)
    return native


def _set_hooks(native: ctypes.CDLL) -> None:
    """Tell our part in C how errors and words reach the user, and make it the one of this process."""
    tvm_ffi = ffi.load()
    for kinds in (errors.KINDS, device_errors.KINDS):
        for name, kind in kinds.items():
            tvm_ffi.register_error(name, kind)
    raise_error = ffi.symbols()["TVMFFIErrorSetRaisedFromCStr"]
    native.lw_cuda_set_hooks(raise_error, ffi.address_of(tvm_ffi.LIB.TVMFFIEnvGetStream), ffi.address_of(_warn))


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def _warn(text: bytes) -> None:
    warnings.warn(text.decode(errors="replace"), OtherImageLoaded, stacklevel=user_stack_level())


def connect(library: ctypes.CDLL) -> None:
    """Have an exported library, which brings a copy of our part in C, use that of this process, or else its own."""
    if _library() is None:
        library.lw_cuda_set_hooks.argtypes, library.lw_cuda_set_hooks.restype = [_pointer] * 3, None
        _set_hooks(library)


def _found(problem: str, why: str) -> str:
    """The driver's problem in words, with what else there is to see of a GPU."""
    if not problem.endswith("was not found"):
        return f"{problem}; {why}" if why else problem
    nodes = len(glob.glob("/dev/nvidia[0-9]*"))
    seen = f"{nodes} device file(s) /dev/nvidia* are there" if nodes else "there is no device file /dev/nvidia*"
    return f"the driver library {problem}, and {seen}"
