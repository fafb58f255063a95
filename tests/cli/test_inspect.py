from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from loopwright.cli import app
from loopwright.display.quantities import bytes_text, count_text, flops_text, open_bytes_text, size_text, time_text
from tests.cli.models import MLP, NET, save

onnx = pytest.importorskip("onnx")

UNSUPPORTED = """<ir_version: 8, opset_import: ["" : 17, "my.own" : 1, "ai.onnx.ml" : 3]>
g (float[2, 4] x, string[2] s) => (float[2, 4] y, string[2] t) {
  a = my.own.Magic(x)
  b = my.own.Magic(a)
  c = ai.onnx.ml.Scaler(b)
  t = StringNormalizer(s)
  y = Relu(c) }"""


def inspect(*arguments, status=0):
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.stdout


def test_what_a_model_is_made_of(tmp_path):
    path = save(tmp_path / "mlp.onnx", MLP.replace("batch", "5"))
    text = inspect(path, "--nodes")
    for part in (
        "ONNX, opset 17, made by tests",
        "input x: float32[5, 4]",
        "output y: float32[5, 2]",
        "weights: 18 numbers in 2 tensors",
        "a run, 2 launches of 2 kernels",
        "It can be compiled.",
    ):
        assert part in text
    assert "MatMul_2  MatMul    y[5, 2]" in text
    found = json.loads(inspect(path, "--json"))
    assert found["supported"] and found["problem"] is None and found["format"] == "onnx"
    assert {one["operator"]: one["count"] for one in found["operators"]} == {"MatMul": 2, "Relu": 1}
    # Two products, and the ReLU: 5 × 4 × 3 and 5 × 3 × 2 multiply-adds, and what stands beside them.
    assert found["flops"] >= 2 * 60 + 2 * 30
    assert found["memory"]["arena"] >= 5 * 3 * 4 and found["memory"]["constants"] >= 18 * 4
    assert found["nodes"][1] == {"name": "Relu_1", "operator": "Relu", "outputs": [{"name": "r", "shape": [5, 3]}]}


def test_everything_that_is_not_supported_at_once_and_why(tmp_path):
    path = save(tmp_path / "odd.onnx", UNSUPPORTED)
    text = inspect(path, status=1)
    assert "It cannot be compiled:" in text
    assert "my.own.Magic (Magic_0, Magic_1): the operators of 'my.own' are known to the one who made" in text
    assert "ai.onnx.ml.Scaler (Scaler_2): models that are not networks" in text
    assert "StringNormalizer (StringNormalizer_3): texts are not computed with" in text
    found = json.loads(inspect(path, "--json", status=1))
    assert [one["operator"] for one in found["operators"] if one["supported"]] == ["Relu"]
    assert found["flops"] is None and found["memory"] is None and not found["supported"]


def test_a_graph_that_does_not_fit_together(tmp_path):
    broken = save(tmp_path / "broken.onnx", MLP.replace("float[3, 2] v", "float[2, 3] v"))
    found = json.loads(inspect(broken, "--json", status=1))
    assert found["problem"]["code"] == "LW1303" and "MatMul_2" in found["problem"]["problem"]
    assert "node 'MatMul_2' (MatMul)" in inspect(broken, status=1)


def test_relay_text(tmp_path):
    (tmp_path / "net.relay").write_text(NET)
    found = json.loads(inspect(tmp_path / "net.relay", "--json"))
    assert {one["operator"] for one in found["operators"]} == {"nn.dense", "nn.relu"}
    assert found["flops"] is None  # the call decides it


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "noise.onnx").write_bytes(bytes(range(256)))
    for name, code in (("noise.onnx", "LW1301"), ("nowhere.onnx", "LW0045"), ("nowhere.tar", "LW0045")):
        assert json.loads(inspect(tmp_path / name, "--json", status=1))["error"]["code"] == code


def test_quantities():
    assert size_text('T.Cast("int64", T.Cast("int64", n)) * T.int64(4)') == "n * 4" and size_text("n") == "n"
    assert [bytes_text(n) for n in (0, 1, 1023, 1536, 5 << 20, 3 << 30)] == [
        "0 bytes",
        "1 byte",
        "1,023 bytes",
        "1.50 KiB",
        "5.00 MiB",
        "3.00 GiB",
    ]
    assert [flops_text(n) for n in (12, 1500, 8.21e9, 3e12)] == ["12 FLOP", "1.5 kFLOP", "8.21 GFLOP", "3 TFLOP"]
    assert [time_text(t) for t in (2.5, 0.0123, 4e-6, 7e-9)] == ["2.5 s", "12.3 ms", "4 µs", "7 ns"]
    assert [count_text(1, "launch", "launches"), count_text(2, "launch", "launches")] == ["1 launch", "2 launches"]


OPEN = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 2, h] x) => (float[batch, 2, half] y) {
  a = Relu(x)
  b = MaxPool <kernel_shape = [2], strides = [2]> (a)
  y = Softmax(b) }"""


def test_memory_of_open_sizes_is_a_formula_in_their_names(tmp_path):
    text = inspect(save(tmp_path / "open.onnx", OPEN))
    assert "T.Cast" not in text and "values at most 0 bytes" not in text
    assert "plus, for each call, 8 bytes × batch × " in text
    assert 'what a call costs depends on batch, h: --input-shapes "x:[1,2,1]" shows it' in text


TOP = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 6] x) => (float[n, 2] v, int64[n, 2] i)
<int64[1] k = {2}> {
  a = Softmax(x)
  v, i = TopK(a, k) }"""


def test_kernels_that_are_not_counted(tmp_path):
    path = save(tmp_path / "top.onnx", TOP)
    text = inspect(path, "--input-shapes", "x:[3,6]")
    assert "a run (1 kernel not counted), 2 launches of 2 kernels" in text and "depends on" not in text
    assert re.search(r"^fused_topk +1 +not counted +\d+ bytes$", text, re.MULTILINE)
    text = inspect(path)
    assert "not counted" not in text and "what a call costs depends on n: --input-shapes" in text


def test_open_sizes_for_people():
    cast = 'batch * T.Cast("int64", h // 2) * T.int64(512)'
    assert size_text(cast) == "batch * (h // 2) * 512"
    assert size_text('T.Cast("int64", max(n, (h + 1) // 2)) * T.int64(4)') == "(max(n, (h + 1) // 2)) * 4"
    assert open_bytes_text(["n * 4096", size_text(cast)]) == "4.00 KiB × n + 512 bytes × batch × (h // 2)"
    assert open_bytes_text(["n + 4"]) == "(n + 4) bytes"
    assert open_bytes_text(["n * 32768", "m * n * 4", "n * 8192", "n * m * 8"]) == "40.00 KiB × n + 12 bytes × m × n"
