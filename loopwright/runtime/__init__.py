"""What a compiled function needs to run: tensors, devices, functions, modules, threads, and errors for bad calls.

Open `tensor.py` first (NDArray), then `module.py`; `export.py` writes modules to files and `load.py` reads them back,
after `library_file.py` has looked at them. `ffi.py` is the one door to tvm_ffi, which carries calls and tensors;
`native/` holds the threads and the workspace that compiled code uses, in C, `thread_pool.py` their Python side;
`native_library.py` finds or builds the library. `link.py` finds the C compiler, `c_objects.py` runs it ahead of time,
`artifact_store.py` keeps compiled code on disk, `together.py` writes files all at once. `call_errors.py` lists what can
be wrong with a call; `errors.py` is the base of every error, `dtype.py` the element types; `timing.py` measures.
`shown.py` is how the layer `display` shows errors and modules. This layer imports nothing of the compiler. Names are
loaded when first used (PEP 562): importing `loopwright.runtime` is quick, and tvm_ffi is loaded with the first tensor,
device or function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "c_source": "CSourceModule CSourceModuleCreate",
    "call_errors": "CallError",
    "containers": "ADT Array Dict List Map Object PackedFunc ShapeTuple String tuple_object",
    "description": "Argument FunctionDescription ModuleDescription",
    "devices": "Device DeviceUnavailable UnknownDevice device cpu cuda gpu opencl cl vulkan metal mtl rocm vpi ext_dev "
    "hexagon webgpu",
    "dtype": "DataType UnknownDataType",
    "enabled": "enabled",
    "errors": "DiagnosticError InternalError LoopwrightError NotBuilt SourceLine",
    "externs": "load_extern_library register_extern",
    "ffi": "function_from_address",
    "library_file": "seal",
    "load": "load_module load_static_library system_lib",
    "module": "Module",
    "object_path": "ObjectPath",
    "params": "load_param_dict load_param_dict_from_file save_param_dict save_param_dict_to_file",
    "registry": "convert get_global_func list_global_func_names register_error register_func remove_global_func",
    "tensor": "NDArray array empty empty_like from_dlpack from_numpy numpyasarray",
    "thread_pool": "num_threads set_num_threads threads trim_workspace",
    "timing": "BenchmarkResult time_evaluator",
}
_WHERE = {name: f"{__name__}.{module}" for module, names in _HOME.items() for name in names.split()}
_WHERE["const"] = "loopwright.ir"  # a literal of a program, which scripts look for here

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
