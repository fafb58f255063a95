"""ONNX models as relay graphs.

    mod, params = from_onnx("model.onnx", shape={"x": (1, 3, 224, 224)})

`load.py` reads a model and checks it, `importer.py` walks it once, `ops/` has the converters of its operators (one
function each, entered by `@converter`; `registry.py` says how). `compiled.py` makes a model callable, `backend.py` is
ONNX's own interface to run models and tests.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public name → module that holds it.
_HOMES = {
    "CompiledModel": "compiled",
    "LoopwrightBackend": "backend",
    "UnreadableModel": "errors",
    "BrokenGraph": "errors",
    "BadNode": "errors",
    "convert": "convert",
    "converter": "registry",
    "from_onnx": "convert",
    "supported_operators": "registry",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'loopwright.frontends.onnx' has no attribute {name!r}")
    module = importlib.import_module(f"loopwright.frontends.onnx.{_HOMES[name]}")
    value = module if name == _HOMES[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
