"""pass_combinators: passes made from plain functions and from other passes, under the names scripts know."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass, Pass, PrimFuncPass
from loopwright.runtime.errors import LoopwrightError


class NoFunctionMatches(LoopwrightError, ValueError):
    """ApplyPassToFunction was given a pattern that no function of the module has as its name.

    For example:

        from loopwright.ir import IRModule
        from loopwright.ir.transform import ApplyPassToFunction, PrintIR

        ApplyPassToFunction(PrintIR(), "mian", error_if_no_function_matches_regex=True)(IRModule())
    """

    code = "LW0528"

    def __init__(self, pattern: str, names: Sequence[str]) -> None:
        near = get_close_matches(pattern, names, 1)
        super().__init__(
            f"no function matches {pattern!r}; the module has {', '.join(sorted(names)) or 'none'}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def Apply(change: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """A pass that runs `change` on every function."""
    return PrimFuncPass(lambda func, mod, context: change(func), PassInfo(0, "Apply"))


def Filter(keep: Callable[[PrimFunc], bool]) -> Pass:
    """A pass that drops the functions for which `keep` is false."""

    def change(mod: IRModule, context: PassContext) -> IRModule:
        kept: dict[str | GlobalVar, PrimFunc] = {var: func for var, func in mod.functions.items() if keep(func)}
        return mod if len(kept) == len(mod) else IRModule(kept, attrs=mod.attrs)

    return ModulePass(change, PassInfo(0, "Filter"))


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that changes nothing and prints the module's script."""

    def change(mod: IRModule, context: PassContext) -> IRModule:
        print(f"# {header}\n{mod.script()}" if header else mod.script())
        return mod

    return ModulePass(change, PassInfo(0, "PrintIR"))


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """A pass that runs `transform` on those functions whose whole name matches the pattern, and keeps the others."""
    pattern = re.compile(func_name_regex)

    def change(mod: IRModule, context: PassContext) -> IRModule:
        matching = {name: func for name, func in mod.functions_items() if pattern.fullmatch(name)}
        if not matching:
            if error_if_no_function_matches_regex:
                raise NoFunctionMatches(func_name_regex, [name for name, _ in mod.functions_items()])
            return mod
        part = IRModule({mod.get_global_var(name): func for name, func in matching.items()}, attrs=mod.attrs)
        changed = transform(part)
        if changed is part:
            return mod
        result = IRModule(attrs=changed.attrs)
        result.update({var: func for var, func in mod.functions.items() if var.name not in matching})
        result.update(changed)
        return result

    return ModulePass(change, PassInfo(0, f"ApplyPassTo_{func_name_regex}"))
