"""Contenders of a case: ours as a kernel or as a model, numpy, torch (eager) and ONNX Runtime.

Against a kernel, peers write where they are told as far as they can (`out=`, bound outputs), as the kernel does.
Against a model, everyone returns fresh results: `model(x)`, `session.run(None, …)`, `torch.add(x, y)`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.bench import onnx_models
from benchmarks.bench.case import Array, Missing, aligned
from benchmarks.bench.ours import call
from benchmarks.bench.peers import Contender, load_torch
from benchmarks.sweep.case import KERNEL, Case

PEERS = ("numpy", "torch", "onnxruntime")


def onnx_bytes(case: Case, arrays: Sequence[Array]) -> bytes:
    """The case as an ONNX model."""
    given = {f"x{k}": x for k, x in enumerate(arrays)}
    weights = {f"x{k}": x for k, x in enumerate(arrays) if case.inputs[k].constant}
    return onnx_models.model(
        case.model,
        {name: x for name, x in given.items() if name not in weights},
        {f"y{k}": y for k, y in enumerate(case.outputs)},
        {**weights, **case.constants},
        case.opset,
    )


def tensors(case: Case) -> list[Any]:
    """The case's kernel as te tensors: inputs, then outputs."""
    from loopwright import te

    assert case.kernel is not None
    given = [te.placeholder(x.shape, x.dtype, name=f"x{k}") for k, x in enumerate(case.inputs)]
    made = case.kernel(*given)
    return [*given, *(made if isinstance(made, (list, tuple)) else [made])]


def compiled(case: Case, arrays: Sequence[Array]) -> Any:
    """Ours, compiled: what is timed as the compile time."""
    import loopwright as lw

    if case.ours == KERNEL:
        return lw.build(tensors(case), name="main", autosched=True)
    return lw.compile(onnx_bytes(case, arrays))


def ours(case: Case, made: Any, arrays: Sequence[Array]) -> Contender:
    """The call of what was compiled."""
    if case.ours == KERNEL:
        outputs = [aligned(y.shape, y.dtype) for y in case.own_outputs]
        return Contender(call(made, [*arrays, *outputs]), lambda: outputs)
    given = _varying(case, arrays)
    return _returning(lambda: made(*given))


def peer(name: str, case: Case, arrays: Sequence[Array], threads: int) -> Contender:
    """The call of a peer; raises Missing where it is not installed or has no such operator."""
    outputs: list[Any] = [aligned(y.shape, y.dtype) if case.ours == KERNEL else None for y in case.outputs]
    if name == "numpy":
        if case.numpy is None:
            raise Missing("has no such operator")
        numpy = case.numpy
        return _returning(lambda: numpy(arrays, outputs))
    if name == "torch":
        if case.torch is None:
            raise Missing("has no such operator")
        _require("torch")
        return _torch(case, arrays, outputs, threads)
    if not case.model:
        raise Missing("has no such operator")
    _require("onnx")
    _require("onnxruntime")
    return _onnxruntime(case, arrays, outputs, threads)


def _torch(case: Case, arrays: Sequence[Array], outputs: Sequence[Any], threads: int) -> Contender:
    torch, function = load_torch(threads), case.torch
    assert function is not None
    given = [torch.from_numpy(x) for x in arrays]
    room = [None if y is None else torch.from_numpy(y) for y in outputs]

    def results(found: Any) -> list[Array]:
        several = found if isinstance(found, (list, tuple)) else [found]
        return [x.numpy() if hasattr(x, "numpy") else np.asarray(x) for x in several]

    return _returning(lambda: function(torch, given, room), results)


def _onnxruntime(case: Case, arrays: Sequence[Array], outputs: Sequence[Any], threads: int) -> Contender:
    ort = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(onnx_bytes(case, arrays), options, providers=["CPUExecutionProvider"])
    feed: Mapping[str, Array] = {f"x{k}": x for k, x in enumerate(arrays) if not case.inputs[k].constant}
    if case.ours != KERNEL:
        return _returning(lambda: session.run(None, feed))
    binding = session.io_binding()
    for key, x in feed.items():
        binding.bind_input(key, "cpu", 0, x.dtype.type, x.shape, x.ctypes.data)
    for k, y in enumerate(outputs):
        binding.bind_output(f"y{k}", "cpu", 0, y.dtype.type, y.shape, y.ctypes.data)
    return Contender(lambda: session.run_with_iobinding(binding), lambda: list(outputs))


def _varying(case: Case, arrays: Sequence[Array]) -> list[Array]:
    return [x for x, given in zip(arrays, case.inputs) if not given.constant]


def _returning(run: Callable[[], Any], results: Callable[[Any], list[Array]] | None = None) -> Contender:
    """A call that returns its results."""

    def found() -> list[Array]:
        value = run()
        if results is not None:
            return results(value)
        return [np.asarray(x) for x in value] if isinstance(value, (list, tuple)) else [np.asarray(value)]

    return Contender(run, found)


def _require(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        raise Missing(f"{library} is not installed")
