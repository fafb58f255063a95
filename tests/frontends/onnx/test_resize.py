"""Resize and Upsample, by relay's operator and by tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.errors import BadNode
from loopwright.frontends.op_errors import OpAttributeInvalid
from loopwright.runtime.errors import LoopwrightError
from tests.frontends.onnx.one_node import compare, one_node
from tests.frontends.onnx.onnx_models import imported, model, random, run

X = random(1, 2, 4, 5)
MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_modes_with_sizes_and_scales(mode):
    for coordinates in MODES:
        options = {"mode": mode, "coordinate_transformation_mode": coordinates, "constant": (2, 3)}
        compare("Resize", [X, None, np.zeros(0, np.float32), np.int64([1, 2, 7, 3])], **options)
        compare("Resize", [X, None, np.float32([1, 1, 0.6, 1.7])], **{**options, "constant": (2,)})


def test_what_the_nearest_place_is():
    for rounding, coordinates in itertools.product(
        ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"], ["half_pixel", "asymmetric", "align_corners"]
    ):
        options = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates, "constant": (3,)}
        compare("Resize", [X, None, None, np.int64([1, 2, 6, 9])], **options)


@pytest.mark.parametrize("options", [{"exclude_outside": 1}, {"antialias": 1}, {"cubic_coeff_a": -0.5}])
def test_cubic_options(options):
    compare("Resize", [X, None, np.float32([1, 1, 0.5, 0.4])], mode="cubic", constant=(2,), **options)


def test_a_region_of_interest():
    roi = np.float32([0, 0, 0.4, 0.6, 1, 1, 0.6, 1.2])
    sizes = np.int64([1, 2, 3, 3])
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 10.0, "constant": (1, 3)}
    compare("Resize", [X, roi, None, sizes], mode="linear", **options)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_ratio_of_the_sides_may_be_kept(policy):
    compare("Resize", [X, None, None, np.int64([7, 8])], axes=[2, 3], keep_aspect_ratio_policy=policy, constant=(3,))


def test_sizes_with_names_stay():
    text = """(float[1, 2, h, w] x) => (float[1, 2, h2, w2] y) {
      scales = Constant<value = float[4] {1, 1, 2, 3}>()
      y = Resize<mode = "linear", coordinate_transformation_mode = "asymmetric">(x, , scales)
    }"""
    graph = model(text)
    assert "image.resize2d" in str(imported(graph).mod["main"])
    fixed = model(text.replace("float[1, 2, h, w]", "float[1, 2, 4, 5]"))
    np.testing.assert_array_equal(run(graph, X), run(fixed, X))


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(opset):
    if opset == 7:
        graph, feed = one_node("Upsample", [X], opset=7, scales=[1.0, 1.0, 2.0, 3.0])
    else:
        graph, feed = one_node("Upsample", [X, np.float32([1, 1, 2, 3])], opset=9, constant=(1,))
    found = CompiledModel(graph, make_runner=interpreted).run(feed)[0]
    np.testing.assert_array_equal(found, X.repeat(2, 2).repeat(3, 3))


def test_what_cannot_be():
    graph, _ = one_node("Resize", [X, None, np.float32([1, 1, 2])], constant=(2,))
    with pytest.raises(BadNode, match="3 scales are given for 4 axes"):
        imported(graph)
    graph, _ = one_node("Resize", [X], opset=13)
    with pytest.raises(BadNode, match="neither scales nor sizes"):
        imported(graph)
    graph, _ = one_node("Resize", [X, None, np.float32([1, 1, 2, 2])], constant=(2,), mode="quintic")
    with pytest.raises(OpAttributeInvalid, match="mode is 'quintic'"):
        imported(graph)


@pytest.mark.parametrize("size", ["[1, 2, 5, 1]", "[n, 2, h, w]"])
@pytest.mark.parametrize("options", ["", ", antialias = 1", ", exclude_outside = 1"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_side_that_shrinks_to_nothing(mode, options, size):
    if mode == "nearest" and options:
        return
    graph = model(f"""(float{size} x) => (float[a, b, c, d] y) {{
      scales = Constant<value = float[4] {{1, 1, 2, 0.5}}>()
      y = Resize<mode = "{mode}"{options}>(x, , scales)
    }}""")
    result = run(graph, np.ones((1, 2, 5, 1), "float32"))
    assert result.shape == (1, 2, 10, 0)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("options", ["", ", antialias = 1", ', coordinate_transformation_mode = "align_corners"'])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_side_without_elements_becomes_nothing_else(mode, options):
    if mode == "nearest" and "antialias" in options:
        return
    text = f"""(float[1, 2, h, 3] x) => (float[a, b, c, d] y, float[e, f, g, i] z) {{
      scales = Constant<value = float[4] {{1, 1, 3, 3}}>()
      y = Resize<mode = "{mode}"{options}>(x, , scales)
      z = GlobalAveragePool(y)
    }}"""
    for graph in (model(text), model(text.replace("h,", "0,"))):
        y, z = CompiledModel(graph).run({"x": np.ones((1, 2, 0, 3), "float32")})
        assert y.shape == (1, 2, 0, 9)
        assert z.shape == (1, 2, 1, 1) and np.isnan(z).all()
    sized = text.replace("float[4] {1, 1, 3, 3}", "int64[4] {1, 2, 4, 6}").replace("(x, , scales)", "(x, , , scales)")
    with pytest.raises(BadNode, match="axis 2 has no elements, and 4 are to be made of them"):
        imported(model(sized.replace("h,", "0,")))
    compiled = CompiledModel(model(sized))
    assert compiled.run({"x": np.ones((1, 2, 2, 3), "float32")})[0].shape == (1, 2, 4, 6)
    with pytest.raises(LoopwrightError, match=r"axis 2 .*(needs it at least 1|has no elements)"):
        compiled.run({"x": np.ones((1, 2, 0, 3), "float32")})


@pytest.mark.parametrize("options", ['mode = "nearest", nearest_mode = "floor"', 'mode = "linear"', 'mode = "cubic"'])
@pytest.mark.parametrize("size", ["5", "w"])
@pytest.mark.parametrize(
    "wanted", ["float[3] {1, 1, 0.3}>(x, , b)", "float[3] {1, 1, 0.2}>(x, , b)", "int64[3] {1, 1, 1}>(x, , , b)"]
)
def test_one_pixel_of_pytorch_half_pixel_is_the_first(wanted, size, options):
    sizes, call = wanted.split(">")
    how = f'{options}, coordinate_transformation_mode = "pytorch_half_pixel"'
    graph = model(f"""(float[1, 1, {size}] x) => (float[1, 1, v] y) {{
      b = Constant<value = {sizes}>()
      y = Resize<{how}>{call}
    }}""")
    x = np.arange(1, 6, dtype="float32").reshape(1, 1, 5)
    np.testing.assert_array_equal(run(graph, x), [[[1]]])
