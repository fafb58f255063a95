"""CompiledModel: calls by position and name, variants by value, what it refuses."""

from __future__ import annotations

import io
import re

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright.frontends.errors import BadModelName, NotOneLibrary, ValueNeeded
from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.errors import BadInputShape, InputMismatch, UnreadableModel
from loopwright.relay.quantize.calibrate import BadSamples
from tests.frontends.onnx.onnx_models import model, random

SCALED = """(float[n, 3] x, float[3] w) => (float[n, 3] y, float[n] z) <int64[1] last = {1}> {
    y = Mul(x, w)
    z = ReduceSum<keepdims = 0>(y, last)
}"""


def test_native_calls_at_several_sizes():
    compiled = CompiledModel(model(SCALED))
    for rows in (1, 2, 7):
        x, w = random(rows, 3), random(3, seed=1)
        y, z = compiled(x, w=w)
        np.testing.assert_array_equal(y, x * w)
        np.testing.assert_allclose(z, (x * w).sum(1), rtol=1e-5, atol=1e-6)


def test_a_library_has_the_names_of_the_model(tmp_path):
    path = tmp_path / "my net.onnx"
    path.write_bytes(model(SCALED).SerializeToString())
    for name, symbol in ((None, "my_net"), ("scaled", "scaled")):
        library = lw.compile(path, name=name).library
        library.export_library(str(tmp_path / "net.h"))
        assert f"loopwright_{symbol}(const float *x, const float *w, float *y, float *z, " in (
            tmp_path / "net.h"
        ).read_text().replace("\n", " ").replace("    ", "")
    assert lw.compile(model(SCALED)).library.libmod_name == "model" and library["default"]
    with pytest.raises(BadModelName, match="'' cannot name a model"):
        lw.compile(path, name="")


def test_shapes_that_contradict_the_model():
    relu = model("(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }")
    for shape in ((3, 5), (3,), (3, 4, 1), 7, (), ("n", 3)):
        listed = [shape] if isinstance(shape, int) else shape
        text = re.escape(f"the shape ({', '.join(map(str, listed))}) is given for the input 'x', and the model")
        with pytest.raises(BadInputShape, match=rf"{text} declares \(n, 4\)"):
            lw.compile(relu, shape={"x": shape})
    for wrong, message in (
        (5, "shapes are given by the names of inputs, not as int 5"),
        ({"x": 1.5}, "the shape of the input 'x' is given as float 1.5"),
    ):
        with pytest.raises(BadInputShape, match=message):
            lw.compile(relu, shape=wrong)
    x = random(3, 4)
    for fits in ((3, 4), (None, 4), ("rows", 4), (-1, None)):
        np.testing.assert_array_equal(lw.compile(relu, shape={"x": fits})(x), np.maximum(x, 0))


def test_a_model_in_an_open_file():
    data = model(SCALED).SerializeToString()
    x, w = random(2, 3), random(3, seed=1)
    for source in (io.BytesIO(data), memoryview(data)):
        np.testing.assert_array_equal(lw.compile(source)(x, w)[0], x * w)
    with pytest.raises(UnreadableModel, match="the open file"):
        lw.compile(io.BytesIO(b"junk"))


def test_samples_that_are_no_list():
    with pytest.raises(BadSamples, match="samples to calibrate with: int 5 is no list of them"):
        lw.compile(model(SCALED), precision="float16", calibrate=5)


def test_a_model_made_for_values_has_no_library():
    compiled = lw.compile(model("(float[6] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }"))
    with pytest.raises(NotOneLibrary, match="is not one native function: it is made for the values of 's'") as caught:
        _ = compiled.library
    assert "from_onnx(model, values={'s': …})" in str(caught.value)


def counting(made: list[object]):
    def make(imported):
        made.append(imported)
        return interpreted(imported)

    return make


def test_a_value_that_is_needed_makes_a_variant_which_is_kept():
    made: list[object] = []
    graph = model("(float[6] x, int64[2] shape) => (float[a, b] y) { y = Reshape(x, shape) }")
    compiled = CompiledModel(graph, make_runner=counting(made))
    x = random(6)
    assert made == []
    for shape in ([2, 3], [3, -1], [2, 3], [3, -1]):
        np.testing.assert_array_equal(compiled(x, np.array(shape)), x.reshape(shape))
    assert len(made) == 2


