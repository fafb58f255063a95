"""The light models of the onnx package: real networks whose weights are left out, filled with seeded random numbers.

In the package every weight is 0.02, so that all channels hold the same number; a wrong layout would go unnoticed.
Weights are drawn so that values keep their magnitude from layer to layer.
"""

from __future__ import annotations

import zlib
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np

NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)


def light_model(name: str, seed: int = 0) -> Any:
    """The model of that name with weights of its own."""
    import onnx
    from onnx import numpy_helper

    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.load(str(path))
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    kinds = _roles(graph)
    filled = []
    kept = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            shape = tuple(int(size) for size in shapes[node.input[0]])
            drawn = _drawn(node.output[0], shape, kinds.get(node.output[0], "weight"), seed)
            filled.append(numpy_helper.from_array(drawn, node.output[0]))
        else:
            kept.append(node)
    for tensor in graph.initializer:
        kind = kinds.get(tensor.name)
        if kind is not None and tensor.data_type == onnx.TensorProto.FLOAT:
            drawn = _drawn(tensor.name, tuple(tensor.dims), kind, seed)
            tensor.CopyFrom(numpy_helper.from_array(drawn, tensor.name))
    del graph.node[:]
    graph.node.extend(kept)
    graph.initializer.extend(filled)
    used = {name for node in kept for name in node.input}
    names = {tensor.name for tensor in graph.initializer}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(tensor)
    for value in [value for value in graph.input if value.name in names]:
        graph.input.remove(value)
    model.ir_version = max(model.ir_version, 4)  # from which on a weight need not be an input too
    return model


def _roles(graph: Any) -> dict[str, str]:
    """What each weight is for, by the operator that reads it."""
    roles: dict[str, str] = {}
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            for place, name in enumerate(node.input[1:], 1):
                roles[name] = "weight" if place == 1 else "bias"
        elif node.op_type == "BatchNormalization":
            for name, role in zip(node.input[1:], ("scale", "bias", "mean", "variance"), strict=True):
                roles[name] = role
        elif node.op_type in ("Mul", "Add") and len(node.input) == 2:
            roles.setdefault(node.input[1], "scale" if node.op_type == "Mul" else "bias")
    return roles


def _drawn(name: str, shape: tuple[int, ...], role: str, seed: int) -> np.ndarray:
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if role in ("scale", "variance"):
        drawn = random.uniform(0.8, 1.2, shape)
    elif role in ("bias", "mean"):
        drawn = random.uniform(-0.1, 0.1, shape)
    else:
        drawn = random.standard_normal(shape) * sqrt(2 / max(1, prod(shape[1:])))
    return drawn.astype(np.float32)
