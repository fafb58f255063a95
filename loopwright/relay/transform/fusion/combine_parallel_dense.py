"""CombineParallelDense: dense layers of the same data become one.

    to_batch=False    slices of nn.dense(%x, concatenate((w0, w1, w2)))
    to_batch=True     parts of nn.batch_matmul(stack((%x, %x, %x)), stack((w0, w1, w2)))

The first may have layers of different widths; the second needs weights of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function, Var
from loopwright.relay.op.registry import make
from loopwright.relay.transform.fusion.combine_parallel import Siblings, combine_pass, join
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, is_constant
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import post_order


class _Wide(Siblings):
    operator = "nn.dense"

    def key(self, call: Call, data: TensorType, weight: TensorType) -> object | None:
        return (call.attrs.out_dtype, str(weight.dtype), str(data.dtype), str(weight.shape[1]))

    def axis(self, call: Call, result: TensorType) -> int:
        return len(result.shape) - 1

    def joined(self, calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Expr:
        return Call(calls[0].op, [data, join(weights, 0)], calls[0].attrs.with_(units=None))


class _Batched(TypedRewrite):
    """Layers of one shape as the matrices of a batch."""

    def __init__(self, mod: IRModule, root: Expr, least: int) -> None:
        super().__init__(mod)
        groups: dict[object, list[Call]] = {}
        for call in post_order(root):
            if not is_call(call, "nn.dense") or not (isinstance(call.args[1], Var) or is_constant(call.args[1])):
                continue
            data, weight = self.tensor_type(call.args[0]), self.tensor_type(call.args[1])
            if data is not None and weight is not None and len(data.shape) == 2:
                key = (call.args[0], call.attrs.out_dtype, str(weight), str(data.dtype))
                groups.setdefault(key, []).append(call)
        self.places: dict[Expr, tuple[list[Call], int]] = {
            call: (calls, k) for calls in groups.values() if len(calls) >= least for k, call in enumerate(calls)
        }
        self.made: dict[Call, Expr] = {}

    def rewrite(self, call: Call) -> Expr:
        return call

    def visit_call(self, call: Call) -> Expr:
        result = self.places.get(call)
        if result is None:
            return super().visit_call(call)
        calls, location = result
        if calls[0] not in self.made:
            data = self.visit(call.args[0])
            weights = [self.visit(one.args[1]) for one in calls]
            batch = make("stack", [data] * len(calls), axis=0), make("stack", weights, axis=0)
            self.made[calls[0]] = make("nn.batch_matmul", *batch, out_dtype=call.attrs.out_dtype)
        whole = self.made[calls[0]]
        part = make("strided_slice", whole, begin=(location,), end=(location + 1,), strides=(1,), axes=(0,))
        return make("squeeze", part, axis=(0,))

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        result = self.places.get(expression)
        if result is None:
            return super().first(expression)
        return (result[0][0].args[0], *[one.args[1] for one in result[0]])


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> GraphPass:
    """Make one product of at least so many dense layers of the same data."""
    if not to_batch:
        return combine_pass(_Wide, "CombineParallelDense", min_num_branches)

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Batched(mod, function, min_num_branches).apply(function)

    return GraphPass(change, PassInfo(4, "CombineParallelDense"))
