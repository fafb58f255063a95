"""nll_loss: how unlikely a model thought what was true.

loss[n, …] = -weights[target] · predictions[n, target, …]         where target = targets[n, …]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.choices import choose
from loopwright.topi.parts.sizes import check_rank, check_same
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import Rounded, rounded_sample
from loopwright.topi.samples import positive_numbers, real_numbers, whole_numbers


def _nll_loss(
    predictions: np.ndarray, targets: np.ndarray, weights: np.ndarray, reduction: str = "mean", ignore_index: int = -100
) -> np.ndarray:
    used = targets != ignore_index
    at = np.where(used, targets, 0)
    locations = np.indices(targets.shape)
    picked = predictions[(locations[0], at, *locations[1:])]
    zero = np.zeros(targets.shape)
    weight = weights[at]
    if isinstance(weight, Rounded):
        weight = Rounded(np.where(used, weight.value, zero), weight.dtype)
        picked = Rounded(np.where(used, picked.value, zero), picked.dtype)
    else:
        weight, picked = np.where(used, weight, zero), np.where(used, picked, zero)
    loss = -(picked * weight)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weight.sum()


def _samples() -> Iterator[Sample]:
    targets = whole_numbers((5,), "int32", 0, 3)
    holes = np.array([[0, -1, 2], [3, 3, -1]], "int64")
    for reduction in ("mean", "sum", "none"):
        yield rounded_sample(_nll_loss, real_numbers((5, 4)), targets, positive_numbers((4,)), reduction, -100)
        yield rounded_sample(_nll_loss, real_numbers((2, 4, 3)), holes, positive_numbers((4,)), reduction, -1)
    wide = real_numbers((5, 4), "float64"), targets, positive_numbers((4,), "float64")
    yield rounded_sample(_nll_loss, *wide, "sum", 1)
    yield Sample((np.zeros((0, 4), "float32"), np.zeros((0,), "int32"), positive_numbers((4,)), "sum", -100))


@operator(reference=_nll_loss, samples=_samples, name="nn.nll_loss")
def nll_loss(
    predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor, reduction: str, ignore_index: int
) -> te.Tensor:
    """The loss of each target (`reduction="none"`), their sum, or their weighted mean.

    Predictions are (N, C, …), targets (N, …) with the index of a class, weights (C,). Targets that are `ignore_index`
    count nowhere; every other one is the index of a class.
    """
    op = "nll_loss"
    choose(op, "reduction", reduction, ("mean", "sum", "none"))
    if targets.ndim != predictions.ndim - 1:
        raise InvalidShapeError(
            op,
            f"{predictions.name} has {predictions.ndim} dimensions and {targets.name} {targets.ndim}",
            "targets lack the axis of the classes",
        )
    check_rank(op, "weights", weights, "(classes,)", 1)
    check_same(op, "classes differ", ("the predictions", predictions.shape[1]), ("the weights", weights.shape[0]))
    for axis, size in zip((0, *range(2, predictions.ndim)), targets.shape, strict=True):
        check_same(op, f"axis {axis} differs", ("the predictions", predictions.shape[axis]), ("the targets", size))
    zero = const(0, predictions.dtype)

    def used(target: Expr, value: Expr) -> Expr:
        return te.if_then_else(target.equal(const(ignore_index, targets.dtype)), zero, value)

    def loss(*at: Expr) -> Expr:
        target = targets(*at)
        return used(target, -predictions(at[0], target, *at[1:]) * weights(target))

    each: te.Tensor = te.compute(targets.shape, loss, name="T_nll_loss", tag=default_tag(tag.INJECTIVE))
    if reduction == "none":
        return each
    total = _total("T_nll_loss_sum", each)
    if reduction == "sum":
        return total
    weight: te.Tensor = te.compute(
        targets.shape,
        lambda *at: used(targets(*at), weights(targets(*at))),
        name="T_nll_loss_weight",
        tag=default_tag(tag.INJECTIVE),
    )
    weighed = _total("T_nll_loss_weight_sum", weight)
    mean: te.Tensor = te.compute(
        (), lambda: te.div(total(), weighed()), name="T_nll_loss_mean", tag=default_tag(tag.ELEMWISE)
    )
    return mean


def _total(name: str, data: te.Tensor) -> te.Tensor:
    taps = [te.reduce_axis((0, size), name=f"k{k}") for k, size in enumerate(data.shape)]
    total: te.Tensor = te.compute(
        (), lambda: te.sum(data(*[tap.var for tap in taps]), axis=taps), name=name, tag=default_tag(tag.COMM_REDUCE)
    )
    return total
