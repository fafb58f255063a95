"""Programs as Python text: `T` and `I` to write them, the parser to read them, the printer to show them.

    from loopwright.script import tir as T, ir as I

Start with `parser/` (reading) and `printer/` (showing); `tir.py` and `ir.py` list the words of the language. The parser
loads when it is first used: printing a node, which every error message may do, does not need it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopwright.script import ir, tir
    from loopwright.script.parser import from_source, ir_module
    from loopwright.script.parser import from_source as parse

__all__ = ["from_source", "ir", "ir_module", "parse", "tir"]


def __getattr__(name: str) -> Any:
    if name in ("ir", "tir"):
        return importlib.import_module(f"loopwright.script.{name}")
    if name in ("from_source", "ir_module", "parse"):
        return getattr(importlib.import_module("loopwright.script.parser"), "from_source" if name == "parse" else name)
    raise AttributeError(f"module 'loopwright.script' has no attribute {name!r}")
