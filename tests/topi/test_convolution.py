"""Convolutions against numpy: small integers, so that every type computes them exactly."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.evaluator import evaluate
from loopwright.topi import testing

nn = topi.nn


def integers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).integers(-4, 5, shape).astype(dtype)


def run(out: te.Tensor, inputs: list[te.Tensor], *arrays: np.ndarray) -> np.ndarray:
    result = np.zeros([int(size) for size in out.shape], str(out.dtype))
    evaluate(te.create_prim_func([*inputs, out]), *arrays, result)
    return result


def check(op, data_shape, weight_shape, reference, *args, dtype="float32", **kwargs) -> te.Tensor:
    """`op` of integers is what `reference` makes of the same numbers in 64 bits."""
    data = te.placeholder(data_shape, name="data", dtype=dtype)
    weight = te.placeholder(weight_shape, name="weight", dtype=dtype)
    out = op(data, weight, *args, **kwargs)
    x, w = integers(data_shape, dtype), integers(weight_shape, dtype, 1)
    expected = reference(x.astype("float64"), w.astype("float64"))
    assert tuple(int(size) for size in out.shape) == expected.shape
    assert np.array_equal(run(out, [data, weight], x, w).astype("float64"), expected)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "float16"])
def test_conv2d_of_every_type(dtype):
    def reference(x, w):
        return testing.conv_python(x, w, 1, 1, 1, 1, "NCHW")

    out = check(nn.conv2d_nchw, (1, 2, 5, 6), (3, 2, 3, 3), reference, 1, 1, 1, dtype=dtype)
    assert str(out.dtype) == dtype


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("stride", "padding", "dilation"),
    [(1, 0, 1), (2, 1, 1), (1, "SAME", 2), ((2, 1), (1, 0, 2, 3), (1, 2)), (3, "VALID", 1)],
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
def test_conv2d_in_every_layout(layout, stride, padding, dilation):
    sizes = {"N": 2, "C": 3, "H": 7, "W": 6}
    kernel = {"O": 4, "I": 3, "H": 3, "W": 2}
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"

    def reference(x, w):
        return testing.conv_python(x, w, stride, padding, dilation, 1, layout, kernel_layout)

    named = {"NCHW": nn.conv2d_nchw, "NHWC": nn.conv2d_nhwc, "HWCN": nn.conv2d_hwcn}[layout]
    data, weight = tuple(sizes[a] for a in layout), tuple(kernel[a] for a in kernel_layout)
    out = check(named, data, weight, reference, stride, padding, dilation)
    assert out.op.name == out.op.tag == f"conv2d_{layout.lower()}"


def test_conv2d_takes_the_layouts_of_its_arguments():
    def reference(x, w):
        return testing.conv_python(x, w, 1, 1, 1, 1, "NHWC", "OIHW")

    check(nn.conv2d, (1, 5, 5, 2), (3, 2, 3, 3), reference, 1, 1, 1, data_layout="NHWC", kernel_layout="OIHW")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_groups(layout, groups):
    def reference(x, w):
        return testing.conv_python(x, w, 1, 1, 1, groups, layout)

    data = (1, 6, 4, 5) if layout == "NCHW" else (1, 4, 5, 6)
    weight = (12, 6 // groups, 3, 3) if layout == "NCHW" else (3, 3, 6 // groups, 12)
    op = nn.group_conv2d_nchw if layout == "NCHW" else nn.group_conv2d_nhwc
    check(op, data, weight, reference, 1, 1, 1, groups)


@pytest.mark.parametrize("op", ["conv1d_ncw", "conv1d_nwc", "group_conv1d_ncw", "group_conv1d_nwc"])
def test_conv1d(op):
    groups = 2 if op.startswith("group") else 1
    layout = op[-3:].upper()
    data = (2, 4, 9) if layout == "NCW" else (2, 9, 4)
    weight = (6, 4 // groups, 3) if layout == "NCW" else (3, 4 // groups, 6)

    def reference(x, w):
        return testing.conv_python(x, w, 2, "SAME", 2, groups, layout)

    more = (groups,) if groups > 1 else ()
    check(getattr(nn, op), data, weight, reference, 2, "SAME", 2, *more)


def test_conv1d_is_valid_by_default():
    check(nn.conv1d, (1, 2, 9), (3, 2, 3), lambda x, w: testing.conv1d_ncw_python(x, w, 1, 0, 1))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
def test_conv3d(layout, groups):
    data = (1, 4, 3, 4, 5) if layout == "NCDHW" else (1, 3, 4, 5, 4)
    weight = (2, 4 // groups, 2, 3, 3) if layout == "NCDHW" else (2, 3, 3, 4 // groups, 2)

    def reference(x, w):
        return testing.conv_python(x, w, (1, 2, 1), 1, 1, groups, layout)

    op = nn.conv3d_ncdhw if layout == "NCDHW" else nn.conv3d_ndhwc
    check(op, data, weight, reference, (1, 2, 1), 1, 1, groups)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("multiplier", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, (0, 1, 1, 0), 1), (1, 2, 2)])
def test_depthwise(multiplier, stride, padding, dilation):
    def nchw(x, w):
        return testing.depthwise_conv2d_python_nchw(x, w, stride, padding, dilation)

    def nhwc(x, w):
        return testing.depthwise_conv2d_python_nhwc(x, w, stride, padding, dilation)

    def hwio(x, w):
        return testing.depthwise_conv2d_python_nhwc(x, w.transpose(0, 1, 3, 2), stride, padding, dilation)

    more = (stride, padding, dilation)
    check(nn.depthwise_conv2d_nchw, (2, 3, 6, 7), (3, multiplier, 3, 3), nchw, *more)
    check(nn.depthwise_conv2d_nhwc, (2, 6, 7, 3), (3, 3, 3, multiplier), nhwc, *more)
    check(nn.depthwise_conv2d_nhwc, (2, 6, 7, 3), (3, 3, multiplier, 3), hwio, *more, kernel_layout="HWIO")


def blocked(array: np.ndarray, block: int) -> np.ndarray:
    n, c, h, w = array.shape
    return np.ascontiguousarray(array.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2))


def unblocked(array: np.ndarray) -> np.ndarray:
    n, chunks, h, w, block = array.shape
    return array.transpose(0, 1, 4, 2, 3).reshape(n, chunks * block, h, w)


@pytest.mark.parametrize("groups", [1, 2])
def test_blocked_channels(groups):
    def reference(x, w):
        o, i, h, k, b, f = w.shape
        plain = w.transpose(0, 5, 1, 4, 2, 3).reshape(o * f, i * b, h, k)
        return blocked(testing.conv_python(unblocked(x), plain, 2, 1, 1, groups), f)

    check(nn.conv2d_NCHWc, (1, 2, 5, 6, 4), (4, 2 // groups, 3, 3, 4, 3), reference, 2, 1, 1, "NCHW4c", "NCHW3c")


def test_blocked_channels_for_dot_products():
    data = te.placeholder((1, 2, 5, 6, 8), name="data", dtype="uint8")
    weight = te.placeholder((2, 2, 3, 3, 2, 16, 4), name="weight", dtype="int8")
    out = nn.conv2d_NCHWc_int8(data, weight, 1, 1, 1, "NCHW8c", "NCHW16c")
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 5, 6, 8)).astype("uint8")
    w = np.random.default_rng(1).integers(-128, 128, (2, 2, 3, 3, 2, 16, 4)).astype("int8")
    plain = w.transpose(0, 5, 1, 4, 6, 2, 3).reshape(32, 16, 3, 3)
    expected = blocked(testing.conv_python(unblocked(x).astype("int64"), plain.astype("int64"), 1, 1), 16)
    assert np.array_equal(run(out, [data, weight], x, w), expected)
    assert str(out.dtype) == "int32"


@pytest.mark.parametrize(("features", "block", "out_block"), [(8, 4, 4), (8, 4, 2), (16, 4, 8)])
def test_depthwise_of_blocked_channels(features, block, out_block):
    def reference(x, w):
        plain = w.transpose(0, 5, 1, 4, 2, 3).reshape(8, features // 8, 3, 3)
        return blocked(testing.depthwise_conv2d_python_nchw(unblocked(x), plain, 1, 1), out_block)

    shapes = (1, 8 // block, 5, 6, block), (features // out_block, 1, 3, 3, 1, out_block)
    check(nn.depthwise_conv2d_NCHWc, *shapes, reference, 1, 1, 1)


def test_unpacking_blocks():
    data = te.placeholder((1, 2, 3, 4, 5), name="data")
    x = integers((1, 2, 3, 4, 5))
    assert np.array_equal(run(nn.unpack_NCHWc_to_nchw(data, "float32"), [data], x), unblocked(x))


@pytest.mark.parametrize("chunks", [2, 5])
def test_a_blocked_depthwise_weight_that_does_not_fit_is_told_with_the_real_channels(chunks: int) -> None:
    data = te.placeholder((1, 4, 8, 8, 4), name="data")
    weight = te.placeholder((chunks, 1, 3, 3, 1, 4), name="weight")
    said = f"output channels are no multiple of the input channels: {chunks * 4} in the weight, 16 in the data"
    with pytest.raises(topi.InvalidShapeError, match=said):
        nn.depthwise_conv2d_NCHWc(data, weight, 1, 1, 1)


@pytest.mark.parametrize(
    ("stride", "padding", "extra"), [(1, 0, 0), (2, 1, 1), (3, (0, 1, 2, 1), (2, 0)), ((1, 2), 1, (0, 1))]
)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed(stride, padding, extra, groups):
    def reference(x, w):
        return testing.conv_transpose_python(x, w, stride, padding, extra, groups)

    op = nn.group_conv2d_transpose_nchw if groups > 1 else nn.conv2d_transpose_nchw
    more = (groups,) if groups > 1 else ()
    check(op, (1, 4, 4, 5), (4, 3, 3, 3), reference, stride, padding, "float32", extra, *more)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_of_other_ranks(groups):
    def reference(x, w):
        return testing.conv_transpose_python(x, w, 2, 1, 1, groups)

    names = ("group_conv1d_transpose_ncw", "group_conv3d_transpose_ncdhw")
    more = (2, 1, "float32", 1, groups)
    check(getattr(nn, names[0]), (2, 4, 5), (4, 3, 3), reference, *more)
    check(getattr(nn, names[1]), (1, 2, 2, 3, 2), (2, 2, 2, 3, 3), reference, *more)


def test_a_zero_padding_adds_no_stage():
    data = te.placeholder((1, 2, 5, 5), name="data")
    weight = te.placeholder((3, 2, 1, 1), name="weight")
    assert nn.conv2d_nchw(data, weight, 1, 0, 1).op.input_tensors[0] is data
    assert nn.conv2d_nchw(data, weight, 1, 1, 1).op.input_tensors[0].op.name == "pad_temp"


def test_the_result_may_be_of_a_wider_type():
    data = te.placeholder((1, 2, 4, 4), name="data", dtype="int8")
    weight = te.placeholder((3, 2, 3, 3), name="weight", dtype="int8")
    out = nn.conv2d_nchw(data, weight, 1, 0, 1, out_dtype="int32")
    x, w = np.full((1, 2, 4, 4), 100, "int8"), np.full((3, 2, 3, 3), 100, "int8")
    assert np.array_equal(run(out, [data, weight], x, w), np.full((1, 3, 2, 2), 180000))


def test_sizes_may_be_known_only_when_it_runs():
    n, h = te.var("n"), te.var("h")
    data = te.placeholder((n, 2, h, 5), name="data")
    weight = te.placeholder((3, 2, 3, 3), name="weight")
    built = lw.build(te.create_prim_func([data, weight, nn.conv2d_nchw(data, weight, 2, 1, 1)]))
    for batch, height in ((1, 3), (2, 6), (0, 4)):
        x, w = integers((batch, 2, height, 5)), integers((3, 2, 3, 3))
        expected = testing.conv2d_nchw_python(x, w, 2, 1)
        out = np.zeros(expected.shape, "float32")
        built(x, w, out)
        assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d, w: nn.conv2d_nchw(d, w(8, 4, 3, 3), 1, 1, 1), topi.InvalidShapeError,
         "conv2d_nchw: input channels differ: 6 in the data, 4 in the weight"),
        (lambda d, w: nn.conv2d_nchw(d, w(8, 6, 3), 1, 1, 1), topi.InvalidShapeError,
         r"weight w has shape \(8, 6, 3\), of 3 dimensions, and layout OIHW has 4"),
        (lambda d, w: nn.conv1d_ncw(d, w(8, 6, 3), 1, 1, 1), topi.InvalidShapeError,
         r"data data has shape \(1, 6, 8, 8\), of 4 dimensions, and layout NCW has 3"),
        (lambda d, w: nn.group_conv2d_nchw(d, w(8, 1, 3, 3), 1, 1, 1, 4), topi.InvalidShapeError,
         "6 input channels are not divisible into 4 groups"),
        (lambda d, w: nn.group_conv2d_nchw(d, w(8, 2, 3, 3), 1, 1, 1, 3), topi.InvalidShapeError,
         "8 output channels are not divisible into 3 groups"),
        (lambda d, w: nn.group_conv2d_nchw(d, w(8, 6, 3, 3), 1, 1, 1, 0), topi.BadWindow, "groups is 0"),
        (lambda d, w: nn.conv2d_nchw(d, w(8, 6, 3, 3), 0, 1, 1), topi.BadWindow, r"stride \(0, 0\) is less than 1"),
        (lambda d, w: nn.conv2d_nchw(d, w(8, 6, 3, 3), 1.5, 1, 1), topi.BadWindow, "stride 1.5 is not made of"),
        (lambda d, w: nn.conv2d_nchw(d, w(8, 6, 3, 3), (1, 1, 1), 1, 1), topi.BadWindow, "has 3 entries"),
        (lambda d, w: nn.conv2d_nchw(d, w(8, 6, 9, 9), 1, 0, 1), topi.BadWindow,
         "a window of 9 does not fit into 8, padding included"),
        (lambda d, w: nn.conv2d(d, w(8, 6, 3, 3), 1, 1, 1, "NCWH"), topi.UnsupportedLayout,
         "Unsupported layout NCWH"),
        (lambda d, w: nn.conv2d(d, w(8, 6, 3), 1, 1, 1, "NCW"), topi.UnsupportedLayout, "Unsupported layout NCW"),
        (lambda d, w: nn.conv2d(d, w(8, 6, 3, 3), 1, 1, 1, "NCHW", "OIXY"), topi.UnsupportedLayout, "'OIXY'"),
        (lambda d, w: nn.depthwise_conv2d_nchw(d, w(5, 1, 3, 3), 1, 1, 1), topi.InvalidShapeError,
         "channels differ: 6 in the data, 5 in the weight"),
        (lambda d, w: nn.depthwise_conv2d_nhwc(d, w(3, 3, 8, 1), 1, 1, 1, "OIHW"), topi.UnsupportedLayout, " OIHW"),
        (lambda d, w: nn.conv2d_transpose_nchw(d, w(6, 8, 3, 3), 2, 1, "float32", 2), topi.BadWindow,
         "output_padding 2 is not less than the stride 2"),
        (lambda d, w: nn.conv2d_transpose_nchw(d, w(6, 8, 3, 3), 2, 3, "float32", 0), topi.BadWindow,
         r"padding \(3, 3\) along H leaves nothing of a window of 3"),
        (lambda d, w: nn.conv2d_transpose_nchw(d, w(5, 8, 3, 3), 2, 1, "float32", 0), topi.InvalidShapeError,
         "input channels differ: 6 in the data, 5 in the weight"),
        (lambda d, w: nn.conv2d_nchw("data", w(6, 8, 3, 3), 2, 1, 1), topi.InvalidShapeError,
         "Input is str 'data', not a tensor"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, message):
    data = te.placeholder((1, 6, 8, 8), name="data")
    with pytest.raises(error, match=message):
        call(data, lambda *shape: te.placeholder(shape, name="w"))
