"""Gradients of programs with choices, closures, cells, recursion and data."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform.functions.gradient_errors import NoGradient


def gradients(function, *args, mod=None):
    grad = relay.transform.gradient(function, mod=mod)
    value, grads = relay.create_executor("debug", mod=mod or relay.IRModule()).evaluate(grad)(*args)
    return value.numpy(), [one.numpy() for one in grads]


def test_a_choice_has_the_gradient_of_its_branch():
    x, c = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool")
    square = relay.Function([x, c], relay.If(c, x * x, x * relay.const(3.0)))
    data = np.array([2.0, 5.0], "float32")
    value, grads = gradients(square, data, np.array(True))
    np.testing.assert_allclose(value, data * data)
    np.testing.assert_allclose(grads[0], 2 * data)
    np.testing.assert_allclose(gradients(square, data, np.array(False))[1][0], [3, 3])


def test_a_cell_passes_gradients_on():
    x, r, unused = relay.var("x", shape=(2,)), relay.var("r"), relay.var("unused")
    body = relay.Let(unused, relay.RefWrite(r, x * x), relay.RefRead(r))
    function = relay.Function([x], relay.Let(r, relay.RefCreate(relay.zeros_like(x)), body))
    data = np.array([2.0, 5.0], "float32")
    np.testing.assert_allclose(gradients(function, data)[1][0], 2 * data)


def test_a_function_that_calls_itself():
    mod = relay.IRModule()
    prelude = relay.Prelude(mod)
    mod.import_from_std("nat.rly")
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    times_x = relay.Function([y], x * y)
    cube = mod.get_global_var("nat_iterate")(times_x, relay.testing.make_nat_expr(prelude, 3))
    function = relay.Function([x], relay.Call(cube, [relay.const(1.0)]))
    value, (grad,) = gradients(function, np.array(2.0, "float32"), mod=mod)
    assert (value, grad) == (8.0, 12.0)


def test_what_has_no_gradient():
    x, c = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool")
    sorted_x = relay.Function([x, c], relay.If(c, relay.sort(x), x))
    with pytest.raises(NoGradient, match="sort has no gradient"):
        relay.transform.gradient(sorted_x)
    with pytest.raises(NoGradient, match="kind If has no gradient"):
        relay.transform.gradient(sorted_x, mode="first_order")
