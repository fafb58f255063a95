"""Passes on graphs that are built, for those too long or too random to be written as text (see pass_check.py)."""

from __future__ import annotations

from typing import Any

from loopwright import ir, relay
from loopwright.ir.function import IRModule
from loopwright.relay.analysis import free_vars
from loopwright.relay.infer_type import infer_module
from tests.relay.pass_check import same_results


def function(body: Any) -> relay.Function:
    """The function of all free variables of an expression, typed."""
    body = body.tuple_value if isinstance(body, relay.TupleWrapper) else body
    made = body if isinstance(body, relay.Function) else relay.Function(free_vars(body), body)
    infer_module(IRModule({"main": made}))
    return made


def apply(pass_: Any, body: Any) -> relay.Function:
    """The function after a pass, or several."""
    mod = IRModule({"main": function(body)})
    for each in pass_ if isinstance(pass_, (list, tuple)) else [pass_]:
        mod = each(mod)
    return mod["main"]


def assert_unchanged(pass_: Any, before: Any) -> None:
    first = function(before)
    ir.assert_structural_equal(apply(pass_, first), first, map_free_vars=True)


def assert_same_results(one: relay.Function, other: relay.Function) -> None:
    """Both functions return the same for the same small integers, in shape, type and value."""
    same_results(IRModule({"main": one}), IRModule({"main": other}))


def operators(found: Any) -> list[str]:
    """The operators of a graph, sorted."""
    from loopwright.relay.op.registry import Op
    from loopwright.relay.visitor import post_order

    calls = [each for each in post_order(found) if isinstance(each, relay.Call) and isinstance(each.op, Op)]
    return sorted(call.op.name for call in calls)
