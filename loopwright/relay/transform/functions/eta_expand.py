"""EtaExpand: the name of a function, used as a value, becomes a function that calls it.

@f    →    fn (%a0) { @f(%a0) }
"""

from __future__ import annotations

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function, Var
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import FuncType
from loopwright.relay.visitor import ExprMutator


class _Expand(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.mod = mod

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, GlobalVar):
            return super().visit_call(call)
        args = [self.visit(arg) for arg in call.args]
        same = all(new is old for new, old in zip(args, call.args, strict=True))
        return call if same else Call(call.op, args, call.attrs, call.type_args, call.span)

    def visit_global_var(self, var: GlobalVar) -> Expr:
        function: object = self.mod[var]
        of = function.checked_type_ if isinstance(function, Function) else None
        if not isinstance(of, FuncType):
            return super().visit_global_var(var)
        params = [Var(f"a{k}", each) for k, each in enumerate(of.arg_types)]
        return Function(params, Call(var, params), of.ret_type)


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> GraphPass:
    """Write names of functions that are values as functions."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Expand(mod).apply(function) if expand_global_var else function

    return GraphPass(change, PassInfo(1, "EtaExpand"))
