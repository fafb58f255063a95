"""FlattenAtrousConv: a convolution of batches of space is a dilated one.

    %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[(2, 2), (2, 2)]);    →    nn.conv2d(%x, %w,
    %1 = nn.conv2d(%0, %w, data_layout="NHWC");                                              padding=[2, 2, 2, 2],
    nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[(0, 0), (0, 0)])                     dilation=[2, 2], …)

Every second pixel of a row lies in one picture of the batch; a window over it takes every second pixel.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.nn.convolutions import each
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call
from loopwright.relay.types import same_type
from loopwright.topi.parts.pad_amounts import get_pad_tuple


class _Flatten(TypedRewrite):
    def rewrite(self, call: Call) -> Expr:
        if not is_call(call, "nn.batch_to_space_nd") or not is_call(call.args[0], "nn.conv2d"):
            return call
        conv = call.args[0]
        assert isinstance(conv, Call)
        if not is_call(conv.args[0], "nn.space_to_batch_nd"):
            return call
        before = conv.args[0]
        attrs = conv.attrs
        block = tuple(int(size) for size in call.attrs.block_shape)
        plain = attrs.data_layout == "NHWC" and each(attrs.strides, 2) == [1, 1] and each(attrs.dilation, 2) == [1, 1]
        if not plain or len(block) != 2 or block != tuple(before.attrs.block_shape) or before.attrs.pad_value != 0:
            return call
        top, left, bottom, right = get_pad_tuple(attrs.padding, (1, 1))
        own = ((top, bottom), (left, right))
        sides = [
            [
                int(own[axis][end]) * block[axis] + before.attrs.paddings[axis][end] - call.attrs.crops[axis][end]
                for end in (0, 1)
            ]
            for axis in (0, 1)
        ]
        if any(side < 0 for pair in sides for side in pair):
            return call
        padding = (sides[0][0], sides[1][0], sides[0][1], sides[1][1])
        result = Call(conv.op, [before.args[0], *conv.args[1:]], attrs.with_(dilation=block, padding=padding))
        return result if same_type(self.type_of(result), self.type_of(call)) else call


def FlattenAtrousConv() -> GraphPass:
    """Write convolutions of batches of space as dilated convolutions."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Flatten(mod).apply(function)

    return GraphPass(change, PassInfo(0, "FlattenAtrousConv"))
