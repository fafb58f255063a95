"""References of neural networks under the names that scripts know: what the registry holds each operator against."""

from __future__ import annotations

import numpy as np

from loopwright.topi.registry import reference_of
from loopwright.topi.types import Axes, DType, IntPadding, Ints


def softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """exp(x - max) / Σ exp(x - max) along `axis`."""
    return reference_of("nn.softmax", a_np, axis)


def log_softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """The logarithm of softmax."""
    return reference_of("nn.log_softmax", a_np, axis)


def dense(
    x: np.ndarray,
    y: np.ndarray,
    bias: np.ndarray | None = None,
    use_bias: bool = False,
    use_relu: bool = False,
    out_dtype: DType | None = None,
) -> np.ndarray:
    """x times the transposed y, with a bias and a relu where they are asked for."""
    dtype = x.dtype if out_dtype is None else out_dtype
    out = np.matmul(x.astype(dtype), y.astype(dtype).T)
    out = out + bias if use_bias and bias is not None else out
    return np.maximum(out, 0) if use_relu else out


def batch_matmul(
    x: np.ndarray, y: np.ndarray, out_dtype: DType | None = None, trans_x: bool = False, trans_y: bool = True
) -> np.ndarray:
    """One product a batch, the second operand transposed unless told otherwise."""
    dtype = x.dtype if out_dtype is None else out_dtype
    return reference_of("nn.batch_matmul", x.astype(dtype), y.astype(dtype), None, None, trans_x, trans_y)


def layer_norm_python(
    data: np.ndarray, gamma: np.ndarray, beta: np.ndarray, axis: Axes, epsilon: float = 1e-5
) -> np.ndarray:
    """Normalised over `axis`."""
    return reference_of("nn.layer_norm", data, gamma, beta, axis, epsilon)


def instance_norm_python(
    data: np.ndarray, gamma: np.ndarray, beta: np.ndarray, axis: Axes, epsilon: float = 1e-5
) -> np.ndarray:
    """Normalised over `axis`, gamma and beta having its shape."""
    return reference_of("nn.instance_norm", data, gamma, beta, axis, epsilon)


def group_norm_python(
    data: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    num_groups: int,
    channel_axis: int,
    axes: Axes,
    epsilon: float = 1e-5,
) -> np.ndarray:
    """Normalised over `axes` and the channels of each group."""
    return reference_of("nn.group_norm", data, gamma, beta, num_groups, channel_axis, axes, epsilon)


def rms_norm_python(data: np.ndarray, weight: np.ndarray, axis: Axes, epsilon: float = 1e-5) -> np.ndarray:
    """x / sqrt(mean of x² + epsilon) · weight."""
    return reference_of("nn.rms_norm", data, weight, axis, epsilon)


def batch_norm(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, moving_mean: np.ndarray, moving_var: np.ndarray, *rest: object
) -> np.ndarray:
    """The normalised data, the mean and the variance; further arguments as those of topi.nn.batch_norm."""
    return reference_of("nn.batch_norm", x, gamma, beta, moving_mean, moving_var, *rest)


def lrn_python(a_np: np.ndarray, size: int, axis: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    """x / (bias + alpha · Σ x² over the window / size) ** beta."""
    return reference_of("nn.lrn", a_np, size, axis, alpha, beta, bias)


def l2_normalize_python(a_np: np.ndarray, eps: float, axis: Axes = None) -> np.ndarray:
    """x / sqrt(max(Σ x², eps))."""
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    return a_np / np.sqrt(np.maximum(np.sum(a_np * a_np, axis=axes, keepdims=True), eps))


def nll_loss(
    predictions: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> np.ndarray:
    """-weights[target] · predictions[n, target, …]."""
    return reference_of("nn.nll_loss", predictions, targets, weights, reduction, ignore_index)


def adaptive_pool(np_data: np.ndarray, out_size: Ints, pool_type: str, layout: str) -> np.ndarray:
    """Pooling to a size."""
    return reference_of("nn.adaptive_pool", np_data, out_size, pool_type, layout)


def lstm_python(
    Xs: np.ndarray, Wi: np.ndarray, Wh: np.ndarray, *rest: object, **options: object
) -> tuple[np.ndarray, ...]:
    """Hidden and cell states after each step; further arguments as those of topi.nn.lstm, without the activations."""
    return tuple(reference_of("nn.lstm", Xs, Wi, Wh, *rest, **options))


def deformable_conv2d_nchw_python(
    a_np: np.ndarray,
    offset_np: np.ndarray,
    w_np: np.ndarray,
    stride: Ints,
    padding: IntPadding,
    dilation: Ints,
    deformable_groups: int,
    groups: int,
) -> np.ndarray:
    """The convolution whose taps are moved by offsets."""
    return reference_of(
        "nn.deformable_conv2d_nchw", a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups
    )


def deformable_conv2d_nhwc_python(
    a_np: np.ndarray,
    offset_np: np.ndarray,
    w_np: np.ndarray,
    stride: Ints,
    padding: IntPadding,
    dilation: Ints,
    deformable_groups: int,
    groups: int,
) -> np.ndarray:
    """The convolution whose taps are moved by offsets; NHWC by HWIO."""
    return reference_of(
        "nn.deformable_conv2d_nhwc", a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups
    )


def correlation_nchw_python(
    data1: np.ndarray,
    data2: np.ndarray,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: IntPadding,
    is_multiply: bool,
) -> np.ndarray:
    """How well patches of one picture fit displaced patches of another."""
    numbers = kernel_size, max_displacement, stride1, stride2, padding, is_multiply
    return reference_of("nn.correlation_nchw", data1, data2, *numbers)
