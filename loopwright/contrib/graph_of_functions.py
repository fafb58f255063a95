"""GraphOfFunctions: a graph in JSON whose nodes are functions of a module, run node by node.

    lib = lw.build(program, target="llvm")               defines myadd
    model = graph_executor.create(graph_json, lib, lw.cpu())

`relay.build` makes one native function instead, and needs no such graph; this is for graphs written by hand or by other
tools. Every value has memory of its own, whatever the graph says about storage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import TensorLike, array_of
from loopwright.runtime.dtype import DataType
from loopwright.runtime.module import Module
from loopwright.runtime.tensor import as_argument


@dataclass(frozen=True)
class GraphValue:
    """An input or an output: what is known of it before a run."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class GraphOfFunctions:
    """The model that a `GraphModule` runs: inputs by name, outputs in fresh arrays."""

    def __init__(self, graph: str, library: Module) -> None:
        self._graph = graph
        try:
            said = json.loads(graph)
            nodes, first = said["nodes"], said["node_row_ptr"]
            shapes, kinds = said["attrs"]["shape"][1], said["attrs"]["dltype"][1]
            self._inputs = [first[node] for node in said["arg_nodes"]]
            self._outputs = [first[node] + index for node, index, *_ in said["heads"]]
            names = [nodes[node]["name"] for node in said["arg_nodes"]]
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            raise BadModelInput(f"the graph cannot be read: {type(problem).__name__} {problem}") from problem
        values = [GraphValue("", tuple(shape), kind) for shape, kind in zip(shapes, kinds, strict=True)]
        self.inputs = [GraphValue(name, values[k].shape, values[k].dtype) for name, k in zip(names, self._inputs)]
        self.outputs = [values[k] for k in self._outputs]
        self.input_names = names
        self._arrays = [np.zeros(one.shape, DataType(one.dtype).numpy()) for one in values]
        self._steps = [
            self._step(node, [first[source] + index for source, index, *_ in node["inputs"]], first[number], library)
            for number, node in enumerate(nodes)
            if node["op"] != "null"
        ]

    def _step(self, node: Mapping[str, Any], inputs: Sequence[int], result: int, library: Module) -> Callable[[], Any]:
        attrs = node.get("attrs", {})
        name = attrs.get("func_name")
        if node["op"] != "tvm_op" or name is None:
            raise BadModelInput(f"node {node['name']!r} of the graph is no call: its op is {node['op']!r}")
        if name in ("__nop", "__copy"):
            source, into = self._arrays[inputs[0]], self._arrays[result]
            return lambda: np.copyto(into, source.reshape(into.shape))
        count = int(attrs.get("num_outputs", 1))
        if int(attrs.get("num_inputs", len(inputs))) != len(inputs):
            raise BadModelInput(f"node {node['name']!r} of the graph has {len(inputs)} inputs, and says another number")
        arrays = [self._arrays[k] for k in (*inputs, *range(result, result + count))]
        if attrs.get("flatten_data") == "1":
            arrays = [array.reshape(prod(array.shape)) for array in arrays]
        return partial(library.get_function(name, query_imports=True), *[as_argument(array) for array in arrays])

    def arguments(self, args: Sequence[TensorLike], named: Mapping[str, TensorLike]) -> list[TensorLike]:
        """The inputs in order."""
        given = {**dict(zip(self.input_names, args, strict=False)), **named}
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise BadModelInput(f"input {missing[0]!r} is not given", f"its inputs are {', '.join(self.input_names)}")
        return [given[name] for name in self.input_names]

    def __call__(self, *args: TensorLike, **named: TensorLike) -> list[np.ndarray]:
        """The outputs for these inputs, in new arrays."""
        results = [np.empty(one.shape, DataType(one.dtype).numpy()) for one in self.outputs]
        self.compiled(*self.arguments(args, named), *results)
        return results

    def compiled(self, *arrays: TensorLike) -> None:
        """Run with inputs, and outputs to write."""
        for k, value in zip(self._inputs, arrays):
            np.copyto(self._arrays[k], array_of(value, "an input"))
        for step in self._steps:
            step()
        for k, into in zip(self._outputs, arrays[len(self._inputs) :], strict=True):
            np.copyto(array_of(into, "an output"), self._arrays[k])

    def get_graph_json(self) -> str:
        return self._graph
