"""The race of whole models: the files, the comparison and the table; contenders are run by `benchmarks.models.race`."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from rich.console import Console

from benchmarks.bench.measure import Samples
from benchmarks.bench.row import AGAIN, OURS, summary
from benchmarks.models.race import difference, main
from benchmarks.models.race_table import means, show


def test_results_are_compared_by_the_largest_number():
    ours = [np.array([1.0, -4.0], np.float32)]
    assert difference([np.array([1.0, -4.0], np.float32)], ours) == 0
    assert difference([np.array([1.002, -4.0], np.float32)], ours) == pytest.approx(0.0005, rel=1e-3)
    assert difference([np.array([math.nan, -4.0], np.float32)], ours) == math.inf
    assert difference([np.zeros(3, np.float32)], ours) == math.inf


def record():
    def row(name: str, **seconds: float) -> dict:
        taken = {OURS: 1.0, AGAIN: 1.0, **seconds}
        found = summary({peer: Samples([one] * 3, 1) for peer, one in taken.items()})
        for figures in found["contenders"].values():
            figures.update(peak_bytes=2**20, peak_bytes_with_loading=2**21)
        return {"name": name, "status": "ok", "compile_seconds": 2.0, "skipped": {}, "doubtful": {}, **found}

    rows = [row("one", onnxruntime=2.0, torch=8.0), row("two", onnxruntime=0.5, torch=2.0)]
    rows[1]["doubtful"] = {"onnxruntime": "its results are 1.0e-01 of the largest number from ours"}
    rows[1]["skipped"] = {"openvino": "openvino is not installed"}
    failed = {"name": "three", "status": "error", "message": "RuntimeError: it was not compiled"}
    settings = {"threads": 2, "batch": 1, "rounds": 3, "tolerance": 1e-3, "compile_options": [], "load_before": 2.0}
    machine = {"cpu": "a cpu", "arch": "x86_64"}
    return {"date": "today", "machine": machine, "versions": {}, "settings": settings, "rows": [*rows, failed]}


def test_the_table_leaves_out_what_is_in_doubt():
    made = record()
    assert means(made["rows"][:2], ["onnxruntime", "torch"]) == pytest.approx({"onnxruntime": 2, "torch": 4, "best": 2})
    text = io.StringIO()
    show(made, Console(file=text, width=150))
    for part in (
        "500.00 ms  ?",
        "geomean",
        "1 (2)",
        "two: onnxruntime is left out: its results are 1.0e-01 of the largest number from ours",
        "two: openvino is left out: openvino is not installed",
        "three: RuntimeError: it was not compiled",
        "do not publish this",
    ):
        assert part in text.getvalue()


def test_unknown_models_and_peers_are_refused(capsys):
    for arguments, problem in ((["resnet51"], "there is no model 'resnet51'"), (["--peers", "x"], "no peer 'x'")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert problem in capsys.readouterr().err


def test_files_are_for_any_batch():
    onnx = pytest.importorskip("onnx")
    from benchmarks.models.mobilenet import mobilenet_v2
    from benchmarks.models.raced import calmed, of_batch

    model = mobilenet_v2(batch=2, size=32, classes=10)
    onnx.checker.check_model(model)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    assert [size.dim_value for size in inferred.graph.output[0].type.tensor_type.shape.dim] == [2, 10]
    assert sum(node.op_type == "Conv" for node in model.graph.node) == 52
    before = onnx.numpy_helper.to_array(model.graph.initializer[-1])
    after = onnx.numpy_helper.to_array(calmed(model, 0.5).graph.initializer[-1])
    np.testing.assert_array_equal(after, before * np.float32(0.5))

    text = """<ir_version: 8, opset_import: ["" : 9]> g (float[1, 4] x) => (float[1, 2, 2] y)
        <int64[3] s = {1, 2, 2}> { y = Reshape (x, s) }"""
    many = of_batch(onnx.parser.parse_model(text), 3)
    inferred = onnx.shape_inference.infer_shapes(many, strict_mode=True, data_prop=True)
    assert [size.dim_value for size in inferred.graph.output[0].type.tensor_type.shape.dim] == [3, 2, 2]
    assert onnx.numpy_helper.to_array(many.graph.initializer[0]).tolist() == [3, 2, 2]


def test_torch_computes_what_onnx_means():
    onnx = pytest.importorskip("onnx")
    torch = pytest.importorskip("torch")
    from onnx.reference import ReferenceEvaluator

    from benchmarks.models.torch_peer import NotRaced, torch_module

    text = """<ir_version: 8, opset_import: ["" : 9]> g (float[2, 3, 6, 6] x) => (float[2, 3, 3, 3] y) {
        a = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (x)
        b = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (x)
        y = Mul (a, b)
    }"""
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6)).astype(np.float32)
    model = onnx.parser.parse_model(text)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(torch_module(model)(torch.from_numpy(x)).numpy(), expected, rtol=1e-5, atol=1e-6)

    # Before opset 13 a softmax is over all axes from the second on.
    softmax = text.replace("y = Mul", "z = Mul").replace("    }", "y = Softmax (z)\n}")
    powers = np.exp(expected.astype(np.float64)).reshape(2, -1)
    shares = (powers / powers.sum(1, keepdims=True)).reshape(expected.shape)
    found = torch_module(onnx.parser.parse_model(softmax))(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, shares, rtol=1e-5)
    with pytest.raises(NotRaced, match="Tanh"):
        torch_module(onnx.parser.parse_model(softmax.replace("Softmax", "Tanh")))
