"""RNN, LSTM, GRU: forwards, backwards or both; peepholes, clipping, activations of choice, sequences of own lengths.

What the input adds to the gates is one product for all times; the steps add what the state does. Few steps are
unrolled, many are a loop of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright import relay
from loopwright.frontends.common.repeat import Limit, at_turn, limit_of, turns_of
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.activation import softplus_of
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import times

Activation = Callable[[Expr], Expr]

_NODES: Final = 32  # of a step, about: no more than 8 of them are unrolled

# Name → default alpha and beta, and the function of x, alpha, beta.
_DEFAULTS: Final = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, 0.0),
    "thresholdedrelu": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}
_PLAIN: Final = ("relu", "tanh", "sigmoid", "softsign", "softplus")


def _activation(node: Node, name: str, alpha: float, beta: float) -> Activation:
    def apply(x: Expr) -> Expr:
        a, b = node.const(alpha, x), node.const(beta, x)
        zero, one = node.const(0, x), node.const(1, x)
        match name:
            case "relu":
                return relay.nn.relu(x)
            case "tanh":
                return relay.tanh(x)
            case "sigmoid":
                return relay.sigmoid(x)
            case "softsign":
                return relay.divide(x, relay.add(relay.abs(x), one))
            case "softplus":
                return softplus_of(node, x)
            case "affine":
                return relay.add(relay.multiply(x, a), b)
            case "leakyrelu":
                return relay.nn.leaky_relu(x, alpha=alpha)
            case "thresholdedrelu":
                return relay.where(relay.greater(x, a), x, zero)
            case "scaledtanh":
                return relay.multiply(relay.tanh(relay.multiply(x, b)), a)
            case "hardsigmoid":
                return relay.clip(relay.add(relay.multiply(x, a), b), 0.0, 1.0)
            case _:
                below = relay.multiply(a, relay.subtract(relay.exp(relay.minimum(x, zero)), one))
                return relay.where(relay.less(x, zero), below, x)

    return apply


def _activations(node: Node, default: Sequence[str], directions: int, limited: int) -> list[list[Activation]]:
    """The activations of each direction, with the numbers that belong to them; `clip` holds for the first `limited`."""
    names = [name.lower() for name in node.attr("activations", None) or list(default) * directions]
    if len(names) != len(default) * directions:
        raise node.bad(f"activations are {names}, and {len(default) * directions} are needed")
    alphas: list[float] = list(node.attr("activation_alpha", []))
    betas: list[float] = list(node.attr("activation_beta", []))
    result: list[Activation] = []
    for index, name in enumerate(names):
        if name not in _PLAIN and name not in _DEFAULTS:
            raise node.invalid("activations", name, ", ".join([*_PLAIN, *_DEFAULTS]))
        alpha, beta = _DEFAULTS.get(name, (0.0, 0.0))
        if name in _DEFAULTS:
            alpha = alphas.pop(0) if alphas else alpha
            if name in ("affine", "scaledtanh", "hardsigmoid"):
                beta = betas.pop(0) if betas else beta
        function = _activation(node, name, alpha, beta)
        result.append(_limited(node, function) if index % len(default) < limited else function)
    count = len(default)
    return [result[k * count : (k + 1) * count] for k in range(directions)]


def _limited(node: Node, function: Activation) -> Activation:
    """With what goes in cut off at `clip`."""
    bound = node.attr("clip", None)
    if not bound:
        return function
    return lambda x: function(relay.clip(x, -float(bound), float(bound)))


@dataclass(frozen=True)
class _Weights:
    """What one direction works with: gates × hidden rows for the input and for the state, and biases."""

    gates: int
    hidden: int
    w: Expr
    r: Expr
    input_bias: Expr | None
    state_bias: Expr | None
    peepholes: list[Expr] | None


# One step: what the input adds to the gates, and the states → the new states, the output first.
Cell = Callable[[Expr, list[Expr]], list[Expr]]


class _Recurrent:
    """One node: its data, brought into the order times, batch, features."""

    def __init__(
        self,
        node: Node,
        gates: int,
        x: Expr,
        w: Expr,
        r: Expr,
        b: Expr | None,
        lengths: Expr | None,
        first: Sequence[Expr | None],
        p: Expr | None = None,
    ) -> None:
        self.node = node
        self.batch_first = bool(node.attr("layout", 0))
        direction = node.attr("direction", "forward") or "forward"
        if direction not in ("forward", "reverse", "bidirectional"):
            raise node.invalid("direction", direction, "forward, reverse or bidirectional")
        self.backwards = [direction == "reverse"] if direction != "bidirectional" else [False, True]
        self.x = relay.transpose(x, axes=[1, 0, 2]) if self.batch_first else x
        self.times, self.batch, self.features = node.shape(self.x)
        self.lengths = lengths
        if lengths is not None:
            known = node.known(lengths)
            if known is not None and isinstance(self.times, int) and (known == self.times).all():
                self.lengths = None  # all of them are as long as they can be
        directions, rows, hidden = node.static_shape(r)
        if directions != len(self.backwards) or rows != gates * hidden or len(node.shape(w)) != 3:
            shapes = f"{node.shape(w)} and {node.shape(r)}"
            raise node.bad(f"weights of shape {shapes} are given for {direction} and {gates} gates")
        given = node.attr("hidden_size", hidden)
        if given != hidden:
            raise node.bad(f"hidden_size is {given}, and the weights have {hidden}")
        self.hidden = hidden
        self.weights = [self._weights(k, gates, w, r, b, p) for k in range(directions)]
        self.first = [self._first(one) for one in first]

    def _part(self, x: Expr, direction: int) -> Expr:
        """What one direction has of a tensor: the first axis is that of directions."""
        return relay.take(x, self.node.const(direction), axis=0)

    def _weights(self, direction: int, gates: int, w: Expr, r: Expr, b: Expr | None, p: Expr | None) -> _Weights:
        of_input, of_state = (None, None) if b is None else relay.split(self._part(b, direction), 2, axis=0)
        peepholes = None if p is None else list(relay.split(self._part(p, direction), 3, axis=0))
        rows = self._part(w, direction), self._part(r, direction)
        return _Weights(gates, self.hidden, *rows, of_input, of_state, peepholes)

    def _first(self, given: Expr | None) -> list[Expr]:
        """The state at the beginning, for each direction; zeros where none is given."""
        kind = str(self.node.dtype(self.x))
        if given is None:
            return [relay.zeros((self.batch, self.hidden), kind) for _ in self.backwards]
        transposed = relay.transpose(given, axes=[1, 0, 2]) if self.batch_first else given
        return [self._part(transposed, k) for k in range(len(self.backwards))]

    def run(self, cells: Sequence[Cell], whole_bias: Callable[[_Weights], Expr | None]) -> list[Expr]:
        """The outputs of all times, and the states at the end."""
        outputs: list[Expr] = []
        last: list[list[Expr]] = []
        for direction, cell in enumerate(cells):
            rows, states = self._run(direction, cell, whole_bias)
            outputs.append(rows)
            last.append(states)
        node = self.node
        y = relay.stack(outputs, axis=1)  # times, directions, batch, hidden
        ends = [relay.stack([one[k] for one in last], axis=0) for k in range(len(self.first))]
        if self.batch_first:
            y = relay.transpose(y, axes=[2, 0, 1, 3])
            ends = [relay.transpose(one, axes=[1, 0, 2]) for one in ends]
        return [y if node.wants(0) else None, *ends]

    def _run(
        self, direction: int, cell: Cell, whole_bias: Callable[[_Weights], Expr | None]
    ) -> tuple[Expr, list[Expr]]:
        node, weights = self.node, self.weights[direction]
        data = self._turned(self.x, direction)
        flat = relay.reshape(data, (times(self.times, self.batch), self.features), allowzero=True)
        added = relay.nn.dense(flat, weights.w)
        bias = whole_bias(weights)
        if bias is not None:
            added = relay.add(added, bias)
        rows = relay.reshape(added, (self.times, self.batch, weights.gates * self.hidden), allowzero=True)

        def step(turn: Expr, states: list[Expr]) -> tuple[Expr | None, list[Expr], list[Expr]]:
            new = cell(at_turn(node, rows, turn, 0), states)
            if self.lengths is None:
                return None, new, [new[0]]
            # Past the end of a sequence its states stay, and its outputs are zero.
            inside = relay.expand_dims(relay.less(turn, node.cast(self.lengths, "int64")), axis=1)
            kept = [relay.where(inside, one, before) for one, before in zip(new, states)]
            return None, kept, [relay.where(inside, new[0], node.const(0, new[0]))]

        limit: Limit = limit_of(node, self.x, 0)
        states, result = turns_of(node, step, [one[direction] for one in self.first], limit, 1, _NODES)
        return self._turned(result[0], direction), states

    def _turned(self, x: Expr, direction: int) -> Expr:
        """Times from the last to the first, for the direction that runs so; of each sequence from its own last."""
        if not self.backwards[direction]:
            return x
        if self.lengths is None:
            return relay.reverse(x, 0)
        return relay.reverse_sequence(x, self.lengths, seq_axis=0, batch_axis=1)


def _all_biases(weights: _Weights) -> Expr | None:
    if weights.input_bias is None:
        return None
    return relay.add(weights.input_bias, weights.state_bias)


@converter("RNN")
def rnn(
    node: Node, x: Expr, w: Expr, r: Expr, b: Expr | None = None, lengths: Expr | None = None, h: Expr | None = None
) -> list[Expr]:
    whole = _Recurrent(node, 1, x, w, r, b, lengths, [h])
    chosen = _activations(node, ["Tanh"], len(whole.weights), limited=1)

    def cell_of(weights: _Weights, f: Activation) -> Cell:
        return lambda added, states: [f(relay.add(added, relay.nn.dense(states[0], weights.r)))]

    return whole.run([cell_of(weights, f) for weights, (f,) in zip(whole.weights, chosen)], _all_biases)


@converter("LSTM")
def lstm(
    node: Node,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    lengths: Expr | None = None,
    h: Expr | None = None,
    c: Expr | None = None,
    p: Expr | None = None,
) -> list[Expr]:
    """Gates in the order input, output, forget, cell. As in ONNX Runtime, `clip` holds for gates, not for the state."""
    whole = _Recurrent(node, 4, x, w, r, b, lengths, [h, c], p)
    chosen = _activations(node, ["Sigmoid", "Tanh", "Tanh"], len(whole.weights), limited=2)
    coupled = bool(node.attr("input_forget", 0))

    def cell_of(weights: _Weights, functions: Sequence[Activation]) -> Cell:
        f, g, last = functions

        def with_peephole(gate: Expr, index: int, state: Expr) -> Expr:
            if weights.peepholes is None:
                return gate
            return relay.add(gate, relay.multiply(weights.peepholes[index], state))

        def cell(added: Expr, states: list[Expr]) -> list[Expr]:
            before, memory = states
            i, o, forget, new = relay.split(relay.add(added, relay.nn.dense(before, weights.r)), 4, axis=1)
            used = f(with_peephole(i, 0, memory))
            if coupled:
                kept = relay.subtract(node.const(1, used), used)
            else:
                kept = f(with_peephole(forget, 2, memory))
            now = relay.add(relay.multiply(kept, memory), relay.multiply(used, g(new)))
            return [relay.multiply(f(with_peephole(o, 1, now)), last(now)), now]

        return cell

    return whole.run([cell_of(weights, functions) for weights, functions in zip(whole.weights, chosen)], _all_biases)


@converter("GRU")
def gru(
    node: Node, x: Expr, w: Expr, r: Expr, b: Expr | None = None, lengths: Expr | None = None, h: Expr | None = None
) -> list[Expr]:
    """Gates in the order update, reset, hidden."""
    whole = _Recurrent(node, 3, x, w, r, b, lengths, [h])
    chosen = _activations(node, ["Sigmoid", "Tanh"], len(whole.weights), limited=2)
    linear_first = bool(node.attr("linear_before_reset", 0))
    hidden = whole.hidden

    def cell_of(weights: _Weights, functions: Sequence[Activation]) -> Cell:
        f, g = functions
        cuts = [2 * hidden]
        for_gates, for_new = relay.split(weights.r, cuts, axis=0)
        state_bias = None if weights.state_bias is None else relay.split(weights.state_bias, cuts, axis=0)[1]

        def cell(added: Expr, states: list[Expr]) -> list[Expr]:
            (before,) = states
            gates, new = relay.split(added, cuts, axis=1)
            update, reset = relay.split(f(relay.add(gates, relay.nn.dense(before, for_gates))), 2, axis=1)
            if linear_first:
                inner = relay.nn.dense(before, for_new)
                inner = inner if state_bias is None else relay.add(inner, state_bias)
                result = g(relay.add(new, relay.multiply(reset, inner)))
            else:
                result = g(relay.add(new, relay.nn.dense(relay.multiply(reset, before), for_new)))
            rest = relay.subtract(node.const(1, update), update)
            return [relay.add(relay.multiply(rest, result), relay.multiply(update, before))]

        return cell

    def whole_bias(weights: _Weights) -> Expr | None:
        if not linear_first or weights.input_bias is None:
            return _all_biases(weights)
        # The bias of the hidden gate is reset with the state it is added to.
        gates, _ = relay.split(weights.state_bias, [2 * hidden], axis=0)
        none = relay.zeros((hidden,), str(node.dtype(x)))
        return relay.add(weights.input_bias, relay.concatenate([gates, none], axis=0))

    return whole.run([cell_of(weights, functions) for weights, functions in zip(whole.weights, chosen)], whole_bias)
