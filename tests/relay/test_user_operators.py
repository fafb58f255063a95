"""Operators that users declare by name, and what they hang on those that exist."""

from __future__ import annotations

import pytest

from loopwright import ir, relay
from loopwright.relay.op.user_operators import OperatorExists, register_gradient
from loopwright.relay.types import TensorType


@pytest.fixture
def triple():
    relay.op.register("test_triple", "Three times a tensor.")
    op = relay.op.get("test_triple")
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "The tensor.")
    op.set_support_level(1)
    yield op
    del relay.op.Op.registry["test_triple"]


def test_a_declared_operator_has_the_type_of_its_relation(triple):
    triple.add_type_rel("Identity")
    x = relay.var("x", shape=(2, 3))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Call(triple, [x])))
    assert mod["main"].ret_type == mod["main"].body.checked_type == TensorType((2, 3))
    assert "test_triple(%x)" in str(mod)


def test_a_relation_may_be_a_function_of_types_and_attributes(triple):
    triple.add_type_rel("wider", lambda types, attrs: TensorType(types[0].shape, "float64"))
    x = relay.var("x", shape=(2,))
    call = relay.testing.run_infer_type(relay.Call(triple, [x]))
    assert call.checked_type == TensorType((2,), "float64")


def test_without_a_relation_there_is_no_type(triple):
    with pytest.raises(TypeError, match="test_triple has no type relation"):
        relay.testing.run_infer_type(relay.Call(triple, [relay.var("x", shape=(2,))]))


def test_a_name_is_declared_once():
    with pytest.raises(OperatorExists, match=r"Operator nn.conv2d is registered before"):
        relay.op.register("nn.conv2d")


def test_attributes_of_operators_are_found_from_both_registries():
    @register_gradient("exp", level=3)
    def rule(orig, grad):
        return [grad * orig]

    exp = ir.Op.get("exp")
    assert exp is relay.op.get("exp") and exp.get_attr("FPrimalGradient") is rule
    exp.set_attr("FPrimalGradient", None, 2)
    assert exp.get_attr("FPrimalGradient") is rule
    exp.reset_attr("FPrimalGradient")
    assert not exp.has_attr("FPrimalGradient")
