"""Graph operators of pictures and detectors: types, kernels against references, sizes that are expressions."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te
from loopwright.relay.errors import CannotCompile, TypeMismatch
from loopwright.relay.infer_type import infer
from loopwright.relay.interpreter import evaluate
from loopwright.relay.lower.lower_function import lower_function
from loopwright.relay.nested import flat
from loopwright.relay.types import type_text
from loopwright.topi.registry import OPERATORS


def values(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def function(build, arrays):
    variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(arrays)]
    body = build(*variables)
    made = relay.Function(variables, body.astuple() if isinstance(body, relay.TupleWrapper) else body)
    infer(made)
    return made


def sample(name, number=0, arrays=True):
    """The arrays of a sample of an operator of topi, or what else it is called with."""
    args = list(OPERATORS[name].samples())[number].args
    return [arg for arg in args if isinstance(arg, np.ndarray) is arrays]


PICTURE = values(1, 2, 5, 7)
ROIS = np.array([[0, 1.25, 0.5, 4.25, 3.5], [0, 0.25, 1.25, 6.25, 4.5]], "float32")
BOXES, SCORES = sample("vision.all_class_non_max_suppression")
PRIOR = sample("vision.multibox_transform_loc")

# What is called, on what, and the type of the result.
CALLS = {
    "resize1d": (lambda x: relay.image.resize1d(x, (9,)), [values(1, 2, 5)], "Tensor[(1, 2, 9), float32]"),
    "resize2d": (lambda x: relay.image.resize2d(x, (9, 4)), [PICTURE], "Tensor[(1, 2, 9, 4), float32]"),
    "resize2d int": (
        lambda x: relay.image.resize2d(x, 4, layout="NHWC", method="cubic", cubic_alpha=-0.75),
        [values(1, 5, 7, 2)],
        "Tensor[(1, 4, 4, 2), float32]",
    ),
    "resize2d roi": (
        lambda x: relay.image.resize2d(
            x, (3, 4), (0.1, 0.2, 1.2, 0.8), coordinate_transformation_mode="tf_crop_and_resize", out_dtype="float64"
        ),
        [PICTURE],
        "Tensor[(1, 2, 3, 4), float64]",
    ),
    "resize2d constant": (
        lambda x: relay.image.resize2d(x, relay.const([9, 4]), method="nearest_neighbor"),
        [PICTURE],
        "Tensor[(1, 2, 9, 4), float32]",
    ),
    "resize3d": (
        lambda x: relay.image.resize3d(x, (2, 3, 5), method="nearest_neighbor"),
        [values(1, 2, 3, 4, 5)],
        "Tensor[(1, 2, 2, 3, 5), float32]",
    ),
    "crop_and_resize": (
        lambda x, b, i: relay.image.crop_and_resize(x, b, i, (3, 4)),
        [PICTURE, np.array([[0.1, 0.2, 0.8, 1.3]], "float32"), np.array([0], "int32")],
        "Tensor[(1, 2, 3, 4), float32]",
    ),
    "dilation2d": (
        lambda x, w: relay.image.dilation2d(x, w, padding=[1, 1], dilations=[1, 1]),
        [PICTURE, values(2, 3, 3)],
        "Tensor[(1, 2, 5, 7), float32]",
    ),
    "dilation2d nhwc": (
        lambda x, w: relay.image.dilation2d(x, w, strides=[2, 1], data_layout="NHWC", kernel_layout="HWI"),
        [values(1, 5, 7, 2), values(3, 3, 2)],
        "Tensor[(1, 2, 5, 2), float32]",
    ),
    "affine_grid": (
        lambda x: relay.image.affine_grid(x, (3, 4)),
        [values(2, 2, 3)],
        "Tensor[(2, 2, 3, 4), float32]",
    ),
    "grid_sample": (
        lambda x, g: relay.image.grid_sample(x, g, padding_mode="border"),
        [PICTURE, values(1, 2, 3, 4)],
        "Tensor[(1, 2, 3, 4), float32]",
    ),
    "multibox_prior": (
        lambda x: relay.vision.multibox_prior(x, sizes=(0.5, 0.25), ratios=(1.0, 2.0)),
        [values(1, 2, 2, 3)],
        "Tensor[(1, 18, 4), float32]",
    ),
    "multibox_transform_loc": (
        lambda *x: relay.vision.multibox_transform_loc(*x, threshold=0.02),
        PRIOR,
        "(Tensor[(2, 7, 6), float32], Tensor[(2), int32])",
    ),
    "get_valid_counts": (
        lambda x: relay.vision.get_valid_counts(x, 0.01),
        sample("vision.get_valid_counts"),
        "(Tensor[(3), int32], Tensor[(3, 17, 6), float32], Tensor[(3, 17), int32])",
    ),
    "non_max_suppression": (
        lambda x, n, i: relay.vision.non_max_suppression(x, n, i, 4, 0.317),
        sample("vision.non_max_suppression"),
        "(Tensor[(2, 23), int32], Tensor[(2, 1), int32])",
    ),
    "non_max_suppression boxes": (
        lambda x, n, i: relay.vision.non_max_suppression(x, n, i, iou_threshold=0.317, return_indices=False),
        sample("vision.non_max_suppression"),
        "Tensor[(2, 23, 6), float32]",
    ),
    "all_class_non_max_suppression": (
        lambda b, s, m: relay.vision.all_class_non_max_suppression(b, s, m, 0.317, 0.01),
        [BOXES, SCORES, np.array([2])],
        "(Tensor[(78, 3), int64], Tensor[(1), int64])",
    ),
    "all_class_non_max_suppression tensorflow": (
        lambda b, s: relay.vision.all_class_non_max_suppression(b, s, -1, 0.317, 0.01, "tensorflow"),
        [BOXES, SCORES],
        "(Tensor[(2, 39, 2), int64], Tensor[(2, 39), float32], Tensor[(2), int64])",
    ),
    "regular_non_max_suppression": (
        lambda b, s: relay.vision.regular_non_max_suppression(b, s, 5, 7, 3, 0.317, 0.0103),
        sample("vision.regular_non_max_suppression"),
        "(Tensor[(2, 7, 4), float32], Tensor[(2, 7), float32], Tensor[(2, 7), float32], Tensor[(2), float32])",
    ),
    "roi_align": (
        lambda x, r: relay.vision.roi_align(x, r, (2, 3), 0.5, sample_ratio=2),
        [PICTURE, ROIS],
        "Tensor[(2, 2, 2, 3), float32]",
    ),
    "roi_align nhwc": (
        lambda x, r: relay.vision.roi_align(x, r, (2, 3), 0.5, layout="NHWC", mode="max"),
        [values(1, 5, 7, 2), ROIS],
        "Tensor[(2, 2, 3, 2), float32]",
    ),
    "roi_pool": (
        lambda x, r: relay.vision.roi_pool(x, r, (2, 3), 0.5),
        [PICTURE, ROIS],
        "Tensor[(2, 2, 2, 3), float32]",
    ),
    "proposal": (
        lambda *x: relay.vision.proposal(*x, *sample("vision.proposal", arrays=False)),
        sample("vision.proposal"),
        "Tensor[(12, 5), float32]",
    ),
    "yolo_reorg": (lambda x: relay.vision.yolo_reorg(x, 2), [values(1, 4, 2, 6)], "Tensor[(1, 16, 1, 3), float32]"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CALLS)
def test_type_kernel_and_reference_agree(case):
    build, arrays, wanted = CALLS[case]
    made = function(build, arrays)
    assert type_text(made.body.checked_type) == wanted
    expected = flat(evaluate(made, arrays))
    lowered = lower_function(made)
    results = [np.zeros(of.concrete_shape, str(of.dtype)) for of in lowered.outputs]
    lw.build(lowered.func, target="llvm")(*arrays, *results)
    for result, exact in zip(results, expected, strict=True):
        assert result.dtype == exact.dtype
        # The kernels are held to bounds of their own in tests/topi; here it is that they are called as was meant.
        assert np.allclose(result, exact, rtol=0, atol=64 * np.finfo("float32").eps * max(1, np.abs(exact).max()))


def test_every_operator_is_tried():
    tried = {f"{space}.{case.split()[0]}" for case in CALLS for space in ("image", "vision")}
    declared = {name for name in relay.op.list_op_names() if name.startswith(("image.", "vision."))}
    assert sorted(declared - tried) == []


def test_a_size_that_is_an_expression():
    size = np.array([9, 4])
    made = function(lambda x, s: relay.image.resize2d(x, s, method="nearest_neighbor"), [PICTURE, size])
    assert type_text(made.body.checked_type) == "Tensor[(1, 2, ?, ?), float32]"
    plain = function(lambda x: relay.image.resize2d(x, (9, 4), method="nearest_neighbor"), [PICTURE])
    assert np.array_equal(evaluate(made, [PICTURE, size]), evaluate(plain, [PICTURE]))
    with pytest.raises(CannotCompile, match=r"dyn.image.resize2d: the size is known only when the program runs"):
        lower_function(made)


def test_sizes_that_are_no_numbers():
    n = te.size_var("n")
    x = relay.var("x", shape=(n, 3, relay.AnyDim(), 8))
    assert type_text(infer(relay.image.resize2d(x, (4, 5)))) == "Tensor[(n, 3, 4, 5), float32]"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda x: relay.image.resize2d(x, (4, 5), method="best"), "unable to show the following types match"),
        (lambda x: relay.image.resize2d(x, (4, 5, 6)), "unable to show the following types match"),
        (lambda x: relay.image.resize2d(x, (4, 5), roi=x), "the region of interest is an expression"),
        (lambda x: relay.vision.roi_align(x, x, (1, 1), 1.0, layout="CHWN"), "layout CHWN is not known"),
        (lambda x: relay.vision.roi_pool(x, x, (1, 1), 1.0, layout="NHWC"), "layout NHWC is not known"),
        (lambda x: relay.image.dilation2d(x, x, kernel_layout="HWI"), "layouts NCHW and HWI are not known"),
    ],
)
def test_types_that_do_not_fit(build, words):
    with pytest.raises(TypeMismatch, match=words):
        infer(build(relay.var("x", shape=(1, 2, 5, 7))))
