"""Axes, widths and counts that are inputs of the model: relay has operators that find them when the model runs."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from tests.frontends.onnx.onnx_models import model
from tests.frontends.onnx.strict_reference import reference_of

X = np.random.default_rng(0).integers(-4, 5, (2, 1, 3)).astype("float32")


def vector(*values: int) -> np.ndarray:
    return np.array(values, "int64")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("(float[2,1,3] x, int64[2] a) => (float[r] y) { y = ReduceSum(x, a) }", {"a": vector(0, -1)}),
        ("(float[2,1,3] x, int64[1] a) => (float[r] y) { y = ReduceMax<keepdims = 0>(x, a) }", {"a": vector(2)}),
        ("(float[2,1,3] x, int64[1] a) => (float[r] y) { y = ReduceMean(x, a) }", {"a": vector(0)}),
        ("(float[2,1,3] x, int64[2] a) => (float[r] y) { y = ReduceL2(x, a) }", {"a": vector(0, 2)}),
        ("(float[2,1,3] x, int64[0] a) => (float[r] y) { y = ReduceSumSquare(x, a) }", {"a": vector()}),
        ("(float[2,1,3] x, int64[2] a) => (float[r] y) { y = Unsqueeze(x, a) }", {"a": vector(-1, 1)}),
        ("(float[2,1,3] x, int64[1] a) => (float[r] y) { y = Squeeze(x, a) }", {"a": vector(-2)}),
        (
            "(float[2,1,3] x, int64[1] s, int64[1] e, int64[1] a, int64[1] b) => (float[r] y) "
            "{ y = Slice(x, s, e, a, b) }",
            {"s": vector(2), "e": vector(0), "a": vector(2), "b": vector(-1)},
        ),
        ("(float[2,1,3] x, int64[6] p) => (float[r] y) { y = Pad(x, p) }", {"p": vector(1, 0, 2, 0, 1, 0)}),
        (
            "(float[2,1,3] x, int64[2] p, float v, int64[1] a) => (float[r] y) { y = Pad(x, p, v, a) }",
            {"p": vector(1, 2), "v": np.float32(7), "a": vector(-1)},
        ),
        ("(float[2,1,3] x, int64[2] n) => (float[r] z) { y, z = Split<axis = 2>(x, n) }",
         {"n": vector(1, 2)}),
        ("(float[2,1,3] x, int64[1] t) => (float[r] y) { h = Expand(x, t) y, z = Split<axis = 1, num_outputs = 2>(h) }",
         {"t": vector(1)}),
        ("(float[2,1,3] x, int64[2] n) => (float[r] y) { y = CenterCropPad<axes = [-1, 1]>(x, n) }",
         {"n": vector(1, 4)}),
        ("(float[2,1,3] x, int64[2] n) => (float[r] y) { y = Expand(x, n) }", {"n": vector(5, 1)}),
        ("(float[2,1,3] x, int64[3] n) => (float[r] y) { e = Slice(x, n, n) y = Reshape<allowzero = 1>(e, n) }",
         {"n": vector(0, 0, 0)}),
        ("(float[2,0,3] e, int64[1] a) => (float[r] y) { y = ReduceProd<keepdims = 0>(e, a) }",
         {"e": np.zeros((2, 0, 3), "float32"), "a": vector(-2)}),
        ("(float[2,0,3] e, int64[1] a) => (float[r] y) { y = ReduceMin(e, a) }",
         {"e": np.zeros((2, 0, 3), "float32"), "a": vector(1)}),
        ("(float[2,1,3] x, int64[2] n) => (float[r] y) { m = Reshape(x, n) y = EyeLike<k = 1>(m) }",
         {"n": vector(2, 3)}),
        ("(float[2,1,3] x, int64 k) => (float[r] y) { y = Trilu(x, k) }", {"k": np.int64(1)}),
        ("(int64 b, int64 e, int64 s) => (int64[r] y) { y = Range(b, e, s) }",
         {"b": np.int64(1), "e": np.int64(8), "s": np.int64(3)}),
        ("(float[2,1,3] x, int64[1] k) => (float[r] y) { y, i = TopK(x, k) }", {"k": vector(2)}),
        ("(int64[3] n, int64 d, float[2] v) => (float[r] y) { y = OneHot(n, d, v) }",
         {"n": vector(0, -1, 2), "d": np.int64(4), "v": np.array([0.5, 2], "float32")}),
    ],
)  # fmt: skip
def test_what_is_found_when_the_model_runs(text, given):
    graph = model(text)
    inputs = {value.name: X if value.name == "x" else np.asarray(given[value.name]) for value in graph.graph.input}
    wanted = reference_of(graph, inputs)
    assert wanted.refusal is None
    module, _ = relay.frontend.from_onnx(graph)
    found = relay.create_executor("vm", module).evaluate()(*inputs.values())
    np.testing.assert_array_equal(np.asarray(found), wanted.results[0])


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    """What a model makes of its inputs when nothing but their shapes is known before, and ONNX's reference."""
    graph = model(text)
    wanted = reference_of(graph, {value.name: one for value, one in zip(graph.graph.input, inputs)})
    assert wanted.refusal is None
    module, _ = relay.frontend.from_onnx(graph)
    return [np.asarray(relay.create_executor("vm", module).evaluate()(*inputs)), wanted.results[0]]


