"""SplitArgs: a concatenation of more tensors than a kernel may take becomes one of concatenations.

    concatenate((%a, %b, %c))    →    %0 = annotation.stop_fusion(concatenate((%a, %b)));
                                      concatenate((%0, %c))

For targets whose kernels have few arguments; ours have any number. `relay.FuseOps.max_args` limits what FuseOps joins.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function, Tuple
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call


class _Split(TypedRewrite):
    def __init__(self, mod: IRModule, limit: int) -> None:
        super().__init__(mod)
        self.limit = limit

    def rewrite(self, call: Call) -> Expr:
        if not is_call(call, "concatenate") or not isinstance(call.args[0], Tuple):
            return call
        tensors: Sequence[Expr] = call.args[0].fields
        if len(tensors) <= self.limit:
            return call
        while len(tensors) > self.limit:
            starts = range(0, len(tensors), self.limit)
            tensors = [self._part(call, tensors[start : start + self.limit]) for start in starts]
        return self._concatenated(call, tensors)

    def _part(self, call: Call, tensors: Sequence[Expr]) -> Expr:
        if len(tensors) == 1:
            return tensors[0]
        part: Expr = make("annotation.stop_fusion", self._concatenated(call, tensors))
        return part

    def _concatenated(self, call: Call, tensors: Sequence[Expr]) -> Call:
        return Call(call.op, [Tuple(tensors)], call.attrs, span=call.span)


def SplitArgs(max_function_args: int) -> GraphPass:
    """Have no concatenation take more than `max_function_args` tensors; a number below 2 is no limit."""

    def split(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return function if max_function_args < 2 else _Split(mod, max_function_args).apply(function)

    return GraphPass(split, PassInfo(1, "SplitArgs"))
