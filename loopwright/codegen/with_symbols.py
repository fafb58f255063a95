"""with_symbols: every function of a module has the symbol that its code is known by."""

from __future__ import annotations

from loopwright import ir


def with_symbols(module: ir.IRModule) -> ir.IRModule:
    """The module with every function under a symbol: its `global_symbol`, or its name in the module."""
    named = ir.IRModule(attrs=module.attrs)
    for name, function in module.functions_items():
        named[module.get_global_var(name)] = (
            function if "global_symbol" in function.attrs else function.with_attr("global_symbol", name)
        )
    return named