PICTURE = np.random.default_rng(1).random((1, 1, 4, 5)).astype("float32")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("options", "by", "values"),
    [
        ("", "scales", np.array([1, 1, 0.6, 2], "float32")),
        ('mode = "linear", antialias = 1', "scales", np.array([1, 1, 0.6, 0.5], "float32")),
        ('mode = "cubic", exclude_outside = 1, coordinate_transformation_mode = "half_pixel_symmetric"', "scales",
         np.array([1, 1, 0.7, 1.3], "float32")),
        ('mode = "linear", coordinate_transformation_mode = "align_corners"', "sizes", vector(1, 1, 7, 1)),
        ('nearest_mode = "ceil", keep_aspect_ratio_policy = "not_larger", axes = [3, 2]', "sizes", vector(7, 9)),
    ],
)  # fmt: skip
def test_resize_to_what_is_found_when_the_model_runs(options, by, values):
    kind, names = ("float", 'x, "", s') if by == "scales" else ("int64", 'x, "", "", s')
    text = f"(float[1,1,4,5] x, {kind}[{len(values)}] s) => (float[a,b,c,d] y) {{ y = Resize<{options}>({names}) }}"
    found, wanted = run(text.replace("<>", ""), PICTURE, values)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_region_that_is_found_when_the_model_runs():
    text = """(float[1,1,4,5] x, float[4] r, int64[2] n) => (float[a,b,c,d] y) {
        y = Resize<mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", axes = [2, 3],
                   extrapolation_value = 9.0>(x, r, "", n) }"""
    found, wanted = run(text, PICTURE, np.array([0.2, 0.4, 1.3, 0.8], "float32"), vector(3, 4))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("align", [0, 1])
def test_an_affine_grid_of_a_size_that_is_found_when_the_model_runs(align):
    theta = np.random.default_rng(2).random((2, 2, 3)).astype("float32")
    text = f"(float[2,2,3] t, int64[4] n) => (float[a,b,c,d] y) {{ y = AffineGrid<align_corners = {align}>(t, n) }}"
    found, wanted = run(text, theta, vector(2, 1, 3, 4))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_blocks_of_an_image_whose_shape_is_found_when_the_model_runs():
    columns = np.arange(2 * 12 * 4, dtype="float32").reshape(2, 12, 4)
    text = """(float[2,12,4] x, int64[2] i, int64[2] b) => (float[a,b,c,d] y) {
        y = Col2Im<strides = [2, 1], pads = [1, 0, 0, 1]>(x, i, b) }"""
    found, wanted = run(text, columns, vector(3, 3), vector(2, 3))
    np.testing.assert_array_equal(found, wanted)


def test_a_fourier_transform_along_an_axis_that_is_found_when_the_model_runs():
    signal = np.random.default_rng(3).random((2, 3, 1)).astype("float32")
    text = '(float[2,3,1] x, int64 a) => (float[i,j,k] y) { y = DFT(x, "", a) }'
    found, wanted = run(text, signal, np.array(-3))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("one", "other"), [((2, 1, 2, 3), (4, 3, 2)), ((2, 1, 2, 3), (3, 2))])
def test_products_of_unknown_sizes(one, other):
    a, b = np.arange(12, dtype="float32").reshape(one), np.arange(np.prod(other), dtype="float32").reshape(other)
    sizes = [",".join(name * array.ndim) for name, array in (("n", a), ("m", b))]
    graph = model(f"(float[{sizes[0]}] a, float[{sizes[1]}] b) => (float[r] y) {{ y = MatMul(a, b) }}")
    module, _ = relay.frontend.from_onnx(graph, {"a": [relay.Any()] * a.ndim, "b": [relay.Any()] * b.ndim})
    found = relay.create_executor("debug", module).evaluate()(a, b)
    np.testing.assert_array_equal(found.numpy(), a @ b)


def test_rows_of_a_loop_whose_sizes_the_first_turn_has():
    graph = model("""(int64 n, float[3] x, int64[1] b, int64[1] e) => (float[r, s] y) {
        y = Loop(n, "")<body: graph = turn (int64 i, bool c) => (bool d, float[t] z) {
            d = Identity(c)
            f = Cast<to = 1>(i)
            part = Slice(x, b, e)
            z = Add(part, f) }> }""")
    module, _ = relay.frontend.from_onnx(graph)
    found = relay.create_executor("debug", module).evaluate()(
        np.array(2), np.array([5, 6, 7], "float32"), vector(1), vector(3)
    )
    np.testing.assert_array_equal(found.numpy(), [[6, 7], [7, 8]])
