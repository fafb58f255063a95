"""batch_norm: each channel by a mean and a variance that were learnt, or, in training, by those of the batch.

    out = (x - mean) · (gamma / sqrt(variance + epsilon)) + beta

The factor of a channel is a stage of its own, one number a channel; the rest is one stage over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.row_major import count_as
from loopwright.topi.parts.sizes import check_rank, check_same
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import rounded_sample
from loopwright.topi.samples import positive_numbers, real_numbers


def _batch_norm(
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool = True,
    scale: bool = True,
    training: bool = False,
    momentum: float = 0.1,
) -> list[np.ndarray]:
    axis = 1 if axis is None else axis % x.ndim
    epsilon = 1e-5 if epsilon is None else epsilon
    shape = [size if at == axis else 1 for at, size in enumerate(x.shape)]
    others = tuple(at for at in range(x.ndim) if at != axis)
    used_mean, used_var = mean, var
    if training:
        used_mean = x.mean(axis=others)
        centred = x - used_mean.reshape(shape)
        used_var = (centred * centred).mean(axis=others)
    factor = (gamma if scale else 1.0) / np.sqrt(used_var + epsilon)
    out = (x - used_mean.reshape(shape)) * factor.reshape(shape)
    out = out + beta.reshape(shape) if center else out
    if training:
        mean = mean * (1 - momentum) + used_mean * momentum
        var = var * (1 - momentum) + used_var * momentum
    return [out, mean, var]


def _samples() -> Iterator[Sample]:
    def channels(count: int, dtype: str = "float32") -> tuple[np.ndarray, ...]:
        plain = [real_numbers((count,), dtype, shift) for shift in (1.0, 2.0, 3.0)]
        return (*plain, positive_numbers((count,), dtype))

    yield rounded_sample(_batch_norm, real_numbers((2, 3, 4, 5)), *channels(3))
    yield rounded_sample(_batch_norm, real_numbers((2, 4, 5)), *channels(5), axis=-1, epsilon=1e-2)
    yield rounded_sample(_batch_norm, real_numbers((2, 3, 4)), *channels(3), center=False, scale=False)
    yield rounded_sample(_batch_norm, real_numbers((2, 3), "float64"), *channels(3, "float64"))
    yield rounded_sample(_batch_norm, real_numbers((3, 2, 5)), *channels(2), training=True)
    yield rounded_sample(_batch_norm, real_numbers((4, 3)), *channels(3), training=True, momentum=0.25, center=False)
    yield Sample((np.zeros((0, 3), "float32"), *channels(3)))


@operator(reference=_batch_norm, samples=_samples, name="nn.batch_norm")
def batch_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    moving_mean: te.Tensor,
    moving_var: te.Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[te.Tensor]:
    """The normalised data, the mean and the variance: those given, or in training moved towards those of the batch.

    Defaults: axis 1, epsilon 1e-5, center and scale (add beta, multiply by gamma) true, training false, momentum 0.1.
    """
    op = "batch_norm"
    at_axis = axis_of(op, 1 if axis is None else axis, data.ndim)
    epsilon = 1e-5 if epsilon is None else epsilon
    momentum = 0.1 if momentum is None else momentum
    channels = data.shape[at_axis]
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    for what, tensor in given.items():
        check_rank(op, what, tensor, "(channels,)", 1)
        check_same(op, "channels differ", (f"axis {at_axis} of the data", channels), (what, tensor.shape[0]))

    def each_channel(name: str, value: Callable[[Expr], Expr]) -> te.Tensor:
        result: te.Tensor = te.compute((channels,), value, name=name, tag=default_tag(tag.ELEMWISE))
        return result

    mean, variance = moving_mean, moving_var
    if training:
        mean, variance = _of_the_batch(data, at_axis, each_channel)
    small, one = const(epsilon, data.dtype), const(1, data.dtype)
    factor = each_channel(
        "T_batch_norm_scale",
        lambda c: te.div(one if scale is False else gamma(c), te.sqrt(variance(c) + small)),
    )

    def element(*at: Expr) -> Expr:
        c = at[at_axis]
        value = (data(*at) - mean(c)) * factor(c)
        return value if center is False else value + beta(c)

    out: te.Tensor = te.compute(data.shape, element, name="T_batch_norm", tag=default_tag(tag.BROADCAST))
    if not training:
        return [
            out,
            each_channel("T_batch_norm_mean", lambda c: moving_mean(c)),
            each_channel("T_batch_norm_var", lambda c: moving_var(c)),
        ]
    keep, take = const(1 - momentum, data.dtype), const(momentum, data.dtype)
    return [
        out,
        each_channel("T_batch_norm_mean", lambda c: moving_mean(c) * keep + mean(c) * take),
        each_channel("T_batch_norm_var", lambda c: moving_var(c) * keep + variance(c) * take),
    ]


def _of_the_batch(data: te.Tensor, axis: int, each_channel: Callable[..., te.Tensor]) -> tuple[te.Tensor, te.Tensor]:
    """Mean and variance of every channel; the variance in a second pass, as it loses its digits in one."""
    others = [at for at in range(data.ndim) if at != axis]
    number = count_as(data.dtype, [data.shape[at] for at in others], "batch_norm")

    def reduced(name: str, term: Callable[[Expr, Expr], Expr]) -> te.Tensor:
        taps = {at: te.reduce_axis((0, data.shape[at]), name=f"k{k}") for k, at in enumerate(others)}

        def total(c: Expr) -> Expr:
            read = data(*[taps[at].var if at in taps else c for at in range(data.ndim)])
            value: Expr = te.sum(term(c, read), axis=list(taps.values()))
            return value

        result: te.Tensor = te.compute((data.shape[axis],), total, name=name, tag=default_tag(tag.COMM_REDUCE))
        return result

    total = reduced("T_batch_norm_sum", lambda c, x: x)
    mean = each_channel("T_batch_norm_batch_mean", lambda c: te.div(total(c), number))
    squares = reduced("T_batch_norm_squares", lambda c, x: (x - mean(c)) * (x - mean(c)))
    return mean, each_channel("T_batch_norm_batch_var", lambda c: te.div(squares(c), number))
