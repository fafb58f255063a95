"""raced: the models of a race, each written once as the one file that all contenders get.

    path = write_model("resnet50", folder, batch=1)         inputs are called x0, x1 …, outputs y0, y1 …
    case_of(path, library)                                  what `benchmarks.bench` measures
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench.case import Array, Case, Numpy, Onnx, Peer, Problem, Run, Torch, aligned
from benchmarks.bench.row import AGAIN, OURS
from benchmarks.models.light import NAMES, light_model
from benchmarks.models.mobilenet import mobilenet_v2
from benchmarks.models.transformers import decoder, encoder

MODELS: dict[str, Callable[[int], Any]] = {
    **{name.removeprefix("bvlc_"): (lambda batch, name=name: of_batch(light_model(name), batch)) for name in NAMES},
    "mobilenet_v2": lambda batch: mobilenet_v2(batch=batch),
    "encoder": lambda batch: encoder(batch=batch),
    "decoder": lambda batch: decoder(batch=batch),
}
PEERS = ("onnxruntime", "openvino", "torch", "torch compile")
FUNCTION = "raced"  # of our library
Type = tuple[Sequence[int], str]  # of an array: its shape and its elements
_CALM = {"inception_v2": 1e-2, "resnet50": 1e-3, "shufflenet": 1e-4}  # sums over shortcuts grow with the depth
_DTYPES = {1: "float32", 7: "int64"}  # as ONNX numbers them


def of_batch(model: Any, batch: int) -> Any:
    """A model for one image as one for many: what it takes and gives, and the shapes that it says in between."""
    from onnx import numpy_helper

    if batch == 1:
        return model
    graph = model.graph
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes:
            shape = np.array(numpy_helper.to_array(tensor))
            if shape[0] == 1:  # others are of weights
                shape[0] = batch
                tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    return model


def calmed(model: Any, scale: float) -> Any:
    """A model whose last weights are scaled: of numbers in the thousands, a softmax leaves a single 1 to compare."""
    from onnx import numpy_helper

    last = next(node for node in reversed(model.graph.node) if node.op_type == "Gemm")
    for tensor in model.graph.initializer:
        if tensor.name in last.input[1:]:
            scaled = (numpy_helper.to_array(tensor) * np.float32(scale)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(scaled, tensor.name))
    return model


def write_model(name: str, folder: Path, batch: int = 1) -> Path:
    """The file of a model."""
    import onnx

    model = MODELS[name](batch)
    if name in _CALM:
        model = calmed(model, _CALM[name])
    graph = model.graph
    renamed = {value.name: f"x{place}" for place, value in enumerate(graph.input)}
    renamed |= {value.name: f"y{place}" for place, value in enumerate(graph.output)}
    for node in graph.node:
        for side in (node.input, node.output):
            for place, value in enumerate(side):
                side[place] = renamed.get(value, value)
    for value in (*graph.input, *graph.output):
        value.name = renamed[value.name]
    onnx.checker.check_model(model)
    path = folder / f"{name}.onnx"
    onnx.save(model, str(path))
    return path


def case_of(path: Path, library: Path) -> Case:
    """The model as a case: every contender, ours too, is made from files in a process of its own.

    Shapes are read here: a process that runs our library should load that and nothing else.
    """
    import onnx

    graph = onnx.load(str(path)).graph
    inputs, outputs = ([_type(value) for value in side] for side in (graph.input, graph.output))
    return Case(path.stem, problem, (os.fspath(path), os.fspath(library), inputs, outputs))


def problem(path: str, library: str, takes: Sequence[Type], gives: Sequence[Type]) -> Problem:
    """The inputs, seeded, room for the outputs, and how each contender is called."""
    random = np.random.default_rng(1)
    inputs, outputs = [_input(*one, random) for one in takes], [aligned(*one) for one in gives]
    peers: dict[str, Peer] = {
        OURS: Numpy(_Ours(library), "loopwright"),
        AGAIN: Numpy(_Ours(library), "loopwright"),
        "onnxruntime": Onnx("onnxruntime", lambda: path),
        "openvino": Onnx("openvino", lambda: path),
        "torch": Torch(_Module(path), apart=True, returns=True),
        "torch compile": Torch(_Module(path, compiles=True), apart=True, returns=True),
    }
    return Problem(_no_program, inputs, outputs, lambda: [], peers)


def _type(value: Any) -> Type:
    of = value.type.tensor_type
    return [int(size.dim_value) for size in of.shape.dim], _DTYPES[of.elem_type]


def _input(shape: Sequence[int], dtype: str, random: np.random.Generator) -> Array:
    found = aligned(shape, dtype)
    found[...] = random.standard_normal(shape) if dtype == "float32" else random.integers(0, 1000, shape)
    return found


def _no_program() -> Any:
    raise AssertionError("a model is compiled before the race, in a process of its own")


class _Ours:
    """Our library, loaded; the compiler is not."""

    def __init__(self, library: str) -> None:
        self.library = library

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Run:
        import loopwright as lw

        function = lw.load_module(self.library)[FUNCTION]
        tensors = [lw.nd.from_dlpack(x) for x in (*inputs, *outputs)]
        return lambda: function(*tensors)


class _Module:
    """The model in torch, eager or compiled: with frozen weights, which is the fastest that torch.compile offers."""

    def __init__(self, path: str, compiles: bool = False) -> None:
        self.path, self.compiles = path, compiles

    def __call__(self, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Run:
        onnx = importlib.import_module("onnx")
        from benchmarks.models.torch_peer import torch_module

        module: Any = torch_module(onnx.load(self.path))
        if self.compiles:
            importlib.import_module("torch._inductor.config").freezing = True
            module = torch.compile(module, dynamic=False)
        return lambda: module(*inputs)
