"""LambdaLift: functions inside functions become functions of the module.

    def @main(%x) {                         →    def @lifted_f(%y, %x) { add(%y, %x) }
      let %f = fn (%y) { add(%y, %x) };          def @main(%x) { @lifted_f(exp(%x), %x) }
      %f(exp(%x))
    }

What a function uses from around it is given to it as further arguments. A function that is handed on as a value keeps a
small function around the call. Kernels stay where they are.
"""

from __future__ import annotations

from typing import Any

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.analysis.variables import free_vars
from loopwright.relay.expr import Call, Expr, Function, Let, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.types import FuncType
from loopwright.relay.visitor import ExprMutator, bind


class _Lift(ExprMutator):
    def __init__(self, used: set[str]) -> None:
        super().__init__()
        self.taken = used
        self.lifted: dict[str, Function] = {}
        self.known: dict[Expr, tuple[GlobalVar, list[Var]]] = {}  # let variable → the function it is, what it captures

    def _name(self, hint: str) -> str:
        name = base = f"lifted_{hint}"
        count = 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        return name

    def lift(self, function: Function, known_as: Var | None = None) -> tuple[GlobalVar, list[Var]]:
        """Make it a function of the module; what it captures are its last parameters."""
        captured = [var for var in free_vars(function) if var is not known_as and var not in self.known]
        # What the functions it calls capture must be there as well.
        for var in free_vars(function):
            for more in self.known.get(var, (None, []))[1]:
                if not any(more is one for one in captured):
                    captured.append(more)
        name = GlobalVar(self._name(known_as.name_hint if known_as is not None else "function"))
        if known_as is not None:
            self.known[known_as] = (name, captured)
        own = [Var(var.name_hint, var.type_annotation or var.checked_type_) for var in captured]
        body = self.visit(function.body)
        changed = Function([*function.params, *own], bind(body, dict(zip(captured, own, strict=True))))
        declared = function.declared_ret_type or getattr(function.checked_type_, "ret_type", None)
        self.lifted[name.name] = Function(changed.params, changed.body, declared, function.type_params, function.attrs)
        return name, captured

    def visit_function(self, function: Function) -> Expr:
        if "Primitive" in function.attrs:
            return function
        return self._value(*self.lift(function), function)

    def _value(self, name: GlobalVar, captured: list[Var], function: Function | Var) -> Expr:
        """The function as a value: itself, or one that hands on what was captured."""
        if not captured:
            return super().visit_global_var(name)
        of = function.checked_type_
        assert isinstance(of, FuncType)
        params = [Var(f"a{k}", each) for k, each in enumerate(of.arg_types)]
        return Function(params, Call(name, [*params, *captured]))

    def visit_let(self, let: Let) -> Expr:
        chain: list[tuple[Let, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            if isinstance(body.value, Function) and "Primitive" not in body.value.attrs:
                self.lift(body.value, body.var)
            else:
                chain.append((body, self.visit(body.value)))
            body = body.body
        result = self.visit(body)
        for old, value in reversed(chain):
            result = old if value is old.value and result is old.body else Let(old.var, value, result, old.span)
        return result

    def visit_call(self, call: Call) -> Expr:
        args = [self.visit(arg) for arg in call.args]
        if isinstance(call.op, Function) and "Primitive" not in call.op.attrs:
            name, captured = self.lift(call.op)
            return Call(name, [*args, *captured], span=call.span)
        result = self.known.get(call.op)
        if result is not None:
            return Call(result[0], [*args, *result[1]], span=call.span)
        return super().visit_call(call)

    def visit_var(self, var: Var) -> Expr:
        result = self.known.get(var)
        return var if result is None else self._value(*result, var)


def lift_functions(mod: IRModule, context: PassContext) -> IRModule:
    """The module with every inner function as one of its own."""
    infer_module(mod)
    used = {var.name for var in mod}
    changed: dict[str | GlobalVar, Any] = {}
    for var, function in mod.items():
        if not isinstance(function, Function) or "Primitive" in function.attrs or "Compiler" in function.attrs:
            changed[var] = function
            continue
        lift = _Lift(used)
        body = lift.visit(function.body)
        same = body is function.body
        changed[var] = (
            function
            if same
            else function.rebuilt(function.params, body, function.declared_ret_type)
        )
        changed |= {GlobalVar(name): lifted for name, lifted in lift.lifted.items()}
    return infer_module(IRModule(changed, mod.type_definitions, mod.attrs))


def LambdaLift() -> ModulePass:
    """Make inner functions functions of the module."""
    return ModulePass(lift_functions, PassInfo(1, "LambdaLift"))
