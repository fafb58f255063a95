"""Functions that scripts find by the names they are registered under (`get_global_func`), and that are ours.

`import` of this module registers them; `global_functions.py` does so when a script first asks for one by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from loopwright.ir.node import when_used
from loopwright.runtime import Module, register_func
from loopwright.runtime.registry import get_global_func, list_global_func_names

__all__ = ["_init_api"]


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Make the functions registered as `namespace.name` attributes of a module, by default of the one of that name."""
    module = sys.modules[target_module_name or namespace]
    prefix = f"{namespace.removeprefix('tvm.')}."
    for name in list_global_func_names():
        if name.startswith(prefix) and "." not in name[len(prefix) :]:
            setattr(module, name[len(prefix) :], get_global_func(name))


def _source_module(code: str, fmt: str) -> Module:
    """A text as a module, to be shown and saved."""
    return Module({}, sources={fmt: lambda: code}, type_key=fmt)


def _graph_executor(graph: str, lib: Module, *devices: object) -> Module:
    from loopwright.contrib.graph_executor import create

    return create(graph, lib, devices).module


def _debug_executor(graph: str, lib: Module, *devices: object) -> Module:
    from loopwright.contrib.debugger.debug_executor import create

    return create(graph, getattr(lib, "built", lib), devices).module


def _load_params(data: bytes) -> Mapping[str, Any]:
    from loopwright.runtime import load_param_dict

    return load_param_dict(bytes(data))


def _save_params(params: Mapping[str, Any]) -> bytes:
    from loopwright.runtime import save_param_dict

    return bytes(save_param_dict(dict(params.items())))


_RUNTIME: Mapping[str, Callable[..., Any]] = {
    "CSourceModuleCreate": when_used("loopwright.runtime.c_source", "CSourceModuleCreate"),
    "LoadParams": _load_params,
    "ModuleClearImports": Module.clear_imports,
    "ModuleGetFormat": lambda module: module.format,
    "ModuleGetImport": lambda module, index: module.imported_modules[index],
    "ModuleGetPropertyMask": Module.get_property_mask,
    "ModuleGetSource": Module.get_source,
    "ModuleGetTypeKey": lambda module: module.type_key,
    "ModuleImplementsFunction": Module.implements_function,
    "ModuleImportsSize": lambda module: len(module.imported_modules),
    "ModuleLoadFromFile": when_used("loopwright.runtime.load", "load_module"),
    "ModuleLoadStaticLibrary": when_used("loopwright.runtime.load", "load_static_library"),
    "ModuleSaveToFile": Module.save,
    "NumThreads": when_used("loopwright.runtime.thread_pool", "num_threads"),
    "RuntimeEnabled": when_used("loopwright.runtime.enabled", "enabled"),
    "SaveParams": _save_params,
    "SourceModuleCreate": _source_module,
    "SystemLib": when_used("loopwright.runtime.load", "system_lib"),
}
_OTHERS: Mapping[str, Callable[..., Any]] = {
    "relay.transform.RecoverVirtualDeviceMap": when_used("loopwright.relay.analysis.devices", "virtual_devices"),
    "tvm.graph_executor.create": _graph_executor,
    "tvm.graph_executor_debug.create": _debug_executor,
}
_CODEGEN = """
llvm_cpu_has_features llvm_get_cpu_archlist llvm_get_cpu_features llvm_get_intrinsic_name llvm_get_system_cpu
llvm_get_system_triple llvm_get_targets llvm_lookup_intrinsic_id llvm_version_major
"""

for _name, _function in {
    **{f"runtime.{name}": function for name, function in _RUNTIME.items()},
    **{f"target.{name}": when_used("loopwright.target.codegen", name) for name in _CODEGEN.split()},
    **_OTHERS,
}.items():
    register_func(_name, _function, override=True)
for _name in ("randint", "uniform", "normal", "random_fill", "seed"):
    # The module registers the functions themselves when it is first used, by import or by one of these.
    register_func(f"tvm.contrib.random.{_name}", when_used("loopwright.contrib.random", f"_{_name}"), override=True)
