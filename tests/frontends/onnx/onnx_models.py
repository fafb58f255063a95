"""Small models for the tests, and ways to run them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, parser

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.convert import import_model
from loopwright.frontends.onnx.load import load


def model(text: str, opset: int = 21, extra: str = "") -> ModelProto:
    """A model from the text form of its graph: `(float[3] x) => (float[3] y) { y = Relu(x) }`."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{extra}]> g {text}')


def run(graph: Any, *inputs: Any, **options: Any) -> Any:
    """The outputs of a model by the interpreter."""
    return CompiledModel(graph, make_runner=interpreted, **options)(*inputs)


def imported(graph: Any, **options: Any) -> Any:
    return import_model(load(graph), **options)


def random(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
