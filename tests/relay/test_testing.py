"""What relay.testing has: networks, initializers, gradients by differences, numbers as data."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay import testing
from loopwright.relay.testing.temp_op_attr import TempOpAttr
from loopwright.relay.testing.workload import Constant, Xavier


@pytest.mark.parametrize(
    "name, options, result",
    [
        ("synthetic", {}, (1, 10)),
        ("dqn", {"batch_size": 2}, (2, 18)),
        ("dcgan", {"batch_size": 1}, (1, 3, 64, 64)),
        ("squeezenet", {"version": "1.1", "num_classes": 7}, (1, 7)),
    ],
)
def test_networks_have_the_types_of_their_results(name, options, result, monkeypatch):
    net, params = getattr(testing, name).get_workload(**options)
    assert net["main"].checked_type.ret_type.shape == result
    assert set(params) == {param.name_hint for param in net["main"].params} - {"data"}
    assert all(params[k].numpy().dtype == "float32" for k in params)


def test_cells_share_their_weights():
    net, params = testing.lstm.get_workload(3, 4)
    assert sorted(params) == ["h2h_bias", "h2h_weight", "i2h_bias", "i2h_weight"]
    assert str(net["main"].checked_type.ret_type) == "(Tensor[(1, 4), float32], Tensor[(1, 4), float32])"


def test_initializers_fill_by_name():
    x = relay.var("data", shape=(1, 4))
    net = relay.nn.bias_add(relay.nn.dense(x, relay.var("w", shape=(3, 4))), relay.var("b_bias", shape=(3,)))
    _, params = testing.create_workload(net, Constant(2.0))
    assert (params["w"] == 2).all() and (params["b_bias"] == 0).all()
    _, params = testing.create_workload(net, Xavier(factor_type="in", magnitude=3))
    assert 0 < np.abs(params["w"]).max() <= np.sqrt(3 / 4)
    with pytest.raises(ValueError, match="Xavier draws uniform or gaussian by avg, in or out, and not even by avg"):
        Xavier("even")


def test_gradients_are_held_against_differences():
    x = relay.var("x", shape=(2, 3), dtype="float64")
    testing.check_grad(relay.Function([x], relay.exp(x) * x), scale=1.0)

    def doubled(orig, grad):
        return [grad * orig * relay.const(2.0, "float64")]

    with TempOpAttr("exp", "FPrimalGradient", doubled), pytest.raises(AssertionError, match="Not equal to tolerance"):
        testing.check_grad(relay.Function([x], relay.exp(x)), scale=1.0)
    assert not relay.op.get("exp").has_attr("FPrimalGradient")


def test_numbers_as_data():
    prelude = relay.Prelude()
    prelude.mod.import_from_std("nat.rly")
    three = testing.make_nat_expr(prelude, 3)
    prelude.mod["main"] = relay.Function([], prelude.get_global_var("nat_double")(three))
    value = relay.create_executor("debug", mod=prelude.mod).evaluate()()
    assert testing.count(prelude, value) == 6 == testing.count(prelude, testing.make_nat_value(prelude, 6))
    with pytest.raises(ValueError, match=r"there is no 'other.rly' to import; there are prelude.rly, nat.rly"):
        prelude.mod.import_from_std("other.rly")


def test_values_as_python_computes_them():
    cell = relay.var("cell")
    pair = relay.Tuple([relay.const(1), relay.Tuple([])])
    value = testing.run_as_python(relay.Let(cell, relay.RefCreate(pair), relay.Tuple([relay.RefRead(cell), cell])))
    assert len(value) == 2 and value[0][0].numpy() == 1 and len(value[0][1]) == 0 and len(value[1].value) == 2
