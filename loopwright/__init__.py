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
_NAMES = {
    "build": "loopwright.build",
    "lower": "loopwright.build",
    "IRModule": "loopwright.ir",
    "DataType": "loopwright.runtime.dtype",
    "Target": "loopwright.target",
    "PassContext": "loopwright.transform",
    "cpu": "loopwright.runtime",
    "cuda": "loopwright.runtime",
    "device": "loopwright.runtime",
    "TVMError": "loopwright.error",
    "LoopwrightError": "loopwright.runtime.errors",
}
_MODULES = "analysis arith error evaluator ir nd runtime script target te tir transform".split()
# Names that users of a full stack look for, and that are not here yet.
_TO_COME = "auto_scheduler autotvm contrib driver micro meta_schedule relay relax rpc testing topi".split()

__all__ = [*_NAMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"loopwright.{name}")
    elif name in _TO_COME:
        raise AttributeError(f"'loopwright.{name}' is not built yet; the README lists what works today")
    else:
        raise AttributeError(f"module 'loopwright' has no attribute {name!r}")
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
