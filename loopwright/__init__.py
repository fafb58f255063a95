"""Loopwright: a tensor compiler you can read.

Describe a computation (`te`, `script`), say how it should run, get native code. Submodules load when first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name → module that holds it; loaded on first use (PEP 562), so that `import loopwright` stays fast.
_HOMES = {
    "loopwright.build": "build lower",
    "loopwright.error": "TVMError register_error",
    "loopwright.frontends.compiling": "compile",
    "loopwright.frontends.tuning": "tune",
    "loopwright.ir": "IRModule",
    "loopwright.runtime": "cl convert cpu cuda device ext_dev get_global_func gpu hexagon load_module metal mtl opencl "
    "register_func rocm vpi vulkan webgpu",
    "loopwright.runtime.dtype": "DataType",
    "loopwright.runtime.errors": "LoopwrightError",
    "loopwright.schedule": "Schedule",
    "loopwright.target": "Target",
    "loopwright.tir": "PrimExpr",
    "loopwright.transform": "PassContext",
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}
_MODULES = {
    name: f"loopwright.{name}"
    for name in "analysis arith autosched contrib driver error evaluator frontends ir meta_schedule nd relay runtime "
    "script support target te testing tir topi transform".split()
}
_MODULES["instrument"] = "loopwright.ir.instrument"
_MODULES["progress"] = "loopwright.display.progress"
# Names that users of a full stack look for, and that are not here yet.
_TO_COME = "auto_scheduler autotvm micro relax rpc".split()

__all__ = [*_NAMES, *_MODULES]

# What layers use of later ones (`runtime/upper_layers.py`). The view of an object imports the class of the object, so
# that the class cannot import the view; what only scripts written for a peer need is in `compat/`, the last layer.
_UPPER_LAYERS = {
    "debug executor": "loopwright.contrib.debugger.debug_executor:GraphModuleDebug",
    "executor": "loopwright.contrib.graph_executor:GraphModule",
    "ignored settings": "loopwright.compat.settings:IGNORED_SETTINGS",
    "index maps of traces": "loopwright.compat.node_graph:",  # the module itself
    "LLVM bitcode": "loopwright.codegen.llvm.bitcode:bitcode_of",
    "literal": "loopwright.ir:const",
    "literals": "loopwright.ir.attributes:attribute_value",
    "object of LLVM": "loopwright.codegen.llvm.bitcode:object_of",
    "pass names": "loopwright.compat.pass_names:PEER_PASSES",
    "view of error": "loopwright.display.error_sheet:error_sheet",
    "view of traceback": "loopwright.display.error_sheet:traceback_lines",
    "view of module": "loopwright.display.module_sheet:module_sheet",
    "view of source": "loopwright.display.module_sheet:source_sheet",
    "view of target": "loopwright.target.target_sheet:target_sheet",
    "view of tensor": "loopwright.te.graph_sheet:graph_sheet",
    "view of te_schedule": "loopwright.te.schedule.stages_sheet:stages_sheet",
    "view of plan": "loopwright.autosched.plan_sheet:plan_sheet",
    "view of memory_plan": "loopwright.model.plan_sheet:plan_sheet",
    "view of profile": "loopwright.model.profile_table:profile_table",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _TO_COME:
        raise AttributeError(f"'loopwright.{name}' is not built yet; see \"What works today\" in the documentation")
    else:
        from loopwright.runtime.guesses import OF_THE_PACKAGE, no_attribute  # loaded when something went wrong

        raise no_attribute("module 'loopwright' has no attribute", name, __all__, OF_THE_PACKAGE)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """This package: `loopwright.build` is the function, also after someone has imported the module of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _NAMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(["__version__", *__all__])


if TYPE_CHECKING:
    from loopwright.build import build, lower
    from loopwright.runtime import load_module
    from loopwright.schedule import Schedule
