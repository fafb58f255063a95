"""extract_fused_functions: the kernels of a graph that FuseOps has been run on, each once."""

from __future__ import annotations

from loopwright.ir import structural_hash
from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, Function
from loopwright.relay.graph_functions import graph_functions
from loopwright.relay.visitor import post_order


def extract_fused_functions(mod: IRModule) -> dict[int, Function]:
    """The functions marked Primitive, by their structural hash: those that are equal are one."""
    result: dict[int, Function] = {}
    roots: list[Expr] = list(graph_functions(mod).values())
    for root in roots:
        for expression in post_order(root):
            if isinstance(expression, Function) and expression.attrs.get("Primitive"):
                result.setdefault(structural_hash(expression), expression)
    return result
