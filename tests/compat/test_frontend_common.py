"""What importers of scripts ask about a graph that they build."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import nd, relay
from loopwright.compat import frontend_common as common

X, W = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
Y = relay.nn.dense(X, W)


def test_types_and_shapes():
    assert common.infer_type(Y).checked_type == relay.TensorType((2, 4))
    assert common.infer_shape(Y) == (2, 4) and common.infer_shape(relay.split(X, 3, axis=1)) == ()
    assert common.infer_channels(W) == 4 and common.infer_channels(W, transpose=True) == 3
    assert common.shape_of(Y, start=1).data.tolist() == [4]
    assert common.get_name(X) == "x" and common.get_relay_op("dense") is common.get_relay_op("nn.dense")


def test_values_that_are_known():
    ones = {"x": np.ones((2, 3), "float32"), "w": nd.array(np.ones((4, 3), "float32"))}
    assert common.infer_value(Y, ones).numpy().tolist() == [[3.0] * 4] * 2
    assert common.infer_value_simulated(Y, {}).shape == (2, 4)
    assert common.try_infer_value(relay.const(2) + relay.const(3), lambda found: int(found) + 1) == (6, True)
    assert common.try_infer_value(Y, on_failure=lambda: "unknown") == ("unknown", False)
    assert common.fold_constant(relay.const(2.0) * relay.const(3.0)).data == 6
    with pytest.raises(AssertionError, match="must be available in params: w is not"):
        common.infer_value(Y, {"x": ones["x"]})


def test_a_table_of_expressions():
    table = common.ExprTable()
    made = table.new_const([1.0, 2.0])
    assert table.get_expr(made.name_hint) is made and table.params[made.name_hint].shape == (2,)
    table.set_expr(made.name_hint, X)
    assert table.get_expr(made.name_hint) is made and not table.has_expr("y")
