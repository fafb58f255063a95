"""Losses: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss."""

from __future__ import annotations

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr


@converter("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(node: Node, x: Expr, target: Expr, weight: Expr | None = None) -> Expr:
    return _loss(node, x, target, weight)


@converter("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(node: Node, scores: Expr, target: Expr, weight: Expr | None = None) -> list[Expr]:
    """The loss of log(softmax(scores)) along axis 1, and that itself."""
    log = relay.nn.log_softmax(scores, axis=1)
    return [_loss(node, log, target, weight), log]


def _loss(node: Node, log: Expr, target: Expr, weight: Expr | None) -> Expr:
    """Minus the logarithm at each target class, times the weight of that class; targets may be left out."""
    reduction = node.attr("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise node.invalid("reduction", reduction, "none, sum or mean")
    classes = node.cast(target, "int64")
    ignored = node.attr("ignore_index", None)
    counts: Expr | None = None
    if ignored is not None:
        is_target = relay.not_equal(classes, node.const(ignored))
        classes = relay.where(is_target, classes, node.const(0))
        counts = node.cast(is_target, log)
    if weight is not None:
        shares = relay.take(weight, classes, axis=0, mode="fast")
        counts = shares if counts is None else relay.multiply(shares, counts)
    chosen = relay.squeeze(relay.gather(log, 1, relay.expand_dims(classes, axis=1)), axis=[1])
    loss = relay.negative(chosen)
    if counts is not None:
        loss = relay.multiply(loss, counts)
    if reduction == "none":
        return loss
    axes = list(range(node.rank(loss)))
    total = relay.sum(loss, axis=axes)
    if reduction == "sum":
        return total
    if counts is None:
        return relay.mean(loss, axis=axes)
    return relay.divide(total, relay.sum(counts, axis=axes))
