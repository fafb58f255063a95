"""EtaExpand: the name of a function or a case of a data type, used as a value, becomes a function that calls it.

@f    →    fn (%a0) { @f(%a0) }
"""

from __future__ import annotations

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.adt import Constructor
from loopwright.relay.expr import Call, Expr, Function, Var
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import FuncType
from loopwright.relay.visitor import ExprMutator


class _Expand(ExprMutator):
    def __init__(self, mod: IRModule, constructors: bool, names: bool) -> None:
        super().__init__()
        self.mod = mod
        self.constructors = constructors
        self.names = names

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, (GlobalVar, Constructor)):
            return super().visit_call(call)
        args = [self.visit(arg) for arg in call.args]
        same = all(new is old for new, old in zip(args, call.args, strict=True))
        return call if same else Call(call.op, args, call.attrs, call.type_args, call.span)

    def visit_constructor(self, constructor: Constructor) -> Expr:
        if not self.constructors or not constructor.inputs:
            return constructor
        data = constructor.definition
        params = [Var(f"a{k}", of) for k, of in enumerate(constructor.inputs)]
        return Function(params, Call(constructor, params), data.type, data.type_vars)

    def visit_global_var(self, var: GlobalVar) -> Expr:
        if not self.names:
            return super().visit_global_var(var)
        function: object = self.mod[var]
        of = function.checked_type_ if isinstance(function, Function) else None
        if not isinstance(of, FuncType):
            return super().visit_global_var(var)
        params = [Var(f"a{k}", each) for k, each in enumerate(of.arg_types)]
        return Function(params, Call(var, params), of.ret_type)


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> GraphPass:
    """Write names of functions, or cases of data types, that are values as functions."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Expand(mod, expand_constructor, expand_global_var).apply(function)

    return GraphPass(change, PassInfo(1, "EtaExpand"))
