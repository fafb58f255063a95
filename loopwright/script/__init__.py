"""Programs as Python text: `T` and `I` to write them, the parser to read them, the printer to show them.

    from loopwright.script import tir as T, ir as I

Start with `parser/` (reading) and `printer/` (showing); `tir.py` and `ir.py` list the words of the language.
"""

import loopwright.script.printer
from loopwright.script import ir, tir
from loopwright.script.parser import from_source, ir_module

__all__ = ["from_source", "ir", "ir_module", "tir"]
