"""CapturePostDfsIndexInSpans: the `span` of each expression says its number, counted after what it is made of.

Operators are counted too, where they are first called: `%x + %x` is 2, after %x (0) and `add` (1).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.relay.adt import Constructor
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.op.registry import Op
from loopwright.relay.spans import SourceName, Span
from loopwright.relay.transform.graph_pass import GraphPass, graph_pass
from loopwright.relay.visitor import ExprMutator, parts


def _with_operators(expression: Expr) -> tuple[Expr | Op, ...]:
    if isinstance(expression, Op):
        return ()
    operator = (expression.op,) if isinstance(expression, Call) and isinstance(expression.op, Op) else ()
    return (*operator, *parts(expression))


def post_order_numbers(root: Expr) -> dict[Expr | Op, int]:
    """Every expression and operator below `root`, by number."""
    numbers: dict[Expr | Op, int] = {}
    entered: set[Expr | Op] = {root}
    stack: list[tuple[Expr | Op, Iterator[Expr | Op]]] = [(root, iter(_with_operators(root)))]
    while stack:
        expression, rest = stack[-1]
        part = next((part for part in rest if part not in entered), None)
        if part is None:
            stack.pop()
            numbers[expression] = len(numbers)
        else:
            entered.add(part)
            stack.append((part, iter(_with_operators(part))))  # type: ignore[arg-type]
    return numbers


class _Numbered(ExprMutator):
    """The same graph of new objects, each with its number."""

    def __init__(self, numbers: dict[Expr | Op, int]) -> None:
        super().__init__()
        self.numbers = numbers

    def _enter(self, expression: Expr) -> Expr:
        result = super()._enter(expression)
        if isinstance(expression, (Op, GlobalVar, Constructor)):
            return result
        numbered = copy(result) if result is expression else result
        number = self.numbers[expression]
        numbered.span = Span(SourceName("index"), number, number, 0, 0)
        numbered.checked_type_ = expression.checked_type_
        numbered.virtual_device_ = expression.virtual_device_
        self.memo_map[expression] = numbered
        return numbered


@graph_pass("CapturePostDfsIndexInSpans")
def _capture(function: Function, mod: IRModule, context: PassContext) -> Function:
    return _Numbered(post_order_numbers(function)).apply(function)


def CapturePostDfsIndexInSpans() -> GraphPass:
    """Have the span of every expression say its number: `expr.span.line`."""
    return _capture
