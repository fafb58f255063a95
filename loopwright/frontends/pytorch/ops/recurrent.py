"""Recurrent layers: LSTM, GRU and plain ones, in several layers and both directions.

What a layer computes of its input alone is one product for all steps. The steps that follow one another are unrolled
where they are few, and a loop of the graph otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopwright import relay
from loopwright.frontends.common.products import dense
from loopwright.frontends.common.repeat import limit_of, turns_of
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.relay.expr import Expr

# One step: what the layer computes of its input, the states before, and the weights of the states; the states after.
# The first state is also the output.
Cell = Callable[[Node, Expr, list[Expr], "Weights"], list[Expr]]


class Weights:
    """The weights of one layer in one direction."""

    def __init__(self, given: Sequence[Expr], biases: bool) -> None:
        self.of_input, self.of_state, *rest = given
        self.bias_input: Expr | None = rest.pop(0) if biases else None
        self.bias_state: Expr | None = rest.pop(0) if biases else None
        self.projection: Expr | None = rest.pop(0) if rest else None

    def state(self, node: Node, h: Expr) -> Expr:
        result = dense(node, h, self.of_state)
        return result if self.bias_state is None else relay.add(result, self.bias_state)


def _parts(x: Expr, count: int) -> list[Expr]:
    return list(relay.split(x, count, axis=-1))


def lstm_cell(node: Node, x: Expr, states: list[Expr], weights: Weights) -> list[Expr]:
    h, c = states
    enter, forget, new, out = _parts(relay.add(x, weights.state(node, h)), 4)
    kept = relay.multiply(relay.sigmoid(forget), c)
    c = relay.add(kept, relay.multiply(relay.sigmoid(enter), relay.tanh(new)))
    h = relay.multiply(relay.sigmoid(out), relay.tanh(c))
    return [h if weights.projection is None else dense(node, h, weights.projection), c]


def gru_cell(node: Node, x: Expr, states: list[Expr], weights: Weights) -> list[Expr]:
    (h,) = states
    reset_x, update_x, new_x = _parts(x, 3)
    reset_h, update_h, new_h = _parts(weights.state(node, h), 3)
    reset = relay.sigmoid(relay.add(reset_x, reset_h))
    update = relay.sigmoid(relay.add(update_x, update_h))
    new = relay.tanh(relay.add(new_x, relay.multiply(reset, new_h)))
    return [relay.add(new, relay.multiply(update, relay.subtract(h, new)))]


def tanh_cell(node: Node, x: Expr, states: list[Expr], weights: Weights) -> list[Expr]:
    return [relay.tanh(relay.add(x, weights.state(node, states[0])))]


def relu_cell(node: Node, x: Expr, states: list[Expr], weights: Weights) -> list[Expr]:
    return [relay.nn.relu(relay.add(x, weights.state(node, states[0])))]


@converter("lstm.input")
def lstm(node: Node, x: Expr, states: Sequence[Expr], weights: Sequence[Expr], *rest: Any) -> list[Expr]:
    return _layers(node, lstm_cell, x, list(states), weights, *rest)


@converter("gru.input")
def gru(node: Node, x: Expr, state: Expr, weights: Sequence[Expr], *rest: Any) -> list[Expr]:
    return _layers(node, gru_cell, x, [state], weights, *rest)


@converter("rnn_tanh.input")
def rnn_tanh(node: Node, x: Expr, state: Expr, weights: Sequence[Expr], *rest: Any) -> list[Expr]:
    return _layers(node, tanh_cell, x, [state], weights, *rest)


@converter("rnn_relu.input")
def rnn_relu(node: Node, x: Expr, state: Expr, weights: Sequence[Expr], *rest: Any) -> list[Expr]:
    return _layers(node, relu_cell, x, [state], weights, *rest)


def _layers(
    node: Node,
    cell: Cell,
    x: Expr,
    states: list[Expr],
    weights: Sequence[Expr],
    biases: bool,
    count: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Expr]:
    """Layer upon layer: the outputs of the last one, and the last states of all of them."""
    if dropout and train:
        raise node.unsupported("dropping elements, as in training", hint="call model.eval() before it is exported")
    single = node.rank(x) == 2
    if single:
        x = relay.expand_dims(x, axis=1)
        states = [relay.expand_dims(state, axis=1) for state in states]
    elif batch_first:
        x = relay.transpose(x, axes=[1, 0, 2])
    directions = 2 if bidirectional else 1
    each = len(weights) // (count * directions)
    last: list[list[Expr]] = [[] for _ in states]
    for layer in range(count):
        outputs = []
        for direction in range(directions):
            location = layer * directions + direction
            own = Weights(weights[location * each : (location + 1) * each], biases)
            begin = [relay.take(state, node.const(location), axis=0) for state in states]
            out, after = _steps(node, cell, x, begin, own, backwards=direction == 1)
            outputs.append(out)
            for held, one in zip(last, after):
                held.append(one)
        x = outputs[0] if directions == 1 else relay.concatenate(outputs, axis=2)
    finals = [relay.stack(held, axis=0) for held in last]
    if single:
        return [relay.squeeze(x, axis=[1]), *(relay.squeeze(one, axis=[1]) for one in finals)]
    return [relay.transpose(x, axes=[1, 0, 2]) if batch_first else x, *finals]


def _steps(
    node: Node, cell: Cell, x: Expr, begin: list[Expr], weights: Weights, backwards: bool
) -> tuple[Expr, list[Expr]]:
    """One layer in one direction: the outputs of all steps, and the states after the last."""
    before = dense(node, x, weights.of_input)
    if weights.bias_input is not None:
        before = relay.add(before, weights.bias_input)
    if backwards:
        before = relay.reverse(before, axis=0)

    def step(turn: Expr, values: list[Expr]) -> tuple[Expr | None, list[Expr], list[Expr]]:
        after = cell(node, relay.take(before, turn, axis=0), values, weights)
        return None, after, [after[0]]

    states, (rows,) = turns_of(node, step, begin, limit_of(node, before, 0), rows=1, nodes=20)
    return (relay.reverse(rows, axis=0) if backwards else rows), states
