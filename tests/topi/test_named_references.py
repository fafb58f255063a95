"""The references of operators under the names that scripts for TVM call."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.topi import testing

rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.standard_normal(shape).astype("float32")


def test_slices():
    x = numbers(5, 6)
    assert np.array_equal(testing.strided_slice_python(x, [1, 5], [4, 0], [1, -2]), x[1:4, 5:0:-2])
    assert np.array_equal(testing.strided_slice_python(x, [1], [3], [1], "size", [1]), x[:, 1:4])
    expected = x.copy()
    expected[1:4, ::2] = 7
    got = testing.strided_set_python(x, np.full((3, 3), 7, "float32"), [1, 0], [4, 6], [1, 2])
    assert np.array_equal(got, expected)


def test_indices():
    x = numbers(3, 4)
    chosen = np.array([[0, 3, 1], [2, 2, 0], [1, 0, 3]])
    assert np.array_equal(testing.gather_python(x, 1, chosen), np.take_along_axis(x, chosen, 1))
    assert np.array_equal(testing.gather_nd_python(x, np.array([[0, 2], [3, 1]])), x[[0, 2], [3, 1]])
    hot = testing.one_hot(np.array([0, 2]), 1, 0, 3, -1, "int32")
    assert hot.tolist() == [[1, 0, 0], [0, 0, 1]]
    masked = testing.sequence_mask(numbers(3, 2), np.array([1, 2]), 0.0, 0)
    assert (masked[1:, 0] == 0).all() and masked[2, 1] == 0 and masked[1, 1] != 0
    assert np.array_equal(testing.matrix_set_diag(np.zeros((2, 2)), np.array([5, 6])), np.diag([5, 6]))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_and_space(mode):
    x = numbers(2, 8, 3, 4)
    assert testing.depth_to_space_python(x, 2, mode).shape == (2, 2, 6, 8)
    if mode == "DCR":
        assert np.array_equal(testing.space_to_depth_python(testing.depth_to_space_python(x, 2), 2), x)
    batches = testing.space_to_batch_nd_python(x[:, 0], [3, 2], [0, 0], [0, 0])
    assert batches.shape == (12, 1, 2)
    assert np.array_equal(testing.batch_to_space_nd_python(batches, [3, 2], [0, 0], [0, 0]), x[:, 0])


def test_pictures():
    x = numbers(1, 2, 4, 5)
    line, block = numbers(1, 2, 5), numbers(1, 2, 3, 4, 5)
    assert np.allclose(testing.resize2d_python(x, (1, 1)), x)
    assert testing.resize2d_python(x, (2, 1.5), "NCHW", "bilinear", "half_pixel").shape == (1, 2, 8, 8)
    assert np.allclose(testing.resize1d_python(line, (1,)), line)
    assert np.allclose(testing.resize3d_python(block, (1, 1, 1)), block)
    nearest = testing.resize2d_python(x, (2, 2), "NCHW", "nearest_neighbor", "asymmetric")
    assert np.array_equal(nearest, x.repeat(2, 2).repeat(2, 3))
    whole = np.array([[0.0, 0.0, 1.0, 1.0]], "float32")
    assert np.allclose(testing.crop_and_resize_python(x, whole, np.array([0]), (4, 5), "NCHW"), x, atol=1e-6)
    grid = testing.affine_grid_python(np.array([[[1.0, 0, 0], [0, 1, 0]]]), (4, 5))
    assert np.allclose(testing.grid_sample_python(x, grid), x, atol=1e-6)
    assert testing.reorg_python(numbers(1, 4, 4, 4), 2).shape == (1, 16, 2, 2)


def test_regions():
    x, rois = numbers(1, 3, 8, 8), np.array([[0, 0, 0, 7, 7]], "float32")
    assert testing.roi_pool_nchw_python(x, rois, 1, 1.0).ravel().tolist() == x.max((0, 2, 3)).tolist()
    first = testing.roi_align_nchw_python(x, rois, 2, 1.0, 2, "avg")
    last = testing.roi_align_nhwc_python(x.transpose(0, 2, 3, 1), rois, 2, 1.0, 2)
    assert np.allclose(first, last.transpose(0, 3, 1, 2))


def test_gradients_of_pooling():
    x = np.array([[[[1.0, 5.0], [2.0, 3.0]]]], "float32")
    grad = testing.pool_grad_nchw(x, np.full((1, 1, 1, 1), 8.0), (2, 2), (2, 2), (0, 0, 0, 0), "max", False)
    assert grad.tolist() == [[[[0, 8], [0, 0]]]]
    mean = testing.pool_grad_nchw(x, np.full((1, 1, 1, 1), 8.0), (2, 2), (2, 2), (0, 0, 0, 0), "avg", False)
    assert (mean == 2).all()


def test_convolutions():
    x, w = numbers(1, 4, 9), numbers(6, 4, 3)
    assert np.allclose(testing.group_conv1d_ncw_python(x, w, 2, 1, 1, 1), testing.conv1d_ncw_python(x, w, 2, 1, 1))
    halves = testing.group_conv1d_ncw_python(x, w[:, :2], 1, 0, 1, 2)
    assert np.allclose(halves[:, :3], testing.conv1d_ncw_python(x[:, :2], w[:3, :2], 1, 0, 1))
    assert testing.group_conv1d_transpose_ncw_python(x, numbers(4, 3, 3), 2, 1, 1, 2).shape == (1, 6, 18)
    picture, kernel = numbers(1, 5, 6, 3), numbers(3, 3, 2, 3)  # HWOI
    got = testing.conv2d_transpose_nhwc_python(picture, kernel, "HWOI", 2, 1, output_padding=(1, 1))
    first = picture.transpose(0, 3, 1, 2)
    plain = testing.conv2d_transpose_nchw_python(first, kernel.transpose(3, 2, 0, 1), 2, 1, (1, 1))
    assert np.allclose(got, plain.transpose(0, 2, 3, 1))
    data, offsets, weights = numbers(1, 4, 4, 2), np.zeros((1, 4, 4, 18), "float32"), numbers(3, 3, 2, 3)
    moved = testing.deformable_conv2d_nhwc_python(data, offsets, weights, (1, 1), (1, 1), (1, 1), 1, 1)
    assert np.allclose(moved, testing.conv2d_nhwc_python(data, weights, 1, 1), atol=1e-5)


def test_blocks_of_channels():
    x, w = numbers(1, 8, 5, 5), numbers(8, 1, 3, 3)
    blocked = x.reshape(1, 2, 4, 5, 5).transpose(0, 1, 3, 4, 2)
    kernel = w.reshape(2, 4, 1, 1, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    got = testing.depthwise_conv2d_python_nchwc(blocked, kernel, 1, 1)
    plain = testing.depthwise_conv2d_python_nchw(x, w, 1, 1)
    assert np.allclose(got.transpose(0, 1, 4, 2, 3).reshape(plain.shape), plain)


def test_places_slices_and_spectra():
    assert testing.searchsorted_ref(np.array([1, 3, 5]), np.array([3, 6]), True, "int32").tolist() == [2, 3]
    x = numbers(2, 12)
    assert (testing.slice_axis_python(x, -1, 2, -3) == x[:, 2:-3]).all()
    assert testing.stft_python(x, 4, 2, 4, np.ones(4), False, True).shape == (2, 3, 5, 2)


def test_a_window_without_a_cell_of_the_data():
    x = np.ones((1, 1, 4, 4), "float32")
    args = (2, 2), (2, 2), (1, 1), (0, 0), (2, 2)
    assert testing.poolnd_python(x, *args, "max")[0, 0].tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    grad = testing.pool_grad_nchw(x, np.ones((1, 1, 3, 3)), (2, 2), (2, 2), (0, 0, 2, 2), "max", False)
    assert grad.sum() == 4


def test_gradients_of_weights():
    x, grad = numbers(1, 2, 4, 4), numbers(1, 3, 4, 4)
    weight = testing.conv2d_backward_weight_python(grad, x, (1, 1), (1, 1), (0, 0), channels=3)
    assert np.allclose(weight[:, :, 0, 0], np.einsum("nohw,nihw->oi", grad, x), atol=1e-4)
