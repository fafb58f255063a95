"""Functions that call what is to be done next in the place of returning."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.relay.transform import InferType, ToCPS, to_cps, un_cps


def test_the_type_of_a_function_that_is_given_the_rest():
    x = relay.var("x", shape=(2,))
    double = relay.testing.run_infer_type(relay.Function([x], x + x))
    cps = relay.testing.run_infer_type(to_cps(double))
    assert str(cps.checked_type) == "fn (Tensor[(2), float32], fn (Tensor[(2), float32]) -> R) -> R"
    back = relay.testing.run_infer_type(un_cps(cps))
    assert back.checked_type == double.checked_type


def test_functions_as_values():
    t = relay.TypeVar("t")
    x, f = relay.var("x", t), relay.var("f", relay.FuncType([t], t))
    twice = relay.testing.run_infer_type(relay.Function([f, x], f(f(x)), t, [t]))
    cps = relay.testing.run_infer_type(to_cps(twice))
    assert len(cps.type_params) == 2 and len(cps.params) == 3


def test_choices_and_recursion_compute_the_same():
    mod = relay.IRModule()
    prelude = relay.Prelude(mod)
    mod.import_from_std("nat.rly")
    x, i, c = relay.var("x", shape=(2,)), relay.var("i", shape=(2,)), relay.var("c", "bool")
    times_8 = mod.get_global_var("nat_iterate")(relay.Function([x], x + x), relay.testing.make_nat_expr(prelude, 3))
    mod["main"] = relay.Function([i, c], relay.If(c, relay.Call(times_8, [i]), relay.exp(i)) + i)
    mod = InferType()(mod)
    mod["main"] = to_cps(mod["main"], mod)
    assert "nat_iterate_cps" in mod
    mod = InferType()(mod)
    mod["main"] = un_cps(mod["main"])
    run = relay.create_executor("debug", mod=mod).evaluate()
    data = np.array([1.0, 2.0], "float32")
    np.testing.assert_allclose(run(data, np.array(True)).numpy(), 9 * data)
    np.testing.assert_allclose(run(data, np.array(False)).numpy(), np.exp(data) + data, rtol=1e-6)


def test_as_a_pass():
    x = relay.var("x", shape=(2,))
    mod = ToCPS()(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))))
    assert len(mod["main"].params) == 2
