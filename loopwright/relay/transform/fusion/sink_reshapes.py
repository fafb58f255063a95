"""SinkReshapes: a reshape between a product and what changes its elements moves behind them, and one kernel does both.

    %0 = nn.dense(%x, %w);                            →    %0 = add(nn.dense(%x, %w), %bias);
    %1 = reshape(%0, newshape=[1, 128, 384]);              reshape(nn.relu(%0), newshape=[1, 128, 384])
    nn.relu(add(%1, %bias))

Importers write products of rows, and the batch comes back by a reshape. FuseOps joins a product with what follows it
element by element, and a reshape in between would stop that; behind them it is only another view of the memory. Other
operands follow: those of the full shape are reshaped too (a view again), those that are repeated must be so along axes
that the reshape leaves alone at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import Kind, Op, make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.simplify.rules.rule import shape_of
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import Dim, same_dim, same_dims

# Of operators that take each element by itself; one with another attribute (an axis) may mean a certain dimension.
_HARMLESS: Final = frozenset({"dtype", "a_min", "a_max", "alpha"})
_RESHAPES: Final = ("reshape", "expand_dims", "squeeze")


class _Sink(TypedRewrite):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.made: set[Call] = set()  # element-wise calls that follow a product since their reshape has moved

    def rewrite(self, call: Call) -> Expr:
        if call.attrs.kind > Kind.BROADCAST or not _HARMLESS.issuperset(call.attrs.fields) or call.attrs.stateful:
            return call
        moved = next((arg for arg in call.args if self._follows_product(arg)), None)
        if moved is None:
            return call
        inner, outer, result = (shape_of(self, each) for each in (moved.args[0], moved, call))
        if inner is None or outer is None or result is None or not same_dims(outer, result):
            return call
        operands = [self._operand(arg, inner, outer) for arg in call.args]
        args = [arg for arg in operands if arg is not None]
        if len(args) < len(operands):
            return call
        built = Call(call.op, args, call.attrs, call.type_args, call.span)
        answer = shape_of(self, built)
        if answer is None or not same_dims(answer, inner):
            return call
        self.made.add(built)
        return make("reshape", built, newshape=tuple(outer), allowzero=True)

    def _follows_product(self, arg: Expr) -> TypeGuard[Call]:
        if not is_call(arg, *_RESHAPES) or not isinstance(arg.args[0], Call) or not isinstance(arg.args[0].op, Op):
            return False
        source = arg.args[0]
        return source.attrs.kind == Kind.OUT_FUSABLE or source in self.made

    def _operand(self, arg: Expr, inner: Sequence[Dim], outer: Sequence[Dim]) -> Expr | None:
        """What stands for the operand beside a tensor of shape `inner`; None where nothing does."""
        own = shape_of(self, arg)
        if own is None:
            return None
        if is_call(arg, *_RESHAPES):
            before = shape_of(self, arg.args[0])
            if before is not None and same_dims(before, inner) and same_dims(own, outer):
                return arg.args[0]
        if same_dims(own, outer):
            return make("reshape", arg, newshape=tuple(inner), allowzero=True)
        kept = list(own)
        while kept and isinstance(kept[0], int) and kept[0] == 1:
            kept.pop(0)
        shared = 0
        while shared < min(len(inner), len(outer)) and same_dim(inner[-1 - shared], outer[-1 - shared]):
            shared += 1
        if len(kept) > shared:
            return None
        return arg if len(kept) == len(own) else make("reshape", arg, newshape=tuple(kept), allowzero=True)


def SinkReshapes() -> GraphPass:
    """Move reshapes of products behind what changes their elements."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Sink(mod).apply(function)

    return GraphPass(change, PassInfo(1, "SinkReshapes"))
