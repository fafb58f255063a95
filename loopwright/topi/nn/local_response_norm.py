"""lrn: each value divided by a power of the sum of squares of its neighbours along an axis.

out = x / (bias + alpha · Σ x² over the window / size) ** beta
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import power
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadWindow
from loopwright.topi.nn.padding import pad
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import Rounded, rounded_sample
from loopwright.topi.samples import real_numbers


def _lrn(
    x: np.ndarray, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2.0
) -> np.ndarray:
    axis %= x.ndim
    reach = size // 2
    squares = x * x
    total = squares
    for shift in (*range(-reach, 0), *range(1, reach + 1)):
        total = total + _shifted(squares, axis, shift)
    return x / np.power(total * alpha / size + bias, beta)


def _shifted(x: np.ndarray, axis: int, by: int) -> np.ndarray:
    """x moved along an axis, zeros coming in."""
    if isinstance(x, Rounded):
        return Rounded(_shifted(x.value, axis, by), x.dtype, _shifted(np.array(x.error), axis, by))
    length = x.shape[axis]
    index = np.arange(length) + by
    used = np.take(x, np.clip(index, 0, length - 1), axis=axis)
    shape = [1] * x.ndim
    shape[axis] = length
    return np.where(((index >= 0) & (index < length)).reshape(shape), used, 0.0)


def _samples() -> Iterator[Sample]:
    yield rounded_sample(_lrn, 3 * real_numbers((2, 7, 3, 2)), 5, 1, 0.1, 0.75, 2.0)
    yield rounded_sample(_lrn, real_numbers((2, 3, 2, 6)), 3, -1, 1e-4, 0.5, 1.0)
    yield rounded_sample(_lrn, real_numbers((1, 4, 2, 2), "float64"), 3)
    yield rounded_sample(_lrn, real_numbers((2, 3)), 1, 0, 1.0, 1.0, 0.5)
    yield Sample((np.zeros((0, 4, 2, 2), "float32"), 3))


@operator(reference=_lrn, samples=_samples, name="nn.lrn")
def lrn(
    data: te.Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2
) -> te.Tensor:
    """Normalise by the neighbourhood of `size` values (an odd number) along `axis`."""
    op = "lrn"
    at_axis = axis_of(op, axis, data.ndim)
    if not isinstance(size, int) or size < 1 or size % 2 == 0:
        raise BadWindow(op, f"size is {size!r}", "the window has an odd number of values, so that it has a middle")
    before = [size // 2 if at == at_axis else 0 for at in range(data.ndim)]
    padded = pad(data, before, before, name="pad_data")
    tap = te.reduce_axis((0, size), name="rxs")
    dtype = data.dtype

    def squares(*at: Expr) -> Expr:
        value = padded(*[index + tap.var if k == at_axis else index for k, index in enumerate(at)])
        total: Expr = te.sum(value * value, axis=tap)
        return total

    total = te.compute(data.shape, squares, name="sqr_sum")

    def element(*at: Expr) -> Expr:
        spread = te.div(total(*at) * const(alpha, dtype), const(size, dtype)) + const(bias, dtype)
        return te.div(data(*at), power(spread, const(beta, dtype)))

    out: te.Tensor = te.compute(data.shape, element, name="T_lrn", tag=default_tag(tag.BROADCAST))
    return out
