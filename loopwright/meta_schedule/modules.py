"""modules: programs as the search compares and keeps them."""

from __future__ import annotations

from loopwright.ir import IRModule, PrimFunc


def normalized(mod: IRModule | PrimFunc) -> IRModule:
    """A module with one function `main`, as records know it: its name, and that its arguments do not overlap."""
    if isinstance(mod, PrimFunc):
        mod = IRModule({"main": mod.with_attr("global_symbol", "main").with_attr("tir.noalias", True)})
        return mod
    functions = [(name, one) for name, one in mod.functions_items() if isinstance(one, PrimFunc)]
    if len(functions) == 1:
        ((name, function),) = functions
        if name != "main":
            return normalized(function)
        if not function.attrs.get("tir.noalias"):
            function = function.with_attr("tir.noalias", True)
        if function.attrs.get("global_symbol") != "main":
            function = function.with_attr("global_symbol", "main")
        if function is not functions[0][1]:
            return IRModule({"main": function})
    return mod


def functions_of(mod: IRModule | PrimFunc) -> dict[str, IRModule]:
    """A module for each function, by name in alphabetical order."""
    if isinstance(mod, PrimFunc):
        return {"main": normalized(mod)}
    functions = {name: one for name, one in mod.functions_items() if isinstance(one, PrimFunc)}
    return {name: normalized(functions[name]) for name in sorted(functions)}