def test_a_value_may_be_given_beforehand():
    graph = model("(float[6] x, int64[2] shape) => (float[a, b] y) { y = Reshape(x, shape) }")
    compiled = CompiledModel(graph, values={"shape": [2, 3]}, make_runner=interpreted)
    assert compiled.input_names == ["x"]
    assert compiled(random(6)).shape == (2, 3)


@pytest.mark.parametrize(
    ("args", "named", "text"),
    [
        ((), {}, "the inputs 'x', 'w' are not given"),
        (([[1, 2, 3]],), {}, "the input 'w' is not given"),
        ((1, 2, 3), {}, "3 inputs are given, and the model has 2"),
        ((np.zeros((1, 3), "f"),), {"x": 1}, "the input 'x' is given twice"),
        ((np.zeros((1, 3), "f"),), {"v": 1}, "the model has no input 'v'"),
        ((np.zeros((1, 3), "d"), np.zeros(3, "f")), {}, r"'x' has dtype float64, expected float32"),
        ((np.zeros((1, 4), "f"), np.zeros(3, "f")), {}, r"'x' has shape \(1, 4\), expected"),
        ((np.zeros(3, "f"), np.zeros(3, "f")), {}, r"'x' has 1 dimension\(s\), expected 2"),
        (("no", np.zeros(3, "f")), {}, r"'x' is no tensor of float32"),
    ],
)
def test_wrong_inputs_are_refused(args, named, text):
    with pytest.raises(InputMismatch, match=text):
        CompiledModel(model(SCALED), make_runner=interpreted)(*args, **named)


def test_a_size_that_is_two_numbers_at_once():
    graph = model("(float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }")
    with pytest.raises(InputMismatch, match=r"the size n is 2 by axis 0 of 'x', and 3 by axis 0 of 'z'"):
        CompiledModel(graph, make_runner=interpreted)(np.zeros(2, "f"), np.zeros(3, "f"))


def test_a_value_that_depends_on_no_input_is_an_error_at_once():
    # The count of random numbers' non-zeros is nobody's input: only the shape is asked for here, which is known.
    graph = model(
        """(float[4] x) => (float[k] y) {
            n = NonZero(x) first = Constant<value_ints=[0]>() t = Squeeze(n, first) y = Tile(x, t)
        }"""
    )
    compiled = CompiledModel(graph, make_runner=interpreted)
    assert compiled(np.float32([0, 0, 5, 0])).shape == (8,)
    assert issubclass(ValueNeeded, ValueError)


def test_types_that_are_carried_come_back_as_they_are():
    graph = model(
        """(float[5] x) => (int4[5] a, float4e2m1[5] b, float8e4m3fnuz[5] c) {
            a = Cast<to = 22>(x)
            b = Cast<to = 23>(x)
            c = Cast<to = 18>(x)
        }""",
        opset=24,
    )
    x = np.float32([-8, -1.4, 0, 2.6, 7])
    a, b, c = CompiledModel(graph, make_runner=interpreted)(x)
    assert (a.dtype, b.dtype, c.dtype) == (ml_dtypes.int4, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fnuz)
    np.testing.assert_array_equal(a.astype(int), [-8, -1, 0, 2, 7])
    np.testing.assert_array_equal(b.astype("f"), np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype("f"))
    np.testing.assert_array_equal(c.astype("f"), x.astype(ml_dtypes.float8_e4m3fnuz).astype("f"))


def test_a_profile_has_the_sizes_that_the_run_finds():
    graph = model("(float[6] x) => (float[1, k] y) { at = NonZero(x) g = Gather(x, at) y = Exp(g) }")
    found = CompiledModel(graph).profile(np.array([0, 3, 0, 5, 0, 1], "f"))
    assert found.rows[-1].bytes_written == 12
    assert any(value.shape in ((3, 1), (1, 3), (3,)) for value in found.values.values())
