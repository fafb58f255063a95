"""LLVM as text: lowered IR in, an object out.

Open `make_module.py` first: it puts these together. `emit_module.py` writes a module (collected by `module_text.py`,
each function by `function_builder.py`); `emitter.py` is the walk over statements and `expressions.py` the one over
values, with one file each for arithmetic, casts, calls and parallel loops. Each function has a checked entry (`abi.py`)
and a plain one for C (`plain_entry.py`). `engine.py` compiles text to an object, `load_object.py` links that into this
process, and `native_module.py` makes it a runtime Module.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopwright.codegen.llvm.emit_module import emit_module
    from loopwright.codegen.llvm.make_module import make_module

__all__ = ["emit_module", "make_module"]


def __getattr__(name: str) -> Any:
    # When first used: what comes from the compile cache is linked without any of the emitter.
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.{name}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """This package: `make_module` is the function, also after someone has imported the file of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
