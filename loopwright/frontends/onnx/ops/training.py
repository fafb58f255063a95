"""Steps of training: Adagrad, Adam, Momentum. A node steps several tensors, its inputs grouped by what they are.

    rate, count, X1, X2, G1, G2, H1, H2    →    X1', X2', H1', H2'
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr

_DOMAIN = "ai.onnx.preview.training"


def _grouped(node: Node, tensors: Sequence[Expr], groups: int) -> list[tuple[Expr, ...]]:
    """For each tensor that is stepped: itself, its gradient, and what is kept of it."""
    count, rest = divmod(len(tensors), groups)
    if rest or not count:
        raise node.bad(f"{len(tensors)} tensors do not make {groups} groups")
    return list(zip(*(tensors[k * count : (k + 1) * count] for k in range(groups))))


def _ungrouped(results: Sequence[tuple[Expr, ...]]) -> list[Expr]:
    return [tensor for group in zip(*results) for tensor in group]


def _scaled(node: Node, factor: float, x: Expr) -> Expr:
    return relay.multiply(node.const(factor, x), x)


def _gradient(node: Node, x: Expr, gradient: Expr) -> Expr:
    """The gradient, with that of the squares of the tensor."""
    return relay.add(_scaled(node, node.attr("norm_coefficient", 0.0), x), gradient)


def _single(x: Expr) -> Expr:
    return relay.reshape(x, ())


@converter("Adagrad", domain=_DOMAIN)
def adagrad(node: Node, rate: Expr, count: Expr, *tensors: Expr) -> list[Expr]:
    past = _scaled(node, node.attr("decay_factor", 0.0), node.cast(_single(count), rate))
    speed = relay.divide(_single(rate), relay.add(node.const(1, rate), past))
    results = []
    for x, given, squares in _grouped(node, tensors, 3):
        gradient = _gradient(node, x, given)
        total = relay.add(squares, relay.multiply(gradient, gradient))
        root = relay.add(relay.sqrt(total), node.const(node.attr("epsilon", 1e-6), x))
        step = relay.divide(relay.multiply(node.cast(speed, x), gradient), root)
        results.append((relay.subtract(x, step), total))
    return _ungrouped(results)


@converter("Adam", domain=_DOMAIN)
def adam(node: Node, rate: Expr, count: Expr, *tensors: Expr) -> list[Expr]:
    alpha, beta = node.attr("alpha", 0.9), node.attr("beta", 0.999)
    turns, one = node.cast(_single(count), rate), node.const(1, rate)

    def missing(factor: float) -> Expr:
        """How much of an average is not that of the zeros it began with."""
        return relay.subtract(one, relay.power(node.const(factor, rate), turns))

    corrected = relay.divide(relay.multiply(_single(rate), relay.sqrt(missing(beta))), missing(alpha))
    speed = relay.where(relay.greater(turns, node.const(0, rate)), corrected, _single(rate))
    results = []
    for x, given, mean, squares in _grouped(node, tensors, 4):
        gradient = _gradient(node, x, given)
        mean = relay.add(_scaled(node, alpha, mean), _scaled(node, 1 - alpha, gradient))
        squared = relay.multiply(gradient, gradient)
        squares = relay.add(_scaled(node, beta, squares), _scaled(node, 1 - beta, squared))
        root = relay.add(relay.sqrt(squares), node.const(node.attr("epsilon", 1e-6), x))
        moved = relay.subtract(x, relay.divide(relay.multiply(node.cast(speed, x), mean), root))
        after = node.attr("norm_coefficient_post", 0.0)
        results.append((moved if after == 0.0 else _scaled(node, 1 - after, moved), mean, squares))
    return _ungrouped(results)


@converter("Momentum", domain=_DOMAIN)
def momentum(node: Node, rate: Expr, count: Expr, *tensors: Expr) -> list[Expr]:
    mode = node.attr("mode", "standard")
    if mode not in ("standard", "nesterov"):
        raise node.invalid("mode", mode, "standard or nesterov")
    alpha = node.attr("alpha")
    is_first = relay.equal(_single(count), node.const(0, count))
    results = []
    for x, given, moving in _grouped(node, tensors, 3):
        gradient = _gradient(node, x, given)
        share = relay.where(is_first, node.const(1, x), node.const(node.attr("beta"), x))
        moving = relay.add(_scaled(node, alpha, moving), relay.multiply(share, gradient))
        step = moving if mode == "standard" else relay.add(gradient, _scaled(node, alpha, moving))
        results.append((relay.subtract(x, relay.multiply(node.cast(_single(rate), x), step)), moving))
    return _ungrouped(results)
