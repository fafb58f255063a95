"""CanonicalizeCast: a conversion that several use is made by each of them.

    %0 = cast(%x, "int32");            →    %0 = cast(%x, "int32");
    (%0 + %a, %0 * %b)                      %1 = cast(%x, "int32");
                                            (%0 + %a, %1 * %b)

Each of them becomes part of the kernel of its user, so that the wide tensor is never written. Only conversions to a
wider type, and only where the users are element-wise: others would read the narrow one again and again.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import Kind
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, use_counts


class _Canonicalize(TypedRewrite):
    def __init__(self, mod: IRModule, root: Expr) -> None:
        super().__init__(mod)
        self.uses = use_counts(root)
        self.shared = {cast for cast in _casts(root) if self.uses[cast] > 1}

    def visit_call(self, call: Call) -> Expr:
        if not hasattr(call.op, "name") or call.attrs is None or call.attrs.kind > Kind.BROADCAST:
            return super().visit_call(call)
        own: dict[Expr, Expr] = {}  # an argument given twice is converted once
        for arg in call.args:
            result = self.visit(arg)
            widens = arg in self.shared and isinstance(arg, Call) and self._widens(arg)
            if widens and is_call(result, "cast") and arg not in own:
                result = Call(result.op, result.args, result.attrs, result.type_args, result.span)
            own.setdefault(arg, result)
        args = [own[arg] for arg in call.args]
        same = all(new is old for new, old in zip(args, call.args, strict=True))
        return call if same else Call(call.op, args, call.attrs, call.type_args, call.span)

    def _widens(self, cast: Call) -> bool:
        one, other = self.tensor_type(cast.args[0]), self.tensor_type(cast)
        return one is not None and other is not None and one.dtype.bits < other.dtype.bits


def _casts(root: Expr) -> list[Expr]:
    from loopwright.relay.visitor import post_order

    return [each for each in post_order(root) if is_call(each, "cast")]


def CanonicalizeCast() -> GraphPass:
    """Give each element-wise user of a widening conversion one of its own."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Canonicalize(mod, function).apply(function)

    return GraphPass(change, PassInfo(3, "CanonicalizeCast"))
