"""The graph functions of a module, which may hold loop functions (PrimFunc) as well."""

from __future__ import annotations

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.expr import Function


def graph_function(mod: IRModule, key: str | GlobalVar = "main") -> Function:
    """The function of that name, which is a graph."""
    function: object = mod[key]
    assert isinstance(function, Function), f"{key} is no graph but {type(function).__name__}"
    return function


def graph_functions(mod: IRModule) -> dict[GlobalVar, Function]:
    """Those functions that are graphs, in the order of the module."""
    functions: list[tuple[GlobalVar, object]] = list(mod.items())
    return {var: function for var, function in functions if isinstance(function, Function)}
