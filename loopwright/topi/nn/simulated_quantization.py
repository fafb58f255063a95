"""Quantisation in floating point: what rounding to a narrow type loses, with the data still in its own type.

    simulated_quantize(x)   = clip(round(x / scale) + zero_point, the least and the greatest of the type)
    simulated_dequantize(q) = (q - zero_point) · scale

The type is data too: a code of `DTYPE_CODES`, one for all or one for each index along the axis, and so are the scale
and the zero point. Calibration changes all three without building anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import if_then_else, maximum, minimum
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.sizes import check_same, known
from loopwright.topi.registry import Sample, operator, ulps
from loopwright.topi.samples import real_numbers, whole_numbers

DTYPE_CODES: Final = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
_RANGES: Final = {1: (-128, 127), 2: (0, 255), 3: (-(2**31), 2**31 - 1)}


def _along(values: np.ndarray, data: np.ndarray, axis: int) -> np.ndarray:
    shape = [1] * data.ndim
    if values.ndim and values.size != 1:
        shape[axis] = values.size
    return values.reshape(shape)


def _quantize(data: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int = -1) -> np.ndarray:
    code, scale, zero = (_along(np.asarray(one), data, axis) for one in (code, scale, zero))
    quotient = data / scale
    rounded = np.sign(quotient) * np.floor(np.abs(quotient) + 0.5) + zero
    result = data
    for number, (low, high) in _RANGES.items():
        result = np.where(code == number, np.clip(rounded, low, high), result)
    return result


def _quantize_samples() -> Iterator[Sample]:
    data = 100 * real_numbers((3, 5))  # quotients that are far from halves
    for code in range(4):
        yield Sample((data, np.array(code, "int32"), np.array(0.5, "float32"), np.array(3, "int32")))
    codes = np.array([1, 2, 3, 0, 1], "int32")
    scales, zeros = np.array([0.5, 1, 2, 4, 0.25], "float32"), np.array([0, 10, -3, 7, 1], "int32")
    yield Sample((data, codes, scales, zeros))
    yield Sample((data, codes[:3], scales[:3], zeros[:3], 0))
    yield Sample((np.zeros((0, 5), "float32"), codes, scales, zeros))


@operator(reference=_quantize, samples=_quantize_samples, name="nn.simulated_quantize")
def simulated_quantize(
    data: te.Tensor, out_dtype: te.Tensor, output_scale: te.Tensor, output_zero_point: te.Tensor, axis: int = -1
) -> te.Tensor:
    """`data` as it would be quantised, in its own type; the code 0 leaves it as it is."""
    code, scale, zero = _parameters("simulated_quantize", data, axis, out_dtype, output_scale, output_zero_point)

    def element(*at: Expr) -> Expr:
        value: Expr = data(*at)
        rounded = te.round(te.div(value, scale(at).astype(data.dtype))) + zero(at).astype(data.dtype)
        for number, (low, high) in _RANGES.items():
            clipped = maximum(minimum(rounded, const(high, data.dtype)), const(low, data.dtype))
            value = if_then_else(code(at).equal(number), clipped, value)
        return value

    out: te.Tensor = te.compute(data.shape, element, name="simulated_quantize", tag=default_tag(tag.INJECTIVE))
    return out


def _dequantize(data: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int = -1) -> np.ndarray:
    code, scale, zero = (_along(np.asarray(one), data, axis) for one in (code, scale, zero))
    return np.where(code == 0, data, (data - zero) * scale)


def _dequantize_samples() -> Iterator[Sample]:
    data = whole_numbers((3, 5), "float32", -128, 127)
    for code in range(4):
        yield Sample((data, np.array(code, "int32"), np.array(0.5, "float32"), np.array(3, "int32")))
    codes, zeros = np.array([1, 2, 3, 0, 1], "int32"), np.array([0, 10, -3, 7, 1], "int32")
    exact = np.array([0.5, 1, 2, 4, 0.25], "float32")
    yield Sample((data, codes, exact, zeros))
    yield Sample((data, codes[:3], exact[:3], zeros[:3], 0))
    # Differences of whole numbers are exact, so one product is rounded.
    yield Sample((data, codes, real_numbers((5,)), zeros), bound=ulps(0.5, "float32"))


@operator(reference=_dequantize, samples=_dequantize_samples, name="nn.simulated_dequantize")
def simulated_dequantize(
    data: te.Tensor, in_dtype: te.Tensor, input_scale: te.Tensor, input_zero_point: te.Tensor, axis: int = -1
) -> te.Tensor:
    """Quantised values as the numbers that they stand for; the code 0 leaves them as they are."""
    code, scale, zero = _parameters("simulated_dequantize", data, axis, in_dtype, input_scale, input_zero_point)

    def element(*at: Expr) -> Expr:
        value = data(*at)
        plain = (value - zero(at).astype(data.dtype)) * scale(at).astype(data.dtype)
        return if_then_else(code(at).equal(0), value, plain)

    out: te.Tensor = te.compute(data.shape, element, name="simulated_dequantize", tag=default_tag(tag.INJECTIVE))
    return out


def _parameters(op: str, data: te.Tensor, axis: int, *given: te.Tensor) -> list[Callable[[Sequence[Expr]], Expr]]:
    """For each parameter, its value at an element of the data: it is one number, or one for each index of the axis."""
    at_axis = axis_of(op, axis, data.ndim)

    def reader(what: str, tensor: te.Tensor) -> Callable[[Sequence[Expr]], Expr]:
        if tensor.ndim > 1:
            raise InvalidShapeError(op, f"{what} {tensor.name} has {tensor.ndim} dimensions", "give one, or none")
        if tensor.ndim == 0:
            return lambda at: tensor()
        if known(tensor.shape[0]) == 1:
            return lambda at: tensor(0)
        check_same(op, "sizes differ", (f"axis {at_axis} of the data", data.shape[at_axis]), (what, tensor.shape[0]))
        return lambda at: tensor(at[at_axis])

    names = ("the code of the type", "the scale", "the zero point")
    return [reader(what, tensor) for what, tensor in zip(names, given, strict=True)]
