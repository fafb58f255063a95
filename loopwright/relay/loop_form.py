"""loop_form: a function that ends in a call of itself, taken apart: what a loop is in a graph.

    fn (%i, %s) { if (%i < 5) { %loop(%i + 1, %s * 2) } else { (%i, %s) } }

`loops.while_loop` writes loops this way; `lower_to_program.py` compiles them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.relay.expr import Call, Expr, Function, If, Let, Var
from loopwright.relay.visitor import post_order


class LoopForm:
    """`fn(params) { lets; if (condition) { lets; self(next_args) } else { result } }`, or with the branches swapped."""

    def __init__(self, lets: Sequence[Let], condition: Expr, next_args: Sequence[Expr], result: Expr) -> None:
        self.lets = lets
        self.condition = condition
        self.next_args = next_args
        self.result = result


def loop_form(name: Var, function: Function) -> LoopForm | None:
    lets: list[Let] = []
    body: Expr = function.body
    while isinstance(body, Let):
        if calls(body.value, name):
            return None
        lets.append(body)
        body = body.body
    if not isinstance(body, If) or calls(body.cond, name) or not isinstance(body.true_branch, (Call, Let)):
        return None
    again: Expr = body.true_branch
    inner: list[Let] = []
    while isinstance(again, Let):
        inner.append(again)
        again = again.body
    if not isinstance(again, Call) or again.op is not name or calls(body.false_branch, name) or inner:
        return None
    if any(calls(arg, name) for arg in again.args):
        return None
    return LoopForm(lets, body.cond, again.args, body.false_branch)


def calls(expression: Expr, name: Var) -> bool:
    return any(isinstance(each, Call) and each.op is name for each in post_order(expression))
