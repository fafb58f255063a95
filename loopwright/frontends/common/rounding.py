"""Rounding as IEEE 754 means it by default."""

from __future__ import annotations

from loopwright import relay
from loopwright.frontends.common.tensors import Tensors
from loopwright.relay.expr import Expr


def round_half_even(node: Tensors, x: Expr) -> Expr:
    """To the nearest whole number; one that is as near to two goes to the even one."""
    if not node.is_float(x):
        return x
    # Half of a tie is no tie, and twice its nearest whole number is even. What is large or infinite stays as it is.
    half = node.const(0.5, x)
    tie = relay.equal(relay.abs(relay.subtract(x, relay.trunc(x))), half)
    even = relay.multiply(relay.round(relay.multiply(x, half)), node.const(2, x))
    return relay.where(tie, even, relay.round(x))
