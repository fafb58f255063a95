"""Functions for other compilers: out of the graph into the module, back again, or left to be linked.

    OutlineCompilerFunctionsWithExistingGlobalSymbols("mine")    fn (…, Compiler="mine", global_symbol="f")  →  @f
    MarkCompilerFunctionsAsExtern("mine")                        def @f(…, Compiler="mine")  →  def @f(…, Extern=1)
    InlineCompilerFunctionsBoundTo([f])                          @f(x)  →  what it computes

Without the name of a compiler the first two take functions for any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.expr import Call, Expr, Function, Let
from loopwright.relay.graph_functions import graph_functions
from loopwright.relay.infer_type import infer_module
from loopwright.relay.transform.functions.clone import applied
from loopwright.relay.visitor import ExprMutator


def _is_for(function: object, compiler: str) -> bool:
    given = function.attrs.get("Compiler") if isinstance(function, Function) else None
    return given is not None and (not compiler or given == compiler)


class _Outline(ExprMutator):
    def __init__(self, compiler: str, names: dict[str, GlobalVar]) -> None:
        super().__init__()
        self.compiler = compiler
        self.names = names
        self.outlined: dict[GlobalVar, Function] = {}

    def visit_function(self, function: Function) -> Expr:
        symbol = function.attrs.get("global_symbol")
        if not _is_for(function, self.compiler) or not isinstance(symbol, str):
            return super().visit_function(function)
        var = self.names.setdefault(symbol, GlobalVar(symbol))
        self.outlined[var] = function
        return var  # type: ignore[return-value]

    def visit_let(self, let: Let) -> Expr:
        if isinstance(let.value, Function):
            value = self.visit(let.value)
            if isinstance(value, GlobalVar):
                self.memo_map[let.var] = value
                return self.visit(let.body)
        return super().visit_let(let)


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> ModulePass:
    """Make functions for a compiler that have a `global_symbol` functions of the module, of that name."""

    def outline(mod: IRModule, context: PassContext) -> IRModule:
        result = mod.copy()
        names = {var.name: var for var in mod.get_global_vars()}
        for var, function in graph_functions(mod).items():
            if _is_for(function, compiler_filter):
                continue
            rewrite = _Outline(compiler_filter, names)
            result[var] = rewrite.visit(function)  # type: ignore[assignment]
            for name, outlined in rewrite.outlined.items():
                result[name] = outlined  # type: ignore[assignment]
        return infer_module(result)

    return ModulePass(outline, PassInfo(0, "OutlineCompilerFunctionsWithExistingGlobalSymbols"))


def MarkCompilerFunctionsAsExtern(compiler_filter: str = "") -> ModulePass:
    """Say of functions for a compiler that their code comes from elsewhere; nothing else is said of them any more."""

    def mark(mod: IRModule, context: PassContext) -> IRModule:
        def marked(function: Any) -> Any:
            if not _is_for(function, compiler_filter):
                return function
            assert isinstance(function, Function)
            attrs = {"Extern": 1}
            return Function(function.params, function.body, function.declared_ret_type, function.type_params, attrs)

        return infer_module(mod.map_functions(marked))

    return ModulePass(mark, PassInfo(0, "MarkCompilerFunctionsAsExtern"))


class _InlineCalls(ExprMutator):
    """Calls of some functions of the module, and of the composite functions in them, become what they compute."""

    def __init__(self, functions: dict[str, Function]) -> None:
        super().__init__()
        self.functions = functions

    def visit_call(self, call: Call) -> Expr:
        callee = call.op
        if isinstance(callee, GlobalVar) and callee.name in self.functions:
            body = applied(self.functions[callee.name], [self.visit(arg) for arg in call.args])
            return _InlineComposites().visit(body)
        return super().visit_call(call)


class _InlineComposites(ExprMutator):
    def visit_call(self, call: Call) -> Expr:
        if isinstance(call.op, Function) and "Composite" in call.op.attrs:
            return self.visit(applied(call.op, call.args))
        return super().visit_call(call)

    def visit_function(self, function: Function) -> Expr:
        return function if "Compiler" in function.attrs else super().visit_function(function)


def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar]) -> ModulePass:
    """Put these functions where they are called, and drop them: the graph computes what they would have."""
    wanted = {var.name for var in global_vars}

    def inline(mod: IRModule, context: PassContext) -> IRModule:
        functions = {var.name: function for var, function in graph_functions(mod).items() if var.name in wanted}
        changed: dict[str | GlobalVar, Any] = {
            var: _InlineCalls(functions).visit(function) if isinstance(function, Function) else function
            for var, function in mod.items()
            if var.name not in functions
        }
        return infer_module(IRModule(changed, mod.type_definitions, mod.attrs))

    return ModulePass(inline, PassInfo(0, "InlineCompilerFunctionsBoundTo"))
