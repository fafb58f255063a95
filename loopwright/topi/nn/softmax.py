"""softmax and its kin: exponentials along an axis, divided by their sum.

    softmax(x) = exp(x - max) / Σ exp(x - max)          log_softmax(x) = x - max - log(Σ exp(x - max))

The maximum is subtracted first, so that no exponential overflows. The stages are `T_softmax_maxelem`, `T_softmax_exp`,
`T_softmax_expsum` and `T_softmax_norm`; the last has the axis as an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.ir.intrinsics import exp, log
from loopwright.te.tags import default_tag
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.rounding import rounded_sample
from loopwright.topi.samples import real_numbers


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    powers = np.exp(x - x.max(axis=axis, keepdims=True)) if 0 not in x.shape else x
    return powers / powers.sum(axis=axis, keepdims=True)


def _log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    if 0 in x.shape:
        return x
    lowered = x - x.max(axis=axis, keepdims=True)
    return lowered - np.log(np.exp(lowered).sum(axis=axis, keepdims=True))


def _samples(reference: Reference) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        yield rounded_sample(reference, real_numbers((3, 7)))
        yield rounded_sample(reference, real_numbers((3, 7), "float64"), axis=0)
        yield rounded_sample(reference, real_numbers((2, 5), "float16"))
        yield rounded_sample(reference, real_numbers((2, 3, 4, 5)), axis=1)
        yield rounded_sample(reference, real_numbers((2, 3, 5)), axis=-2)
        yield rounded_sample(reference, real_numbers((11,)))
        yield rounded_sample(reference, 40 * real_numbers((4, 9), shift=1e3))  # exp alone would overflow
        yield Sample((np.full((2, 1), -3e38, "float32"),))
        yield Sample((np.zeros((3, 0), "float32"),))
        yield Sample((np.zeros((0, 3), "float32"), 1))

    return samples


@operator(reference=_softmax, samples=_samples(_softmax), name="nn.softmax")
def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """exp(x - max) / Σ exp(x - max) along `axis`."""
    return _softmax_stages("softmax", x, axis)


@operator(reference=_softmax, samples=_samples(_softmax), name="nn.fast_softmax")
def fast_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """`softmax` under the name for quick exponentials; ours are quick and exact to one unit, so it is the same."""
    return _softmax_stages("fast_softmax", x, axis)


@operator(reference=_log_softmax, samples=_samples(_log_softmax), name="nn.log_softmax")
def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The logarithm of `softmax`, computed without taking it of small numbers."""
    return _softmax_stages("log_softmax", x, axis)


def _softmax_stages(op: str, x: te.Tensor, axis: int) -> te.Tensor:
    axis = axis_of(op, axis, x.ndim)
    rest = [size for at, size in enumerate(x.shape) if at != axis]
    length = x.shape[axis]

    def along(at: Sequence[Expr], index: Expr) -> list[Expr]:
        return [*at[:axis], index, *at[axis:]]

    def without(at: Sequence[Expr]) -> list[Expr]:
        return [*at[:axis], *at[axis + 1 :]]

    k, second = te.reduce_axis((0, length), name="k"), te.reduce_axis((0, length), name="k")
    largest = te.compute(rest, lambda *at: te.max(x(*along(at, k.var)), axis=k), name="T_softmax_maxelem")
    powers = te.compute(x.shape, lambda *at: exp(x(*at) - largest(*without(at))), name="T_softmax_exp")
    total = te.compute(rest, lambda *at: te.sum(powers(*along(at, second.var)), axis=second), name="T_softmax_expsum")

    # One division a row, and products: a sum of powers is 1 or more, so that its reciprocal is a number like any other.
    is_row = axis == x.ndim - 1 and x.dtype.is_float and x.dtype.bits >= 32

    def norm(*at: Expr) -> Expr:
        if op == "log_softmax":
            return x(*at) - largest(*without(at)) - log(total(*without(at)))
        if is_row:
            return powers(*at) * te.div(const(1.0, x.dtype), total(*without(at)))
        return te.div(powers(*at), total(*without(at)))

    out: te.Tensor = te.compute(
        x.shape, norm, name="T_softmax_norm", tag=default_tag(f"{op}_output"), attrs={"axis": axis}
    )
    return out
