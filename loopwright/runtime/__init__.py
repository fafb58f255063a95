"""What a compiled function needs to run: tensors, devices, functions, modules, threads, and errors for bad calls.

Open `tensor.py` first (NDArray), then `module.py`. `ffi.py` is the one door to tvm_ffi, which carries calls and
tensors; `thread_pool.c` holds the threads and the workspace that compiled code uses, `thread_pool.py` its Python
side, `native_library.py` how it is built; `call_errors.py` lists what can be wrong with a call; `errors.py` is the
base of every error, `dtype.py` the element types; `timing.py` measures. This layer imports nothing of the compiler.
Names are loaded when first used (PEP 562): importing `loopwright.runtime` is quick, and tvm_ffi is loaded with the
first tensor, device or function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "call_errors": "CallError",
    "devices": "Device DeviceUnavailable UnknownDevice device cpu cuda gpu opencl cl vulkan metal mtl rocm vpi ext_dev "
    "hexagon webgpu",
    "dtype": "DataType UnknownDataType",
    "errors": "DiagnosticError InternalError LoopwrightError NotBuilt SourceLine",
    "ffi": "function_from_address",
    "module": "Module load_module",
    "registry": "convert get_global_func list_global_func_names register_error register_func remove_global_func",
    "tensor": "NDArray array empty from_dlpack from_numpy numpyasarray",
    "thread_pool": "num_threads set_num_threads threads",
    "timing": "BenchmarkResult time_evaluator",
}
_WHERE = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
