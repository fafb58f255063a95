"""Hybrid script: Python functions of loops over elements, which run as they are and become parts of a program.

`function.py` holds the decorator; `statements.py`, `assignments.py` and `expressions.py` read the source, `builtins.py`
has the functions it may call; `emulation.py` runs it as Python; `lower.py` turns what was read into blocks, and
`module.py` saves and loads it.
Names load when first used: most programs that use te have no hybrid function, and need neither parser nor evaluator.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopwright.te.hybrid.errors import (
        HybridCallError,
        HybridError,
        HybridLoopError,
        HybridNameError,
        HybridReturnError,
        HybridTypeError,
        MixedArguments,
    )
    from loopwright.te.hybrid.function import HybridFunction, script
    from loopwright.te.hybrid.module import HybridModule, build
    from loopwright.te.hybrid.operation import HybridOp

_NAMES = {
    **dict.fromkeys(
        "HybridCallError HybridError HybridLoopError HybridNameError HybridReturnError HybridTypeError "
        "MixedArguments".split(),
        "errors",
    ),
    **dict.fromkeys(("HybridModule", "build"), "module"),
    "HybridOp": "operation",
    **dict.fromkeys(("HybridFunction", "script"), "function"),
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'loopwright.te.hybrid' has no attribute {name!r}")
    return getattr(importlib.import_module(f"loopwright.te.hybrid.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
