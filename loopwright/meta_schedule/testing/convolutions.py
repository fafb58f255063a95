"""Convolutions of all kinds, channels last, as tensor expressions; each gives its inputs and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright import te, topi
from loopwright.ir import LE, LT
from loopwright.te import Tensor


def conv1d_nlc(
    n: int,
    length: int,
    ci: int,
    co: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> tuple[Tensor, ...]:
    """Over a length."""
    inputs = te.placeholder((n, length, ci), name="inputs")
    weight = te.placeholder((kernel, ci // groups, co), name="weight")
    out = _size(length, kernel, stride, padding, dilation)
    padded = _padded(inputs, [0, padding, 0])
    rl, rc = _axis(kernel, "rl"), _axis(ci // groups, "rc")
    result = te.compute(
        (n, out, co),
        lambda n, l, co_: te.sum(
            padded[n, l * stride + rl * dilation, co_ // (co // groups) * (ci // groups) + rc] * weight[rl, rc, co_],
            axis=[rl, rc],
        ),
        name="conv1d_nlc",
    )
    return inputs, weight, result


def conv2d_nhwc(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[Tensor, ...]:
    """Over an image."""
    inputs = te.placeholder((n, h, w, ci), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, ci // groups, co), name="weight", dtype=in_dtype)
    shape = (n, *[_size(extent, kernel_size, stride, padding, dilation) for extent in (h, w)], co)
    padded = _padded(inputs, [0, padding, padding, 0])
    rh, rw = _axis(kernel_size, "rh"), _axis(kernel_size, "rw")
    rc = _axis(ci // groups, "rc")

    def element(n: Any, h: Any, w: Any, o: Any) -> object:
        channel = o // (co // groups) * (ci // groups) + rc
        read = padded[n, h * stride + rh * dilation, w * stride + rw * dilation, channel]
        factor = weight[rh, rw, rc, o]
        if in_dtype != out_dtype:
            read, factor = read.astype(out_dtype), factor.astype(out_dtype)
        return te.sum(read * factor, axis=[rh, rw, rc])

    return inputs, weight, te.compute(shape, element, name="conv2d_nhwc")


def conv3d_ndhwc(
    n: int,
    d: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> tuple[Tensor, ...]:
    """Over a volume."""
    inputs = te.placeholder((n, d, h, w, ci), name="inputs")
    weight = te.placeholder((kernel, kernel, kernel, ci // groups, co), name="weight")
    shape = (n, *[_size(extent, kernel, stride, padding, dilation) for extent in (d, h, w)], co)
    padded = _padded(inputs, [0, padding, padding, padding, 0])
    rd, rh, rw = [_axis(kernel, name) for name in ("rd", "rh", "rw")]
    rc = _axis(ci // groups, "rc")
    result = te.compute(
        shape,
        lambda n, d, h, w, o: te.sum(
            padded[
                n,
                d * stride + rd * dilation,
                h * stride + rh * dilation,
                w * stride + rw * dilation,
                o // (co // groups) * (ci // groups) + rc,
            ]
            * weight[rd, rh, rw, rc, o],
            axis=[rd, rh, rw, rc],
        ),
        name="conv3d_ndhwc",
    )
    return inputs, weight, result


def depthwise_conv2d_nhwc(
    n: int, h: int, w: int, c: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, factor: int = 1
) -> tuple[Tensor, ...]:
    """A kernel of its own for each channel."""
    assert factor == 1
    inputs = te.placeholder((n, h, w, c))
    weight = te.placeholder((factor, kernel, kernel, c))
    shape = (n, *[_size(extent, kernel, stride, padding, dilation) for extent in (h, w)], c)
    padded = _padded(inputs, [0, padding, padding, 0])
    rh, rw = _axis(kernel, "rh"), _axis(kernel, "rw")
    result = te.compute(
        shape,
        lambda n, h, w, c: te.sum(
            padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c] * weight[0, rh, rw, c],
            axis=[rh, rw],
        ),
        name="depth_conv2d_nhwc",
    )
    return inputs, weight, result


def conv2d_transpose_nhwc(
    n: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0
) -> tuple[Tensor, ...]:
    """The gradient of a convolution: an image grows."""
    inputs = te.placeholder((n, h, w, ci), name="inputs")
    weight = te.placeholder((kernel, kernel, ci, co), name="weight")
    before = kernel - 1 - padding
    room = before // stride + int(before % stride > 0)
    shape = (n, *[(extent - 1) * stride - 2 * padding + kernel for extent in (h, w)], co)
    padded = _padded(inputs, [0, room, room, 0])
    shift = (stride - before % stride) % stride
    rh, rw = _axis(kernel, "rh"), _axis(kernel, "rw")
    rc = _axis(ci, "rc")
    result = te.compute(
        shape,
        lambda n, h, w, co: te.sum(
            te.if_then_else(
                te.all(
                    te.indexmod(h + rh + shift, stride) == 0,
                    te.indexmod(w + rw + shift, stride) == 0,
                ),
                padded[n, te.indexdiv(h + rh + shift, stride), te.indexdiv(w + rw + shift, stride), rc],
                te.const(0.0, "float32"),
            )
            * weight[kernel - 1 - rh, kernel - 1 - rw, rc, co],
            axis=[rh, rw, rc],
        ),
        name="conv2d_transpose_nhwc",
    )
    return inputs, weight, result


def capsule_conv2d(
    n: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, capsule: int = 4
) -> tuple[Tensor, ...]:
    """Each pixel is a matrix of capsules, and so is each weight."""
    inputs = te.placeholder((n, h, w, capsule, capsule, ci), name="inputs")
    weight = te.placeholder((kernel, kernel, capsule, capsule, ci, co), name="weight")
    shape = (n, *[_size(extent, kernel, stride, padding, 1) for extent in (h, w)], capsule, capsule, co)
    padded = _padded(inputs, [0, padding, padding, 0, 0, 0])
    rh, rw = _axis(kernel, "rh"), _axis(kernel, "rw")
    cap_k, rc = _axis(capsule, "cap_k"), _axis(ci, "rc")
    result = te.compute(
        shape,
        lambda n, h, w, cap_i, cap_j, co: te.sum(
            padded[n, h * stride + rh, w * stride + rw, cap_i, cap_k, rc] * weight[rh, rw, cap_k, cap_j, rc, co],
            axis=[rh, rw, cap_k, rc],
        ),
        name="conv2d_capsule_nhwijc",
    )
    return inputs, weight, result


def conv2d_nhwc_bn_relu(
    n: int, h: int, w: int, ci: int, co: int, kernel: int, strides: int = 1, padding: int = 0, dilation: int = 1
) -> tuple[Tensor, ...]:
    """With a bias, batch normalisation and ReLU."""
    data = te.placeholder((n, h, w, ci), name="data")
    weight = te.placeholder((kernel, kernel, ci, co), name="kernel")
    bias, scale, offset = [te.placeholder((co,), name=name) for name in ("bias", "bn_scale", "bn_offset")]
    shape = (n, *[_size(extent, kernel, strides, padding, dilation) for extent in (h, w)], co)
    padded = _padded(data, [0, padding, padding, 0], "pad_temp")
    ry, rx = _axis(kernel, "ry"), _axis(kernel, "rx")
    rc = _axis(ci, "rc")
    convolved = te.compute(
        shape,
        lambda nn, yy, xx, ff: te.sum(
            padded[nn, yy * strides + ry * dilation, xx * strides + rx * dilation, rc] * weight[ry, rx, rc, ff],
            axis=[ry, rx, rc],
        ),
        name="Conv2dOutput",
    )
    result = te.compute(shape, lambda i, j, k, l: convolved[i, j, k, l] + bias[l], name="bias_add")
    scaled = te.compute(shape, lambda i, j, k, l: result[i, j, k, l] * scale[l], name="bn_mul")
    shifted = te.compute(shape, lambda i, j, k, l: scaled[i, j, k, l] + offset[l], name="bn_add")
    return data, weight, bias, offset, scale, topi.nn.relu(shifted)


def _padded(inputs: Tensor, padding: Sequence[int], name: str = "PadInput") -> Tensor:
    """Zeros around the data, with the conditions in the form that simplification gives them."""
    shape = [size + 2 * room for size, room in zip(inputs.shape, padding, strict=True)]

    def element(*indices: Any) -> object:
        inside: list[Any] = []
        for index, size, room in zip(indices, inputs.shape, padding, strict=True):
            if room:
                inside += [LE(te.const(room, "int32"), index), LT(index, size + room)]
        moved = [index - room if room else index for index, room in zip(indices, padding, strict=True)]
        if not inside:
            return inputs(*indices)
        return te.if_then_else(te.all(*inside), inputs(*moved), te.const(0.0, str(inputs.dtype)))

    return te.compute(shape, element, name=name)


def _axis(extent: int, name: str) -> Any:
    return te.reduce_axis((0, extent), name=name)


def _size(extent: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
