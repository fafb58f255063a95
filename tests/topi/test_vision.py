"""Boxes: numbers of them that are variables, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.choices import UnknownChoice, UnsuitableType
from loopwright.topi.registry import OPERATORS


def test_any_number_of_boxes():
    n, b = te.size_var("n"), te.size_var("b")
    data = te.placeholder((b, n, 6), name="data")
    counts, boxes, indices = topi.vision.get_valid_counts(data, 0.01)
    outputs = topi.vision.non_max_suppression(boxes, counts, indices, iou_threshold=0.317)
    x = next(iter(OPERATORS["vision.get_valid_counts"].samples())).args[0]
    results = [np.zeros((3, 17), "int32"), np.zeros((3, 1), "int32")]
    lw.build([data, *outputs], target="llvm")(x, *results)
    expected = OPERATORS["vision.get_valid_counts"].reference(x, 0.01)
    exact = OPERATORS["vision.non_max_suppression"].reference(*[expected[k] for k in (1, 0, 2)], iou_threshold=0.317)
    for result, wanted in zip(results, exact, strict=True):
        assert np.array_equal(result, wanted)


def test_names_are_reached_both_ways():
    assert topi.vision.ssd.multibox_prior is topi.vision.multibox_prior
    assert topi.vision.rcnn.roi_align_nchw is topi.vision.roi_align_nchw


X = te.placeholder((2, 3, 4), name="x")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: topi.vision.get_valid_counts(te.placeholder((3,), name="x")), InvalidShapeError, "of 1 dimensions"),
        (lambda: topi.vision.non_max_suppression(X, te.placeholder((2,)), None), InvalidShapeError, "not given"),
        (
            lambda: topi.vision.all_class_non_max_suppression(X, X, 1, 0.5, 0.5, "caffe"),
            UnknownChoice,
            "output_format is 'caffe'",
        ),
        (
            lambda: topi.vision.all_class_non_max_suppression(X, X, 1, 0.5, 0.5),
            InvalidShapeError,
            "the number of boxes: 3 in boxes, 4 in scores",
        ),
        (
            lambda: topi.vision.all_class_non_max_suppression(X, te.placeholder((2, 5, 3), "float64"), 1, 0.5, 0.5),
            UnsuitableType,
            "boxes are made of float32, scores of float64",
        ),
        (
            lambda: topi.vision.roi_align_nchw(te.placeholder((1, 2, 3, 4)), te.placeholder((1, 5)), 2, 1.0, "mean"),
            UnknownChoice,
            "mode is 'mean'",
        ),
        (
            lambda: topi.vision.reorg(te.placeholder((1, 3, 4, 4)), 2),
            InvalidShapeError,
            "channels 3 is no multiple of 4",
        ),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("most", [3, -1])
@pytest.mark.parametrize("is_open", [False, True])
def test_boxes_of_equal_score_are_found_in_their_order(dtype, most, is_open):
    rng = np.random.default_rng(5)
    count = 331  # several blocks of a row, the last in part
    corner, size = rng.random((1, count, 2)), rng.uniform(0.02, 0.2, (1, count, 2))
    boxes = np.concatenate([corner, corner + size], -1).astype(dtype)
    scores = (rng.integers(-4, 5, (1, 2, count)) / 4).astype(dtype)
    scores[0, 1, ::7] = np.nan
    scores[0, 0, ::9] = -0.0
    n = te.size_var("n") if is_open else count
    inputs = [te.placeholder((1, n, 4), dtype, "boxes"), te.placeholder((1, 2, n), dtype, "scores")]
    rows, total = topi.vision.all_class_non_max_suppression(*inputs, most, 0.2, -0.5)
    found, number = np.zeros((2 * count, 3), "int64"), np.zeros(1, "int64")
    lw.build([*inputs, rows, total], target="llvm")(boxes, scores, found, number)
    reference = OPERATORS["vision.all_class_non_max_suppression"].reference
    expected, exact = reference(boxes, scores, most, 0.2, -0.5)
    assert number[0] == exact[0] > 5
    assert np.array_equal(found, expected)
