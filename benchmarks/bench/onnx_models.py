"""Small ONNX models, made for a row: one operator, and what follows it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.bench.case import Array

OPSET, IR_VERSION = 17, 8  # old enough for every version of the libraries that read them


class Step(NamedTuple):
    """An operator with its attributes; values go by their names."""

    operator: str
    inputs: Sequence[str]
    output: str
    attributes: Mapping[str, Any] = {}


def model(
    steps: Sequence[Step], inputs: Mapping[str, Array], outputs: Mapping[str, Array], constants: Mapping[str, Array]
) -> bytes:
    """The model that does the steps one after another; arrays of inputs and outputs give types and shapes."""
    onnx = importlib.import_module("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper

    def declared(values: Mapping[str, Array]) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in values.items()
        ]

    graph = helper.make_graph(
        [helper.make_node(step.operator, step.inputs, [step.output], **step.attributes) for step in steps],
        "row",
        declared(inputs),
        declared(outputs),
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return bytes(made.SerializeToString())
