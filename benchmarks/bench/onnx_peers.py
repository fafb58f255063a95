"""ONNX models in ONNX Runtime and OpenVINO: all optimisations, inputs and outputs bound once, as many threads as told.

Both get the arrays' own memory, so that a call copies nothing. OpenVINO would compute float32 models in bfloat16 where
the machine has it; it is told to keep to float32, as everyone else does.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from benchmarks.bench.case import Array, Onnx, Run


def call(peer: Onnx, inputs: Sequence[Array], outputs: Sequence[Array], threads: int) -> Run:
    """The call to time."""
    library = importlib.import_module(peer.library)
    make = _onnxruntime if peer.library == "onnxruntime" else _openvino
    run = make(library, peer.model(), inputs, outputs, threads)
    run.arrays = [*inputs, *outputs]  # type: ignore[attr-defined]  # the libraries hold their addresses only
    return run


def _onnxruntime(ort: Any, model: bytes | str, inputs: Sequence[Array], outputs: Sequence[Array], threads: int) -> Run:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for number, x in enumerate(inputs):
        binding.bind_input(f"x{number}", "cpu", 0, x.dtype.type, x.shape, x.ctypes.data)
    for number, y in enumerate(outputs):
        binding.bind_output(f"y{number}", "cpu", 0, y.dtype.type, y.shape, y.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def _openvino(ov: Any, model: bytes | str, inputs: Sequence[Array], outputs: Sequence[Array], threads: int) -> Run:
    core = ov.Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    request = compiled.create_infer_request()
    for number, x in enumerate(inputs):
        request.set_tensor(f"x{number}", ov.Tensor(x, shared_memory=True))
    for number, y in enumerate(outputs):
        request.set_tensor(f"y{number}", ov.Tensor(y, shared_memory=True))

    def run() -> None:
        # What `infer` does as well, without the dictionary of results that it makes.
        request.start_async()
        request.wait()

    return run
