"""Branches and loops: torch.cond and torch.while_loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright import relay
from loopwright.frontends.common.repeat import Limit, repeat
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.relay.expr import Expr, If, Tuple, TupleGetItem


def _truth(node: Node, x: Any) -> Any:
    """A condition: one bool."""
    plain = node.operand(x, "bool")
    return relay.reshape(plain, ()) if node.rank(plain) else plain


def _tensors(node: Node, values: Sequence[Any]) -> list[Expr]:
    """Results of a branch as tensors, in the element types that torch says."""
    result = []
    for index, one in enumerate(values):
        result.append(node.operand(one, node.out_dtype(index)))
    return result


@converter("higher_order::cond")
def cond(node: Node, condition: Any, then: Any, otherwise: Any, operands: Sequence[Any] = ()) -> Any:
    if isinstance(condition, bool):
        return node.importer.convert(then if condition else otherwise, operands)
    branches = [_tensors(node, node.importer.convert(module, operands)) for module in (then, otherwise)]
    chosen = If(_truth(node, condition), Tuple(branches[0]), Tuple(branches[1]))
    return [TupleGetItem(chosen, k) for k in range(len(branches[0]))]


@converter("higher_order::while_loop")
def while_loop(node: Node, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    """The values of the loop at its end. They keep their shapes."""

    def goes_on(values: Sequence[Any]) -> Any:
        return _truth(node, node.importer.convert(condition, [*values, *others])[0])

    def step(turn: Any, values: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        after = _tensors(node, node.importer.convert(body, [*values, *others]))
        return goes_on(after), after, []

    begin = _tensors(node, carried)
    loop: Any = node
    states, _ = repeat(loop, step, begin, Limit(None, None), begin=goes_on(begin))
    return states
