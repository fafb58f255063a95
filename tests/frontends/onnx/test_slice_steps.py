"""Steps of Slice as long as 64 bits go: numpy and others take the element at the start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import loopwright as lw
from loopwright.frontends.common import runners
from loopwright.frontends.onnx.convert import import_model
from loopwright.frontends.onnx.load import load

onnx = pytest.importorskip("onnx")
helper, kinds = onnx.helper, onnx.TensorProto

STEPS = [3, 2**31 - 1, 2**31, 2**63 - 1, -2, -(2**31), -(2**31) - 1, -(2**63)]


def model(dims: list[object], step: int, bounds_are_inputs: bool, bounds: tuple[int, int] | None = None):
    start, end = bounds or ((3, 0) if step < 0 else (0, 4))
    given = {"s": start, "e": end, "a": 0, "st": step}
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


@pytest.mark.one_in(5)
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


def taken(size: int, start: int, end: int, step: int) -> list[int]:
    """The elements of an axis that the text of Slice-13 names, for a negative step."""
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    return list(range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step))


BACKWARD = [(-7, -7, -2), (-7, -8, -1), (-9, 0, -1), (-2, -99, -1), (5, -7, -2), (-(2**63), -(2**63), -1)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("size", [6, 1, 0])
@pytest.mark.parametrize(("start", "end", "step"), BACKWARD)
def test_a_start_before_the_first_element_is_the_first(start, end, step, size):
    x = np.arange(2 * size, dtype="float32").reshape(size, 2)
    expected = x[taken(size, start, end, step)] if size else x
    for dims in ([size, 2], ["n", 2]):
        for bounds_are_inputs in (False, True):
            made, bounds = model(dims, step, bounds_are_inputs, (start, end))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_array_equal(lw.compile(made)(x, *bounds), expected)
                # Bounds that only a run gives.
                imported = import_model(load(made))
                result = runners.interpreted(imported.mod)([x, *bounds])
            np.testing.assert_array_equal(result[0], expected)
