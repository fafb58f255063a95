"""GraphBuilder: nodes and seeded weights of an ONNX graph in the making."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class GraphBuilder:
    """What a model is written with: `add` gives the name of what a node makes."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.count = 0

    def weight(self, *shape: int, scale: float) -> str:
        """Normal numbers of that deviation."""
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, value: Any) -> str:
        """An array as an initializer."""
        from onnx import numpy_helper

        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output."""
        from onnx import helper

        self.count += 1
        name = f"{operator.lower()}_{self.count}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def made(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The model; inputs and outputs are (name, element type, shape)."""
        from onnx import helper

        declared = [[helper.make_tensor_value_info(*one) for one in side] for side in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, name, *declared, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
