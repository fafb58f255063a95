"""SimplifyInference: what an operator is when nothing is trained, in simpler operators.

    nn.batch_norm(%x, %gamma, %beta, %mean, %var).0    →    %x * scale + shift
    nn.dropout(%x).0                                   →    %x

Each operator says it of itself (`Operator.expand`); None says that it stays what it is. Where several results become
several values, those that nobody uses vanish with their names.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.relay.expr import Call, Expr, Function, Tuple, TupleWrapper
from loopwright.relay.transform.graph_pass import GraphPass, graph_pass
from loopwright.relay.transform.typed_rewrite import TypedRewrite


class _Expand(TypedRewrite):
    def rewrite(self, changed: Call) -> Expr:
        if changed.attrs.expand is None:
            return changed
        for arg in changed.args:
            self.type_of(arg)  # what an operator becomes depends on the types of its inputs
        expanded = changed.attrs.expand(*changed.args)
        if expanded is None:
            return changed
        if isinstance(expanded, (list, tuple)):
            expanded = Tuple(expanded)
        expanded = expanded.tuple_value if isinstance(expanded, TupleWrapper) else expanded
        # What it became may hold operators that expand in turn.
        return self.visit(expanded) if expanded is not changed else changed


@graph_pass("SimplifyInference")
def _simplify_inference(function: Function, mod: IRModule, ctx: PassContext) -> Function:
    """Replace operators by simpler ones that mean the same when nothing is trained."""
    return _Expand(mod).apply(function)


def SimplifyInference() -> GraphPass:
    """Replace operators by simpler ones that mean the same when nothing is trained."""
    return _simplify_inference
