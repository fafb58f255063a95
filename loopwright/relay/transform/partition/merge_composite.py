"""MergeComposite: parts of a graph that another compiler computes at once become functions.

    nn.relu(nn.conv2d(%x, %w))    →    %0 = fn (%a, %b, Composite="dnnl.conv2d_relu") { nn.relu(nn.conv2d(%a, %b)) };
                                       %0(%x, %w)

A table lists (name, pattern) or (name, pattern, check), the most wanted first; what one took is not looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.dataflow_pattern import partition
from loopwright.relay.expr import Call, Expr, Function, Var
from loopwright.relay.op.contrib import PatternRow
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.visitor import ExprMutator


class _Hide(ExprMutator):
    """Functions that were made before, as variables: patterns do not look into them."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: dict[Var, Function] = {}

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, Function) or "Composite" not in call.op.attrs:
            return super().visit_call(call)
        name = Var("composite")
        name.checked_type_ = call.op.checked_type_
        self.hidden[name] = call.op
        result = Call(name, [self.visit(arg) for arg in call.args], call.attrs, call.type_args, call.span)
        result.checked_type_ = call.checked_type_
        return result


class _Show(ExprMutator):
    def __init__(self, hidden: dict[Var, Function]) -> None:
        super().__init__()
        self.hidden = hidden

    def visit_var(self, var: Var) -> Expr:
        return self.hidden.get(var, var)


def MergeComposite(pattern_table: Sequence[PatternRow]) -> GraphPass:
    """Make functions of the parts of a graph that the patterns of a table describe."""
    table = list(pattern_table)

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        body = function.body
        for name, pattern, *check in table:
            hide = _Hide()
            result = partition(pattern, hide.visit(body), {"Composite": name}, *check)
            body = _Show(hide.hidden).visit(result)
        if body is function.body:
            return function
        return function.rebuilt(function.params, body, function.declared_ret_type)

    return GraphPass(change, PassInfo(0, "MergeComposite"))
