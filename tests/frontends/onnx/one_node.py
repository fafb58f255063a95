"""One node as a model, and what ONNX's own reference makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted


def one_node(
    op: str, inputs: list[Any], outputs: int = 1, opset: int = 21, constant: tuple[int, ...] = (), **attributes: Any
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A model of one node, and the values of its inputs; those at places `constant` are stored, None is left out."""
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(arrays)]
    domain = attributes.pop("domain", "")
    node = helper.make_node(op, names, [f"o{k}" for k in range(outputs)], domain=domain, **attributes)
    given = {
        name: value for k, (name, value) in enumerate(zip(names, arrays)) if value is not None and k not in constant
    }
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    stored = [numpy_helper.from_array(arrays[k], names[k]) for k in constant]
    results = [helper.make_empty_tensor_value_info(f"o{k}") for k in range(outputs)]
    sets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    graph = helper.make_graph([node], "g", infos, results, stored)
    return shape_inference.infer_shapes(helper.make_model(graph, opset_imports=sets, ir_version=10)), given


def compare(
    op: str, inputs: list[Any], outputs: int = 1, rtol: float = 1e-5, atol: float = 1e-6, **options: Any
) -> None:
    """Hold the interpreter's results against those of ONNX's reference."""
    graph, given = one_node(op, inputs, outputs, **options)
    wanted = ReferenceEvaluator(graph).run(None, given)
    for found, expected in zip(CompiledModel(graph, make_runner=interpreted).run(given), wanted, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
