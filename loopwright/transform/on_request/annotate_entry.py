"""annotate_entry: the function that a module is run by is marked.

    main (the only function, or the only one with a global_symbol)    →    attrs["tir.is_entry_func"] == True

A module with several functions that can be called has no entry of its own: nothing changes.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import GlobalVar, IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext
from loopwright.ir.pass_decorators import module_pass

ENTRY: Final = "tir.is_entry_func"


@module_pass(opt_level=0, name="annotate_entry")
def annotate_entry(mod: IRModule, context: PassContext) -> IRModule:
    """The function that a module is run by is marked."""
    functions: dict[str | GlobalVar, PrimFunc] = dict(mod.functions.items())
    candidates = list(functions)
    if len(candidates) > 1:
        candidates = [var for var in candidates if "global_symbol" in functions[var].attrs]
    if len(candidates) != 1 or functions[candidates[0]].attrs.get(ENTRY):
        return mod
    marked: PrimFunc = functions[candidates[0]].with_attr(ENTRY, True)
    return IRModule({**functions, candidates[0]: marked}, attrs=mod.attrs)
