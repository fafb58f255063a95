"""What tests of passes share: a pass applied to a function, graphs compared, both run on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright import ir, relay
from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType
from loopwright.relay.analysis import free_vars
from loopwright.relay.infer_type import infer_module
from loopwright.relay.interpreter import evaluate
from loopwright.relay.types import TensorType


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


def assert_becomes(pass_: Any, before: Any, after: Any) -> relay.Function:
    """The pass makes the one graph of the other; both give the same numbers."""
    first = function(before)
    found = apply(pass_, first)
    ir.assert_structural_equal(found, function(relay.Function(first.params, after)), map_free_vars=True)
    assert_same_results(first, found)
    return found


def assert_unchanged(pass_: Any, before: Any) -> None:
    first = function(before)
    ir.assert_structural_equal(apply(pass_, first), first, map_free_vars=True)


def drawn(of: Any, random: np.random.Generator) -> Any:
    """Small whole numbers: sums and products of them are exact."""
    if isinstance(of, TupleType):
        return [drawn(field, random) for field in of.fields]
    assert isinstance(of, TensorType)
    shape = [size if isinstance(size, int) else 3 for size in of.shape]
    low = 0 if str(of.dtype).startswith(("u", "b")) else -4
    return random.integers(low, 2 if of.dtype.is_bool else 5, shape).astype(of.dtype.numpy())


def assert_same_results(one: Any, other: Any, exact: bool = True, seed: int = 0, module: Any = None) -> None:
    """Both functions return the same for the same arguments, in shape, type and value; NaN is NaN.

    `exact=False` is for graphs in float64 in which a pass may order operations anew.
    """
    random = np.random.default_rng(seed)
    arguments = [drawn(param.checked_type, random) for param in one.params]
    assert_close(evaluate(one, arguments, module), evaluate(other, arguments, module), exact)


def assert_close(left: Any, right: Any, exact: bool = True) -> None:
    if isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_close(one, other, exact)
        return
    assert left.shape == right.shape and left.dtype == right.dtype
    if exact:
        np.testing.assert_array_equal(left, right)
    else:
        assert left.dtype == np.float64
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


def operators(found: Any) -> list[str]:
    """The operators of a graph, sorted."""
    from loopwright.relay.op.registry import Op
    from loopwright.relay.visitor import post_order

    calls = [each for each in post_order(found) if isinstance(each, relay.Call) and isinstance(each.op, Op)]
    return sorted(call.op.name for call in calls)
