"""Small ONNX models, made for a row: one operator, and what follows it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks.bench.case import Array

OPSET, IR_VERSION = 17, 8  # old enough for every version of the libraries that read them


class Step(NamedTuple):
    """An operator with its attributes; values go by their names."""

    operator: str
    inputs: Sequence[str]
    output: str  # several are separated by spaces
    attributes: Mapping[str, Any] = {}


class Typed(Protocol):
    """What has a shape and a type: an array, or the description of one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""

    @property
    def dtype(self) -> Any:
        """The type of the elements, as numpy knows it."""


def model(
    steps: Sequence[Step],
    inputs: Mapping[str, Typed],
    outputs: Mapping[str, Typed],
    constants: Mapping[str, Array],
    opset: int = OPSET,
) -> bytes:
    """The model that does the steps one after another; arrays of inputs and outputs give types and shapes."""
    onnx = importlib.import_module("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper

    def declared(values: Mapping[str, Typed]) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype)), x.shape)
            for name, x in values.items()
        ]

    graph = helper.make_graph(
        [helper.make_node(step.operator, step.inputs, step.output.split(), **step.attributes) for step in steps],
        "row",
        declared(inputs),
        declared(outputs),
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    version = IR_VERSION if opset <= OPSET else 10
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
    return bytes(made.SerializeToString())
