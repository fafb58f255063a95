"""`get_global_func` and its kin for scripts, which find functions of ours under the peer's names.

They are registered when a script first asks: `registered_functions.py` loads the runtime's library.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = ("get_global_func", "list_global_func_names", "register_func", "remove_global_func")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module("loopwright.compat.registered_functions")
    return getattr(importlib.import_module("loopwright.runtime.registry"), name)


def __dir__() -> list[str]:
    return list(_NAMES)
