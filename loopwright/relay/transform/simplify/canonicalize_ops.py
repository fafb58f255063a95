"""CanonicalizeOps: operators that are others in disguise.

    nn.bias_add(%x, %b, axis=1)    →    %x + expand_dims(%b, axis=1, num_newaxis=2)

What is left are sums, which all rules know.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function
from loopwright.relay.op.registry import make
from loopwright.relay.op.sizes import normal_axis
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call


class _Canonicalize(TypedRewrite):
    def rewrite(self, call: Call) -> Expr:
        if not is_call(call, "nn.bias_add"):
            return call
        data, bias = call.args
        of = self.tensor_type(data)
        if of is None:
            return call
        after = len(of.shape) - 1 - normal_axis("nn.bias_add", call.attrs.axis, len(of.shape))
        if after == 0:
            return make("add", data, bias)
        if isinstance(bias, Constant):
            return make("add", data, Constant(bias.data.reshape(-1, *[1] * after)))
        return make("add", data, make("expand_dims", bias, axis=1, num_newaxis=after))


def CanonicalizeOps() -> GraphPass:
    """Write bias_add as a sum."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Canonicalize(mod).apply(function)

    return GraphPass(change, PassInfo(3, "CanonicalizeOps"))
