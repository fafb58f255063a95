"""Losses in graphs: how far predictions are from what is true."""

from __future__ import annotations

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr, const
from loopwright.relay.op.from_topi import FromTopi, type_of_compute
from loopwright.relay.op.index_ranges import IndexRange
from loopwright.relay.op.registry import Kind, Operator, make, register
from loopwright.relay.op.sizes import equal_dim
from loopwright.relay.types import TensorType


class _CrossEntropy(Operator):
    """-Σ targets · log(predictions) / batch."""

    def infer(self, predictions: TensorType, targets: TensorType) -> Type:
        if len(predictions.shape) != len(targets.shape) or not all(
            [equal_dim(one, other) for one, other in zip(predictions.shape, targets.shape, strict=True)]
        ):
            raise TypeMismatch(
                f"{self.op_name} is unable to show the following types match: {predictions} and {targets}",
                hint="there is one target for each prediction",
            )
        return type_of_compute(self, predictions, targets)

    def compute(self, predictions: te.Tensor, targets: te.Tensor) -> te.Tensor:
        total = topi.sum(topi.multiply(self._logarithm(predictions), targets))
        return topi.divide(topi.negative(total), predictions.shape[0].astype(str(predictions.dtype)))

    def _logarithm(self, predictions: te.Tensor) -> te.Tensor:
        return topi.log(predictions)

    def _by_batch(self, expression: Expr) -> tuple[Expr, Expr]:
        """The number of predictions and the shape to repeat a number to."""
        of = expression.checked_type
        assert isinstance(of, TensorType)
        size = of.shape[0]
        if not isinstance(size, int):
            raise TypeMismatch(f"{self.op_name}: the gradient needs a batch whose size is a number, not {size}")
        return const(float(size), str(of.dtype)), expression


@register("nn.cross_entropy", Kind.OUT_FUSABLE)
class CrossEntropy(_CrossEntropy):
    """-Σ targets · log(predictions), divided by the size of the batch; predictions are probabilities."""

    def reference(self, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return -np.sum(np.log(predictions) * targets) / predictions.shape[0]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        x, y = call.args
        batch, like = self._by_batch(x)
        spread = make("broadcast_to_like", grad / batch, like)
        return [make("negative", spread * y / x), make("negative", spread * make("log", x))]


@register("nn.cross_entropy_with_logits", Kind.OUT_FUSABLE)
class CrossEntropyWithLogits(_CrossEntropy):
    """-Σ targets · predictions, divided by the size of the batch; predictions are logarithms of probabilities."""

    def _logarithm(self, predictions: te.Tensor) -> te.Tensor:
        return predictions

    def reference(self, predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return -np.sum(predictions * targets) / predictions.shape[0]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        x, y = call.args
        batch, like = self._by_batch(x)
        spread = make("broadcast_to_like", grad / batch, like)
        return [make("negative", spread * y), make("negative", spread * x)]


@register("nn.nll_loss", Kind.OUT_FUSABLE)
class NllLoss(FromTopi):
    """-weights[target] · predictions[n, target, …] of each target, summed, averaged by weight, or neither."""

    reduction: str = "mean"
    ignore_index: int = -100

    def index_ranges(self, predictions: TensorType, targets: TensorType, weights: TensorType) -> list[IndexRange]:
        return [IndexRange(1, 0, 1, ignored=self.ignore_index)]

    def infer(self, predictions: TensorType, targets: TensorType, weights: TensorType) -> Type:
        return self.type_of_compute(predictions, targets, weights)
