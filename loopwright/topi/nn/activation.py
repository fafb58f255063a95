"""Activations: what stands between two layers, element by element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import maximum
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.sizes import check_rank, check_same
from loopwright.topi.registry import Sample, operator, ulps
from loopwright.topi.samples import real_numbers, whole_numbers
from loopwright.topi.types import Scalar


def _relu_samples() -> Iterator[Sample]:
    for dtype in ("float32", "float64", "float16", "int8", "int32"):
        yield Sample((whole_numbers((3, 7), dtype),))
    yield Sample((np.array([np.inf, -np.inf, -0.5, 3e38, 1e-42], "float32"),))
    yield Sample((whole_numbers((0, 4)),))
    yield Sample((whole_numbers((2, 1, 3, 5)),))


@operator(reference=lambda x: np.maximum(x, 0), samples=_relu_samples, name="nn.relu")
def relu(x: te.Tensor) -> te.Tensor:
    """max(x, 0)."""
    out: te.Tensor = te.compute(
        x.shape, lambda *at: maximum(x(*at), const(0, x.dtype)), name="T_relu", tag=default_tag(tag.ELEMWISE)
    )
    return out


def _leaky_relu_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((3, 7)), 0.25))  # a power of two: exact
    yield Sample((whole_numbers((3, 7), "float16"), 0.5))
    yield Sample((whole_numbers((0, 4)), 0.25))
    # alpha is rounded to the type, and so is the product.
    yield Sample((real_numbers((5, 11)), 0.1), bound=ulps(1, "float32"))
    yield Sample((real_numbers((5, 11), "float64"), 0.1), bound=ulps(1, "float64"))


@operator(reference=lambda x, alpha: np.where(x > 0, x, x * alpha), samples=_leaky_relu_samples, name="nn.leaky_relu")
def leaky_relu(x: te.Tensor, alpha: Scalar) -> te.Tensor:
    """x where it is positive, `alpha` times x elsewhere."""

    def element(*at: Expr) -> Expr:
        value = x(*at)
        return te.if_then_else(value > 0, value, value * const(alpha, x.dtype))

    out: te.Tensor = te.compute(x.shape, element, name="T_leaky_relu", tag=default_tag(tag.ELEMWISE))
    return out


def _prelu(x: np.ndarray, slope: np.ndarray, axis: int = 1) -> np.ndarray:
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.where(x > 0, x, x * slope.reshape(shape))


def _prelu_samples() -> Iterator[Sample]:
    yield Sample((whole_numbers((2, 3, 4)), whole_numbers((3,))))
    yield Sample((whole_numbers((2, 3, 4, 5)), whole_numbers((5,)), 3))
    yield Sample((whole_numbers((2, 3, 4)), whole_numbers((4,)), -1))
    yield Sample((whole_numbers((2, 3), "float16"), whole_numbers((3,), "float16")))
    yield Sample((whole_numbers((0, 3)), whole_numbers((3,))))
    yield Sample((real_numbers((2, 3, 5)), real_numbers((3,))), bound=ulps(0.5, "float32"))  # one product


@operator(reference=_prelu, samples=_prelu_samples, name="nn.prelu")
def prelu(x: te.Tensor, slope: te.Tensor, axis: int = 1) -> te.Tensor:
    """`leaky_relu` with a slope for each channel, that is for each index along `axis`."""
    op = "prelu"
    check_rank(op, "slope", slope, "(channels,)", 1)
    axis = axis_of(op, axis, x.ndim)
    check_same(op, "channels differ", (f"axis {axis} of the data", x.shape[axis]), ("the slope", slope.shape[0]))

    def element(*at: Expr) -> Expr:
        value = x(*at)
        return te.if_then_else(value > 0, value, value * slope(at[axis]))

    out: te.Tensor = te.compute(x.shape, element, name="T_prelu", tag=default_tag(tag.BROADCAST))
    return out
