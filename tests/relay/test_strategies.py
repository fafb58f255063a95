"""Implementations of operators that scripts offer: which one is chosen, and what is computed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from loopwright import Target, relay, te
from loopwright.compat.strategy_wrappers import naive_schedule, wrap_topi_schedule
from loopwright.evaluator import evaluate
from loopwright.relay.backend import te_compiler
from loopwright.relay.errors import CannotCompile
from loopwright.relay.lower.lower_function import lower_function
from loopwright.relay.op.strategies import (
    OpStrategy,
    ScheduleNotUsed,
    register_injective_schedule,
    register_schedule,
    register_strategy,
)
from loopwright.relay.op.user_operators import register_compute
from loopwright.relay.testing.temp_op_attr import TempOpAttr
from loopwright.topi import generic


def times(number, extent=None):
    def compute(attrs, inputs, out_type):
        return [te.compute(extent or inputs[0].shape, lambda *at: inputs[0](*at) * number)]

    return compute


def strategy(attrs, inputs, out_type, target):
    result = OpStrategy()
    result.add_implementation(times(2.0), wrap_topi_schedule(generic.schedule_injective), name="plain", plevel=10)
    with te.SpecializedCondition(inputs[0].shape[0] >= 4):
        result.add_implementation(times(3.0), naive_schedule, name="long", plevel=20)
    return result


def value(size):
    """What the kernel of relu computes for ones."""
    x = relay.var("x", shape=(size,))
    function = relay.Function([x], relay.nn.relu(x))
    relay.transform.InferType()(relay.IRModule.from_expr(function))
    result = np.zeros(size, "float32")
    evaluate(lower_function(function).func, np.ones(size, "float32"), result)
    return result


def chosen(size):
    x = relay.var("x", shape=(size,))
    arguments = relay.nn.relu(x).attrs, [te.placeholder((size,))], relay.TensorType((size,)), Target("llvm")
    valid = te_compiler.get_valid_implementations(relay.op.get("nn.relu"), *arguments)
    return len(valid), te_compiler.select_implementation(relay.op.get("nn.relu"), *arguments)[0].name


def test_the_highest_level_whose_condition_holds_computes_the_call():
    assert chosen(3) == (1, "nn.relu.own") and value(3).tolist() == [1] * 3
    with TempOpAttr("nn.relu", "FTVMStrategy", strategy):
        assert chosen(3) == (1, "plain") and value(3).tolist() == [2] * 3
        assert chosen(5) == (2, "long") and value(5).tolist() == [3] * 5
    assert chosen(5) == (1, "nn.relu.own")


def test_a_compute_replaces_that_of_an_operator():
    try:
        register_compute("nn.relu", times(7.0))
        assert value(2).tolist() == [7, 7]
    finally:
        relay.op.get("nn.relu").reset_attr("FTVMCompute")


def test_an_implementation_computes_what_the_type_says():
    with (
        TempOpAttr("nn.relu", "FTVMCompute", times(1.0, (9,))),
        pytest.raises(CannotCompile, match=r"nn.relu: implementation nn.relu.own computes \(9,\) of float32"),
    ):
        value(2)
    with (
        TempOpAttr("nn.relu", "FTVMStrategy", lambda *_: OpStrategy()),
        pytest.raises(CannotCompile, match="no implementation of its strategy fits"),
    ):
        value(2)


def test_a_schedule_that_is_not_used_is_named():
    with pytest.warns(ScheduleNotUsed, match="the schedule of implementation default is not used.*Coming from TVM"):
        OpStrategy().add_implementation(times(1.0), lambda attrs, outs, target: None)
    with pytest.warns(ScheduleNotUsed, match=r"the schedule of nn.relu is not used"):
        register_schedule("nn.relu", lambda attrs, outs, target: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_injective_schedule("nn.relu")
        register_schedule("nn.relu", naive_schedule)


def test_a_strategy_is_a_function_of_an_operator_that_exists():
    with pytest.raises(TypeError, match=r"the strategy of nn.relu is a function, and not 3"):
        register_strategy("nn.relu", 3)
    with pytest.raises(ValueError, match=r"nn\.rely"):
        register_injective_schedule("nn.rely")
