"""Pictures: sizes that are variables, coordinates that are exact, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.parts.choices import UnknownChoice
from loopwright.topi.registry import OPERATORS
from loopwright.topi.testing import image as meaning

X = np.random.default_rng(0).uniform(-1, 1, (1, 2, 6, 7)).astype("float32")


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "pytorch_half_pixel"])
def test_sizes_that_are_variables(mode):
    h, w, wanted = te.size_var("h"), te.size_var("w"), te.size_var("wanted")
    data = te.placeholder((1, 2, h, w), name="data")
    out = topi.image.resize2d(data, None, (wanted, 1), "NCHW", "linear", mode)
    result = np.zeros((1, 2, 9, 1), "float32")
    lw.build([data, out], target="llvm")(X, result)
    exact = meaning.resize(X, None, (9, 1), "NCHW", "linear", mode)
    assert (np.abs(result - exact) <= meaning.linear_bound(2)([X], exact)).all()


def test_grids_of_any_size():
    n, h = te.size_var("n"), te.size_var("h")
    data, grid = te.placeholder((n, 2, h, 7), name="data"), te.placeholder((n, 2, h, 3), name="grid")
    out = topi.image.grid_sample(data, grid, "nearest", padding_mode="reflection")
    places = np.random.default_rng(1).uniform(-2, 2, (1, 2, 6, 3)).astype("float32")
    result = np.zeros((1, 2, 6, 3), "float32")
    lw.build([data, grid, out], target="llvm", autosched=True)(X, places, result)
    assert np.array_equal(result, meaning.grid_sample(X, places, "nearest", padding_mode="reflection"))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
def test_reflection_in_an_axis_of_one_pixel_with_dynamic_shapes(method, align_corners):
    h, w = te.size_var("h"), te.size_var("w")
    data, grid = te.placeholder((1, 1, h, w), name="data"), te.placeholder((1, 2, 1, 3), name="grid")
    out = topi.image.grid_sample(data, grid, method, padding_mode="reflection", align_corners=align_corners)
    sample = lw.build([data, grid, out], target="llvm", autosched=True)
    x = np.arange(1, 6, dtype="float32").reshape(1, 1, 1, 5)
    places = np.array([[0, 0.4, -1.7], [0, -0.6, 2.3]], "float32").reshape(1, 2, 1, 3)
    for image in (x[..., :1], x, x.reshape(1, 1, 5, 1)):
        result = np.zeros((1, 1, 1, 3), "float32")
        sample(np.ascontiguousarray(image), places, result)
        exact = meaning.grid_sample(image, places, method, padding_mode="reflection", align_corners=align_corners)
        assert np.abs(result - exact).max() <= 1e-5


def test_an_affine_grid_of_one_location_with_dynamic_shapes():
    h, w = te.size_var("h"), te.size_var("w")
    theta = te.placeholder((1, 2, 3), name="theta")
    matrix = np.array([[[1, 2, 3], [4, 5, 6]]], "float32")
    result = np.zeros((1, 2, 1, 3), "float32")
    lw.build([theta, topi.image.affine_grid(theta, (h, w))], target="llvm")(matrix, result)
    assert np.array_equal(result, meaning.affine_grid(matrix, (1, 3)))


@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2, 1, 5), (1, 1, 2, 9), (2, 3, 5, 2)])
@pytest.mark.parametrize("mode", ["zeros", "border"])
def test_pictures_read_around_their_edges(shape, mode):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, shape).astype("float32")
    places = rng.uniform(-1.6, 1.6, (shape[0], 2, 7, 6)).astype("float32")
    places[:, :, 0] = [-1, 1, 0, -1.25, 1.25, 0.5]  # pixels, the middle between them, just outside
    data, grid = te.placeholder(shape, name="data"), te.placeholder(places.shape, name="grid")
    out = topi.image.grid_sample(data, grid, "bilinear", "NCHW", mode, align_corners=False)
    result = np.zeros((*shape[:2], 7, 6), "float32")
    lw.build([data, grid, out], target="llvm", autosched=True)(x, places, result)
    exact = meaning.grid_sample(x, places, "bilinear", "NCHW", mode, align_corners=False)
    assert np.abs(result - exact).max() <= 1e-5


def test_pixels_outside_the_sample_are_left_out_even_where_they_are_infinite():
    x = np.full((1, 1, 4, 4), np.inf, "float32")
    x[0, 0, 1:3, 1:3] = 1
    places = np.zeros((1, 2, 1, 5), "float32")
    places[0, 0, 0] = [0, 0.1, -0.3, 5, -5]
    data, grid = te.placeholder(x.shape, name="data"), te.placeholder(places.shape, name="grid")
    result = np.zeros((1, 1, 1, 5), "float32")
    lw.build([data, grid, topi.image.grid_sample(data, grid)], target="llvm", autosched=True)(x, places, result)
    assert result.ravel()[:3] == pytest.approx(1) and list(result.ravel()[3:]) == [0, 0]


def test_the_nearest_pixel_has_no_rounding_errors():
    # 7 · (i / 7) is i exactly; in float32, i · (5 / 7) falls below whole numbers.
    data = te.placeholder((1, 1, 1, 250), name="data")
    out = topi.image.resize2d(data, None, (1, 350), "NCHW", "nearest_neighbor", "asymmetric", "floor")
    x = np.arange(250, dtype="float32").reshape(1, 1, 1, 250)
    result = np.zeros((1, 1, 1, 350), "float32")
    lw.build([data, out], target="llvm")(x, result)
    assert result.reshape(-1).tolist() == [i * 250 // 350 for i in range(350)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in sorted(OPERATORS) if name.startswith("image.")])
def test_they_are_scheduled_by_rule(name):
    sample = next(iter(OPERATORS[name].samples()))
    tensors = [te.placeholder(a.shape, str(a.dtype)) for a in sample.args if isinstance(a, np.ndarray)]
    given = iter(tensors)
    out = OPERATORS[name].compute(*[next(given) if isinstance(a, np.ndarray) else a for a in sample.args])
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    results = [np.zeros([int(size) for size in out.shape], str(out.dtype)) for _ in range(2)]
    for result, autosched in zip(results, (False, True), strict=True):
        lw.build([*tensors, out], target="llvm", autosched=autosched)(*arrays, result)
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: topi.image.resize2d(x, None, (4, 4), "CHWN4h"), UnsupportedLayout, "Unsupported layout CHWN4h"),
        (lambda x: topi.image.resize2d(x, None, (4, 4), "NCHW", "best"), UnknownChoice, "method is 'best'"),
        (lambda x: topi.image.resize2d(x, None, 4, "NCHW", "linear", "none"), UnknownChoice, "mode is 'none'"),
        (
            lambda x: topi.image.resize2d(x, None, 4, "NCHW", rounding_method="up"),
            UnknownChoice,
            "rounding_method is 'up'",
        ),
        (lambda x: topi.image.resize2d(x, None, (4,), "NCHW"), InvalidShapeError, "has 1 entries"),
        (
            lambda x: topi.image.resize2d(te.placeholder((1, 2, 0, 3), name="x"), None, (4, 6), "NCHW"),
            InvalidShapeError,
            r"x of shape \(1, 2, 0, 3\) has no pixels, its result of shape \(1, 2, 4, 6\) has",
        ),
        (
            lambda x: topi.image.resize2d(x, (0, 1), 4, "NCHW", "linear", "tf_crop_and_resize"),
            InvalidShapeError,
            "does not have 4 entries",
        ),
        (lambda x: topi.image.grid_sample(x, x, "best"), UnknownChoice, "method is 'best'"),
        (lambda x: topi.image.grid_sample(x, x, layout="NHWC"), UnsupportedLayout, "NHWC"),
        (lambda x: topi.image.crop_and_resize(x, x, x, (2, 2)), InvalidShapeError, "boxes x has shape"),
        (lambda x: topi.image.affine_grid(x, (2, 2)), InvalidShapeError, "of 4 dimensions"),
        (lambda x: topi.image.dilation2d_nchw(x, x, 1, 0, 1), InvalidShapeError, "of 4 dimensions"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((1, 2, 6, 7), name="x"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("old", "new"), [((5, 7), (11, 14)), ((9, 4), (6, 13)), ((1, 1), (3, 5)), ((6, 3), (6, 3))])
@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
def test_lines_that_are_looked_up(old, new, method, mode):
    """By rule, with tables of places and weights, and in two steps: what one expression has, within its rounding."""
    data = te.placeholder((2, 3, *old), name="data")
    out = topi.image.resize2d(data, None, new, "NCHW", method, mode)
    x, result = np.random.default_rng(0).random((2, 3, *old), "float32"), np.zeros((2, 3, *new), "float32")
    lw.build([data, out], autosched=True)(x, result)
    exact = meaning.resize(x, None, new, "NCHW", method, mode)
    bound = meaning.linear_bound(2)([x], exact) if method == "linear" else 0
    assert (np.abs(result - exact) <= bound).all()


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("old", "new"), [(2, 37), (9, 40), (40, 9), (37, 36)])
def test_pixels_that_lie_beside_an_edge_have_no_part_in_it(old, new, mode):
    """Two neighbours are read together: an infinite one must not reach a pixel that does not depend on it."""
    x = np.random.default_rng(0).random((3, 5, old), "float32")
    x[0, :, 1] = x[1, :, -2] = np.inf
    x[2, :, 0], x[2, :, -1] = np.nan, np.inf
    data = te.placeholder(x.shape, name="data")
    result, out = topi.image.resize1d(data, None, (new,), "NCW", "linear", mode), np.empty((3, 5, new), "float32")
    lw.build([data, result], autosched=True)(x, out)
    locations = [meaning.coordinate(mode, i, old, new, None) for i in range(new)]
    pixels = np.floor(locations).astype(int)
    rests = (locations - pixels).astype("float32")
    with np.errstate(invalid="ignore"):
        expected = x[:, :, np.clip(pixels, 0, old - 1)] * (1 - rests) + x[:, :, np.clip(pixels + 1, 0, old - 1)] * rests
    assert np.allclose(out, expected, rtol=1e-5, equal_nan=True)
