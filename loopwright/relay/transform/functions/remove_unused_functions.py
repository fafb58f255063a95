"""RemoveUnusedFunctions: functions that the entries never come to call are dropped."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.expr import Function
from loopwright.relay.visitor import post_order


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """Keep the entries (`main` where none are named) and what they call, directly or through others."""
    entries = list(entry_functions or ["main"])

    def change(mod: IRModule, context: PassContext) -> IRModule:
        used: set[str] = set()
        stack = [name for name in entries if name in mod]
        while stack:
            name = stack.pop()
            if name in used:
                continue
            used.add(name)
            function = mod[name]
            if isinstance(function, Function):
                stack.extend(each.name for each in post_order(function) if isinstance(each, GlobalVar) and each in mod)
        if len(used) == len(mod):
            return mod
        kept: dict[str | GlobalVar, PrimFunc] = {var: function for var, function in mod.items() if var.name in used}
        return IRModule(kept, mod.type_definitions, mod.attrs)

    return ModulePass(change, PassInfo(1, "RemoveUnusedFunctions"))
