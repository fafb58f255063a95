"""LazyGradientInit: tensors of zeros or ones are not made to be added or multiplied.

    %0 = ones_like(%x);                      →    %y
    add(zeros_like(%x), multiply(%0, %y))

Gradients begin as tensors of zeros and ones (`first_order_gradient.py`); most of them are only added to others or
multiplied with them, and need no memory. One is made where something else uses it.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite
from loopwright.relay.types import same_type

_FILLED = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1}


class _Lazy(TypedRewrite):
    def _filled(self, expression: Expr) -> int | None:
        """0 or 1, where every element is."""
        name = getattr(expression.op, "name", "") if isinstance(expression, Call) else ""
        return _FILLED.get(name)

    def rewrite(self, call: Call) -> Expr:
        if call.op.name not in ("add", "multiply"):
            return call
        of = self.tensor_type(call)
        for here, there in ((0, 1), (1, 0)):
            value, other = self._filled(call.args[here]), call.args[there]
            # A tensor that is repeated to the size of the result is not the result.
            if value is None or of is None or not same_type(self.tensor_type(other), of):
                continue
            if value == (0 if call.op.name == "add" else 1):
                return other
            if value == 0 and call.op.name == "multiply" and not of.dtype.is_float:
                return make("zeros_like", other)
        return call


def LazyGradientInit() -> GraphPass:
    """Leave out tensors of zeros and ones that are only added or multiplied."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Lazy(mod).apply(function)

    return GraphPass(change, PassInfo(1, "LazyGradientInit"))
