"""Inline: functions of a module that are marked Inline stand where they are called.

    def @f(%y, Inline=1) { exp(%y) }                →    def @main(%x) { exp(%x) }
    def @main(%x) { @f(%x) }

They are gone afterwards, unless something else needs them: a function that may come to call itself stays and is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.graph_functions import graph_function, graph_functions
from loopwright.relay.infer_type import infer_module
from loopwright.relay.transform.functions.clone import applied, clone
from loopwright.relay.visitor import ExprMutator, post_order


class _Inline(ExprMutator):
    """One function with others in it; `finished` has those that were looked at before."""

    def __init__(self, mod: IRModule, names: frozenset[str], finished: dict[str, Function]) -> None:
        super().__init__()
        self.mod = mod
        self.names = names
        self.finished = finished

    def _function(self, name: str) -> Function:
        if name not in self.finished:
            self.finished[name] = _Inline(self.mod, self.names, self.finished).apply(graph_function(self.mod, name))
        return self.finished[name]

    def visit_call(self, call: Call) -> Expr:
        if isinstance(call.op, GlobalVar) and call.op.name in self.names:
            if "Compiler" in self._function(call.op.name).attrs:
                # Another compiler takes over the whole function, so it stays one.
                return Call(self._function(call.op.name), [self.visit(arg) for arg in call.args], span=call.span)
            return applied(self._function(call.op.name), [self.visit(arg) for arg in call.args])
        return super().visit_call(call)

    def visit_global_var(self, var: GlobalVar) -> Expr:
        return clone(self._function(var.name)) if var.name in self.names else super().visit_global_var(var)


def _used(function: Function) -> set[str]:
    below: Iterable[object] = post_order(function)
    return {each.name for each in below if isinstance(each, GlobalVar)}


def _calls_itself(name: str, uses: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    stack = [*uses.get(name, ())]
    while stack:
        current = stack.pop()
        if current == name:
            return True
        if current not in seen:
            seen.add(current)
            stack.extend(uses.get(current, ()))
    return False


def inline_marked(mod: IRModule, context: PassContext) -> IRModule:
    """The module with functions marked Inline in the place of their calls."""
    functions = {var.name: function for var, function in graph_functions(mod).items()}
    uses = {name: _used(function) for name, function in functions.items()}
    marked = frozenset(
        name
        for name, function in functions.items()
        if function.attrs.get("Inline") and not _calls_itself(name, uses)
    )
    if not marked:
        return mod
    finished: dict[str, Function] = {}
    dropped = marked & set().union(*uses.values())  # one that nobody uses is there for whoever calls the module
    changed: dict[str | GlobalVar, Any] = {
        var: _Inline(mod, marked, finished).visit(functions[var.name]) if var.name in functions else function
        for var, function in mod.items()
        if var.name not in dropped
    }
    return infer_module(IRModule(changed, mod.type_definitions, mod.attrs))


def Inline() -> ModulePass:
    """Put functions marked Inline where they are called."""
    return ModulePass(inline_marked, PassInfo(1, "Inline"))
