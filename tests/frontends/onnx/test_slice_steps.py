"""Steps of Slice as long as 64 bits go: numpy and others take the element at the start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import loopwright as lw

onnx = pytest.importorskip("onnx")
helper, kinds = onnx.helper, onnx.TensorProto

STEPS = [3, 2**31 - 1, 2**31, 2**63 - 1, -2, -(2**31), -(2**31) - 1, -(2**63)]


def model(dims: list[object], step: int, bounds_are_inputs: bool):
    given = {"s": 3 if step < 0 else 0, "e": 0 if step < 0 else 4, "a": 0, "st": step}
    inputs = [helper.make_tensor_value_info("x", kinds.FLOAT, dims)]
    if bounds_are_inputs:
        inputs += [helper.make_tensor_value_info(name, kinds.INT64, [1]) for name in "se"]
    constants = [
        onnx.numpy_helper.from_array(np.array([value], "int64"), name)
        for name, value in given.items()
        if not (bounds_are_inputs and name in "se")
    ]
    node = helper.make_node("Slice", ["x", *given], ["y"])
    output = helper.make_tensor_value_info("y", kinds.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [output], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 8
    return made, [np.array([given[name]], "int64") for name in "se"] if bounds_are_inputs else []


@pytest.mark.parametrize("bounds_are_inputs", [False, True])
@pytest.mark.parametrize("dims", [[4, 2], ["n", 2], ["n", "m"]], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_steps(step, dims, bounds_are_inputs):
    x = np.arange(8, dtype="float32").reshape(4, 2)
    made, bounds = model(dims, step, bounds_are_inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = lw.compile(made)(x, *bounds)
    np.testing.assert_array_equal(result, x[3:0:step] if step < 0 else x[0:4:step])
