"""AnnotateTarget: marks around what another compiler can compute.

    nn.relu(%x)    →    annotation.compiler_end(nn.relu(annotation.compiler_begin(%x, "dnnl")), "dnnl")

A compiler takes an operator when `relay.op.get(name).get_attr("target.<compiler>")` says yes of a call, and a function
whose Composite name begins with the compiler's. The first of several takes it. With `include_non_call_ops` tuples and
their fields belong to whom their parts do.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from loopwright.relay.op.registry import Op, make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


class _Annotate(TypedRewrite):
    def __init__(self, mod: IRModule, targets: Sequence[str], non_calls: bool) -> None:
        super().__init__(mod)
        self.targets = targets
        self.non_calls = non_calls

    def _target(self, call: Call) -> str | None:
        if isinstance(call.op, Function):
            name = str(call.op.attrs.get("Composite", ""))
            return next((one for one in self.targets if name.startswith(f"{one}.")), None)
        if not isinstance(call.op, Op):
            return None
        for one in self.targets:
            takes: object = call.op.get_attr(f"target.{one}")
            if takes is not None and (takes is True or (callable(takes) and takes(call))):
                return one
        return None

    def visit_call(self, call: Call) -> Expr:
        if is_call(call, BEGIN, END):
            return super().visit_call(call)
        args = [self.visit(arg) for arg in call.args]
        op = call.op if isinstance(call.op, Function) and "Composite" in call.op.attrs else self.visit(call.op)
        target = self._target(call)
        if target is None:
            same = op is call.op and all(new is old for new, old in zip(args, call.args, strict=True))
            return call if same else Call(op, args, call.attrs, call.type_args, call.span)
        marked = [_begun(arg, target) for arg in args]
        return make(END, Call(op, marked, call.attrs, call.type_args, call.span), compiler=target)

    def visit_tuple(self, tup: Tuple) -> Expr:
        fields = [self.visit(field) for field in tup.fields]
        target = self._common(fields)
        if target is not None:
            return make(END, Tuple([_begun(field, target) for field in fields]), compiler=target)
        return tup if all(new is old for new, old in zip(fields, tup.fields, strict=True)) else Tuple(fields, tup.span)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        target = self._common([value])
        if target is not None:
            return make(END, TupleGetItem(_begun(value, target), get.index, get.span), compiler=target)
        return get if value is get.tuple_value else TupleGetItem(value, get.index, get.span)

    def _common(self, values: Sequence[Expr]) -> str | None:
        """The compiler that computes all of them."""
        if not self.non_calls:
            return None
        result = {value.attrs.compiler if is_call(value, END) else None for value in values}
        return result.pop() if len(result) == 1 else None


def _begun(value: Expr, target: str) -> Expr:
    return make(BEGIN, value, compiler=target)


def AnnotateTarget(targets: Sequence[str] | str, include_non_call_ops: bool = True) -> GraphPass:
    """Mark what the compilers named can compute."""
    names = [targets] if isinstance(targets, str) else list(targets)

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        body = _Annotate(mod, names, include_non_call_ops).visit(function.body)
        if body is function.body or isinstance(body, Constant):
            return function
        return function.rebuilt(function.params, body, function.declared_ret_type)

    return GraphPass(change, PassInfo(0, "AnnotateTarget"))
