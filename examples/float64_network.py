"""A network of ONNX in float64, with how far a float32 run of it may be from that: what the demo is checked against.

    logits = float64_network(model, {"image": x})["logits"]
    abs(ours - logits.value) <= logits.bound()

It shares no code with the compiler: numpy computes each node as ONNX defines it. Beside every value stands the variance
of its error in float32, for roundings that are independent and no larger than u = 2⁻²⁴ of what is rounded:

- A sum of n products, in any order, is off by at most √n·u·Σ|x·w| in this sense (Higham and Mary, 2019: the worst case
  has n in place of √n, and needs all roundings to conspire).
- What comes in with an error of variance v leaves a sum of x·w with Σ v·w².
- ReLU and the largest of several never make an error larger than the sum of those that come in.

The bound is six standard deviations. Worst cases instead of variances would double from layer to layer, and after fifty
layers allow anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

UNIT = 2.0**-24  # the largest error of one rounding to float32, of the value
DEVIATIONS = 6


class Estimate(NamedTuple):
    """A tensor in float64, and the variance of what a float32 run may differ from it by."""

    value: np.ndarray
    variance: np.ndarray

    def bound(self) -> np.ndarray:
        """How far a float32 run may be from it."""
        return DEVIATIONS * np.sqrt(self.variance)


def float64_network(model: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """The outputs of an `onnx.ModelProto`; of its operators, those that convolutional networks are made of."""
    from onnx import helper, numpy_helper

    known = {name: _exact(array) for name, array in inputs.items()}
    known |= {tensor.name: _exact(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}
    left = {value.name for value in model.graph.output}
    users: dict[str, int] = {}
    for node in model.graph.node:
        for name in node.input:
            users[name] = users.get(name, 0) + 1
    for node in model.graph.node:
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        given = [known[name] for name in node.input]
        known[node.output[0]] = _OPERATORS[node.op_type](*given, **attributes)
        for name in node.input:  # what nobody needs any more is let go: a large network has many tensors
            users[name] -= 1
            if users[name] == 0 and name not in left:
                del known[name]
    return {name: known[name] for name in left}


def _exact(array: np.ndarray) -> Estimate:
    wide = array.astype("float64")
    return Estimate(wide, np.zeros_like(wide))


def _conv(
    x: Estimate,
    w: Estimate,
    *,
    kernel_shape: list[int],
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    group: int = 1,
) -> Estimate:
    assert group == 1 and set(dilations or [1]) == {1}
    weight = w.value.reshape(len(w.value), -1)

    def convolved(data: np.ndarray, by: np.ndarray) -> np.ndarray:
        return _windows_product(data, by, kernel_shape, strides, pads)

    value = convolved(x.value, weight)
    fresh = _sum_error(weight.shape[1], convolved(np.abs(x.value), np.abs(weight)))
    return Estimate(value, convolved(x.variance, weight**2) + fresh)


def _windows_product(
    data: np.ndarray, weight: np.ndarray, kernel: list[int], strides: list[int], pads: list[int]
) -> np.ndarray:
    """The product of every window, as a row, with the weights of every channel."""
    padded = np.pad(data, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    windows = sliding_window_view(padded, kernel, (2, 3))[:, :, :: strides[0], :: strides[1]]
    batch, channels, height, width = windows.shape[:4]
    columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(batch, channels * kernel[0] * kernel[1], height * width)
    return (weight @ columns).reshape(batch, len(weight), height, width)


def _sum_error(count: int, magnitude: np.ndarray) -> np.ndarray:
    """The variance of the error of a sum of `count` products; a factor folded into weights and a bias round too."""
    return (count + 4) * (UNIT * magnitude) ** 2


def _batch_norm(
    x: Estimate, scale: Estimate, bias: Estimate, mean: Estimate, var: Estimate, *, epsilon: float = 1e-5
) -> Estimate:
    def along(values: np.ndarray) -> np.ndarray:
        return values.reshape(1, -1, 1, 1)

    factor = along(scale.value / np.sqrt(var.value + epsilon))
    shift = along(bias.value) - along(mean.value) * factor
    size = np.abs(x.value * factor) + np.abs(along(mean.value) * factor) + np.abs(along(bias.value))
    return Estimate(x.value * factor + shift, x.variance * factor**2 + _sum_error(2, size))


def _relu(x: Estimate) -> Estimate:
    return Estimate(np.maximum(x.value, 0), x.variance)


def _add(x: Estimate, y: Estimate) -> Estimate:
    value = x.value + y.value
    return Estimate(value, x.variance + y.variance + (UNIT * value) ** 2)


def _max_pool(x: Estimate, *, kernel_shape: list[int], strides: list[int], pads: list[int]) -> Estimate:
    def windows(data: np.ndarray, filled: float) -> np.ndarray:
        around = ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3]))
        padded = np.pad(data, around, constant_values=filled)
        return sliding_window_view(padded, kernel_shape, (2, 3))[:, :, :: strides[0], :: strides[1]]

    return Estimate(windows(x.value, -np.inf).max((4, 5)), windows(x.variance, 0.0).sum((4, 5)))


def _global_average_pool(x: Estimate) -> Estimate:
    count = x.value.shape[2] * x.value.shape[3]
    size = np.abs(x.value).sum((2, 3), keepdims=True) / count
    value = x.value.mean((2, 3), keepdims=True)
    return Estimate(value, x.variance.sum((2, 3), keepdims=True) / count**2 + _sum_error(count, size))


def _flatten(x: Estimate, *, axis: int = 1) -> Estimate:
    assert axis == 1
    return Estimate(*[part.reshape(len(part), -1) for part in x])


def _gemm(x: Estimate, w: Estimate, bias: Estimate, *, transB: int = 0) -> Estimate:
    weight = w.value.T if transB else w.value
    value = x.value @ weight + bias.value
    size = np.abs(x.value) @ np.abs(weight) + np.abs(bias.value)
    return Estimate(value, x.variance @ weight**2 + _sum_error(len(weight), size))


_OPERATORS = {
    "Add": _add,
    "BatchNormalization": _batch_norm,
    "Conv": _conv,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "MaxPool": _max_pool,
    "Relu": _relu,
}
