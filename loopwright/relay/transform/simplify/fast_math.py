"""FastMath: functions by shorter formulas that are a little less exact.

exp(%x)    →    fast_exp(%x)                tanh, erf and softmax likewise
"""

from __future__ import annotations

from typing import Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite

_FAST: Final = {"exp": "fast_exp", "tanh": "fast_tanh", "erf": "fast_erf", "nn.softmax": "nn.fast_softmax"}


class _Fast(TypedRewrite):
    def rewrite(self, call: Call) -> Expr:
        name = _FAST.get(call.op.name)
        of = self.tensor_type(call)
        # The formulas are for float32.
        if name is None or of is None or str(of.dtype) != "float32":
            return call
        return make(name, *call.args, **dict(call.attrs.items()))


def FastMath() -> GraphPass:
    """Use shorter formulas for exp, tanh, erf and softmax."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Fast(mod).apply(function)

    return GraphPass(change, PassInfo(4, "FastMath"))
