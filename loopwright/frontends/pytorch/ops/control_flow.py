"""Branches and loops: torch.cond and torch.while_loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loopwright import relay
from loopwright.frontends.common.repeat import Limit, repeat
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Argument, Operand
from loopwright.ir import Expr as PrimExpr
from loopwright.relay.expr import Expr, If, Tuple, TupleGetItem

if TYPE_CHECKING:
    import torch


def _truth(node: Node, x: Operand) -> Expr:
    """A condition: one bool."""
    plain = node.operand(x, "bool")
    return relay.reshape(plain, ()) if node.rank(plain) else plain


def _operand(node: Node, value: Argument) -> Operand:
    if not isinstance(value, (Expr, PrimExpr, int, float)):
        raise node.bad(f"a tensor or a number is needed, and not {type(value).__name__}")
    return value


def _tensors(node: Node, values: Sequence[Argument]) -> list[Expr]:
    """Results of a branch as tensors, in the element types that torch says."""
    result = []
    for index, one in enumerate(values):
        result.append(node.operand(_operand(node, one), node.out_dtype(index)))
    return result


@converter("higher_order::cond")
def cond(
    node: Node,
    condition: Operand,
    then: torch.fx.GraphModule,
    otherwise: torch.fx.GraphModule,
    operands: Sequence[Argument] = (),
) -> list[Expr]:
    if isinstance(condition, bool):
        return _tensors(node, node.importer.convert(then if condition else otherwise, operands))
    branches = [_tensors(node, node.importer.convert(module, operands)) for module in (then, otherwise)]
    chosen = If(_truth(node, condition), Tuple(branches[0]), Tuple(branches[1]))
    return [TupleGetItem(chosen, k) for k in range(len(branches[0]))]


@converter("higher_order::while_loop")
def while_loop(
    node: Node,
    condition: torch.fx.GraphModule,
    body: torch.fx.GraphModule,
    carried: Sequence[Operand],
    others: Sequence[Argument] = (),
) -> list[Expr]:
    """The values of the loop at its end. They keep their shapes."""

    def goes_on(values: Sequence[Argument]) -> Expr:
        return _truth(node, _operand(node, node.importer.convert(condition, [*values, *others])[0]))

    def step(turn: Expr, values: list[Expr]) -> tuple[Expr | None, list[Expr], list[Expr]]:
        after = _tensors(node, node.importer.convert(body, [*values, *others]))
        return goes_on(after), after, []

    begin = _tensors(node, carried)
    states, _ = repeat(node, step, begin, Limit(None, None), begin=goes_on(begin))
    return states
