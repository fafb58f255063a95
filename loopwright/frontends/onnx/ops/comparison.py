"""Comparisons and logic: Equal, Greater, And, Where …"""

from __future__ import annotations

from typing import Final

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.elementwise import aligned
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr

_BINARY: Final = {
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
}


def _enter(name: str, operator: str) -> None:
    @converter(name)
    def convert(node: Node, x: Expr, y: Expr) -> Expr:
        return getattr(relay, operator)(x, aligned(node, x, y))


for _name, _operator in _BINARY.items():
    _enter(_name, _operator)


@converter("Not")
def not_(node: Node, x: Expr) -> Expr:
    return relay.logical_not(x)


@converter("Where", since=9)
def where(node: Node, condition: Expr, x: Expr, y: Expr) -> Expr:
    return relay.where(condition, x, y)
