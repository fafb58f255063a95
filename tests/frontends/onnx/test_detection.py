"""NonMaxSuppression, RoiAlign, MaxRoiPool, GridSample, AffineGrid."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.op_errors import OpAttributeUnImplemented
from tests.frontends.onnx.one_node import compare, one_node
from tests.frontends.onnx.onnx_models import imported, random

ROIS = np.float32([[0, 0, 5, 5], [1, 2, 8, 7], [3, 3, 3.5, 3.25]])


@pytest.mark.parametrize("centre", [0, 1])
def test_the_best_boxes(centre):
    generator = np.random.default_rng(1)
    boxes = generator.uniform(0, 1, (2, 9, 4)).astype(np.float32)
    scores = generator.uniform(0, 1, (2, 2, 9)).astype(np.float32)
    limits = [np.int64([3]), np.float32([0.4]), np.float32([0.3])]
    compare("NonMaxSuppression", [boxes, scores, *limits], center_point_box=centre)


def test_no_boxes_are_wanted():
    graph, feed = one_node("NonMaxSuppression", [np.zeros((1, 3, 4), np.float32), np.ones((1, 1, 3), np.float32)])
    assert CompiledModel(graph, make_runner=interpreted).run(feed)[0].shape == (0, 3)


@pytest.mark.parametrize("pixels", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("mode", "ratio"), [("avg", 0), ("avg", 2), ("max", 2)])
def test_regions_brought_to_one_size(pixels, mode, ratio):
    options = {"mode": mode, "sampling_ratio": ratio, "coordinate_transformation_mode": pixels, "spatial_scale": 0.75}
    x = random(2, 2, 7, 8)
    compare(
        "RoiAlign", [x, ROIS, np.int64([0, 1, 0])], output_height=2, output_width=3, rtol=1e-4, atol=1e-5, **options
    )


def test_the_greatest_of_as_many_samples_as_there_are_pixels_is_refused():
    graph, _ = one_node("RoiAlign", [random(2, 2, 7, 8), ROIS, np.int64([0, 1, 0])], mode="max")
    with pytest.raises(OpAttributeUnImplemented, match="mode max with as many samples"):
        imported(graph)


def test_regions_by_their_greatest_pixels():
    x = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
    graph, feed = one_node("MaxRoiPool", [x, np.float32([[0, 0, 0, 3, 3]])], pooled_shape=[2, 2])
    np.testing.assert_array_equal(CompiledModel(graph, make_runner=interpreted).run(feed)[0], [[[[7, 9], [19, 21]]]])


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_pictures_read_at_places(mode):
    grid = np.random.default_rng(2).uniform(-1.2, 1.2, (1, 2, 3, 2)).astype(np.float32)
    # (ONNX's reference has borders in cubic pictures of its own.)
    for padding in ("zeros", "reflection", *(["border"] if mode != "cubic" else [])):
        compare("GridSample", [random(1, 2, 4, 5), grid], mode=mode, padding_mode=padding, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 2, 3, 1, 4)])
@pytest.mark.parametrize("align", [0, 1])
def test_places_that_matrices_move(size, align):
    count = len(size) - 2
    theta = random(size[0], count, count + 1)
    compare("AffineGrid", [theta, np.int64(size)], constant=(1,), align_corners=align, rtol=1e-4, atol=1e-5)
