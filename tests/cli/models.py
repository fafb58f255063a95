"""Models for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

# relay(x · wᵀ), for any number of rows.
NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(n, 4), float32], %w: Tensor[(3, 4), float32]) {
  %0 = nn.dense(%x, %w, units=3);
  nn.relu(%0)
}
"""

# Two layers, weights of its own, and a dimension with a name.
MLP = """<ir_version: 8, opset_import: ["" : 17], producer_name: "tests">
g (float[batch, 4] x) => (float[batch, 2] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float[3, 2] v = {1, -1, 2, -2, 3, -3}>
{ h = MatMul(x, w)
  r = Relu(h)
  y = MatMul(r, v) }"""


def save(path: Path, text: str) -> str:
    """The model that the text of ONNX describes, as a file."""
    import onnx

    onnx.save(onnx.parser.parse_model(text), str(path))
    return str(path)
