"""Legalize: operators become those that the target has.

    @register_legalize("nn.conv2d")
    def legalize(attrs, inputs, types):
        ...                                     an expression of the same type in the place of the call, or None

The current target is `Target.current()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import Type
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import get, having
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite

Replace = Callable[[Any, list[Expr], list[Type]], Expr | None]  # of the attributes, the arguments, their types
_KEY: Final = "FTVMLegalize"  # what the operator has it under


def register_legalize(
    op_name: str, legal_op: Replace | None = None, level: int = 10
) -> Replace | Callable[[Replace], Replace]:
    """Say what an operator becomes: `legalize(attrs, inputs, types)`, the last of types that of the result."""

    def enter(replace: Replace) -> Replace:
        get(op_name).set_attr(_KEY, replace, level)
        return replace

    return enter if legal_op is None else enter(legal_op)


class _Legalize(TypedRewrite):
    def __init__(self, mod: IRModule, legal: dict[str, Any]) -> None:
        super().__init__(mod)
        self.legal = legal

    def rewrite(self, call: Call) -> Expr:
        replace = self.legal.get(call.op.name)
        if replace is None:
            return call
        types = [*[self.type_of(arg) for arg in call.args], self.type_of(call)]
        result = replace(call.attrs, list(call.args), types)
        return call if result is None else result


def Legalize(legalize_map_attr_name: str = _KEY) -> GraphPass:
    """Replace operators by what they have under that name."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        legal = having(legalize_map_attr_name)
        return _Legalize(mod, legal).apply(function) if legal else function

    return GraphPass(change, PassInfo(1, "Legalize"))
