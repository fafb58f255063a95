"""relay.backend: how models are compiled and run, by the names that scripts know.

`options.py` has `Executor` and `Runtime`; `te_compiler.py` makes single kernels of functions, `interpreter.py` has the
values that are no tensors. The executors themselves are `relay/executors.py`, `relay/vm.py` and
`contrib/graph_executor.py`. Names load when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {"Executor": "options", "Runtime": "options", "UnknownOption": "options"}
_MODULES = ("build_steps", "executor_factory", "interpreter", "te_compiler")

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
