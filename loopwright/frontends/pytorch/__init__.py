"""PyTorch models as relay graphs.

    mod, params = from_pytorch(module, example_inputs=(x,))
    lib = relay.build(mod, target="llvm", params=params)

torch itself exports a module to a graph of its operators (`program.py`); operators that have no converter of their own
are expressed by others then. `importer.py` walks that graph once, `ops/` has the converters (one function each, entered
by `@converter`; `registry.py` says how). `compiled.py` makes a module callable.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public name → module that holds it.
_HOMES = {
    "CompiledModule": "compiled",
    "BadTorchNode": "errors",
    "CannotExport": "errors",
    "ChangesState": "errors",
    "InputsNeeded": "errors",
    "NotAModel": "errors",
    "UnsupportedTorchType": "errors",
    "converter": "registry",
    "from_pytorch": "convert",
    "import_module": "convert",
    "supported_operators": "registry",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'loopwright.frontends.pytorch' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"loopwright.frontends.pytorch.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
