"""modules: programs as the search compares and keeps them."""

from __future__ import annotations

from loopwright.ir import IRModule, PrimFunc
from loopwright.meta_schedule.errors import BadTuningArgument


def normalized(mod: IRModule | PrimFunc) -> IRModule:
    """A module whose function is `main`; a function without a module also gets the attributes of a called one."""
    if isinstance(mod, PrimFunc):
        return IRModule({"main": mod.with_attr("global_symbol", "main").with_attr("tir.noalias", True)})
    if not isinstance(mod, IRModule):
        raise BadTuningArgument("mod", mod, "a PrimFunc or an IRModule")
    functions = [(name, one) for name, one in mod.functions_items() if isinstance(one, PrimFunc)]
    if len(functions) == 1 and functions[0][0] != "main":
        return normalized(functions[0][1])
    return mod


def as_module(mod: IRModule | PrimFunc) -> IRModule:
    """A module as it is; that of a function."""
    return mod if isinstance(mod, IRModule) else normalized(mod)


def functions_of(mod: IRModule | PrimFunc) -> dict[str, IRModule]:
    """A module for each function, by name in alphabetical order."""
    if isinstance(mod, PrimFunc):
        return {"main": normalized(mod)}
    if not isinstance(mod, IRModule):
        raise BadTuningArgument("mod", mod, "a PrimFunc or an IRModule")
    functions = {name: one for name, one in mod.functions_items() if isinstance(one, PrimFunc)}
    if len(functions) == 1:
        return {name: normalized(mod) for name in functions}
    return {name: normalized(functions[name]) for name in sorted(functions)}
