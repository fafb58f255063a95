"""frontends: models of other frameworks as relay graphs.

    mod, params = frontends.from_onnx("model.onnx")
    lib = relay.build(mod, target="llvm", params=params)

A front end needs its framework only when it is called. Read `onnx/importer.py` first; `common/` has what front ends
share, `compiling.py` is `lw.compile`. `relay.frontend` is this package.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public name → module that holds it.
_HOMES = {
    "from_onnx": "loopwright.frontends.onnx",
    "from_pytorch": "loopwright.frontends.pytorch",
}

__all__ = ["from_onnx", "from_pytorch"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'loopwright.frontends' has no attribute {name!r}; it has {', '.join(_HOMES)}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
