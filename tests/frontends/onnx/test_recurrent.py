"""RNN, LSTM, GRU, against equations written out in numpy (float64)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.errors import BadNode
from loopwright.frontends.op_errors import OpAttributeInvalid
from tests.frontends.onnx.one_node import one_node
from tests.frontends.onnx.onnx_models import random

TIMES, BATCH, FEATURES, HIDDEN = 4, 3, 2, 5
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(op: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, w: Any, r: Any, wb: Any, rb: Any, p: Any, linear: bool):
    if op == "RNN":
        return np.tanh(x @ w.T + h @ r.T + wb + rb), c
    if op == "LSTM":
        i, o, f, g = np.split(x @ w.T + h @ r.T + wb + rb, 4, axis=1)
        pi, po, pf = np.split(p, 3)
        new = sigmoid(f + pf * c) * c + sigmoid(i + pi * c) * np.tanh(g)
        return sigmoid(o + po * new) * np.tanh(new), new
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    (bz, br, bh), (cz, cr, ch) = np.split(wb, 3), np.split(rb, 3)
    z, reset = sigmoid(x @ wz.T + h @ rz.T + bz + cz), sigmoid(x @ wr.T + h @ rr.T + br + cr)
    inner = reset * (h @ rh.T + ch) if linear else (reset * h) @ rh.T + ch
    return (1 - z) * np.tanh(x @ wh.T + inner + bh) + z * h, c


def meaning(op: str, inputs: list[Any], backwards: list[bool], linear: bool) -> list[np.ndarray]:
    x, w, r, b, lengths, h0, c0, p = (None if one is None else one.astype(np.float64) for one in inputs)
    times, batch, _ = x.shape
    hidden = r.shape[2]
    y = np.zeros((times, len(backwards), batch, hidden))
    last_h, last_c = np.zeros((2, len(backwards), batch, hidden))
    for d, back in enumerate(backwards):
        wb, rb = np.split(b[d], 2) if b is not None else (np.zeros(w.shape[1]),) * 2
        peepholes = p[d] if p is not None else np.zeros(3 * hidden)
        for n in range(batch):
            h = h0[d, n : n + 1] if h0 is not None else np.zeros((1, hidden))
            c = c0[d, n : n + 1] if c0 is not None else np.zeros((1, hidden))
            length = times if lengths is None else int(lengths[n])
            for t in range(length)[:: -1 if back else 1]:
                h, c = step(op, x[t, n : n + 1], h, c, w[d], r[d], wb, rb, peepholes, linear)
                y[t, d, n] = h
            last_h[d, n], last_c[d, n] = h, c
    return [y, last_h, last_c]


def inputs_of(op: str, directions: int, lengths: bool, initial: bool, times: int = TIMES) -> list[Any]:
    rows = GATES[op] * HIDDEN
    made = [
        random(times, BATCH, FEATURES),
        random(directions, rows, FEATURES, seed=1),
        random(directions, rows, HIDDEN, seed=2),
    ]
    states = (
        [random(directions, BATCH, HIDDEN, seed=4), random(directions, BATCH, HIDDEN, seed=5)]
        if initial
        else [None] * 2
    )
    return [
        *made,
        random(directions, 2 * rows, seed=3) if initial else None,
        np.int32([times, 1, times - 1]) if lengths else None,
        *(states if op == "LSTM" else [states[0], None]),
        random(directions, 3 * HIDDEN, seed=6) if op == "LSTM" and initial else None,
    ]


def check(
    op: str, direction: str, lengths: bool, initial: bool, runner: Any = interpreted, times: int = TIMES, **options: Any
):
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    given = inputs_of(op, len(backwards), lengths, initial, times)
    wanted = meaning(op, given, backwards, bool(options.get("linear_before_reset")))
    taken = given if op == "LSTM" else given[:6]
    outputs = 3 if op == "LSTM" else 2
    graph, feed = one_node(op, taken, outputs, hidden_size=HIDDEN, direction=direction, **options)
    for found, expected in zip(CompiledModel(graph, make_runner=runner).run(feed), wanted):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions_lengths_and_first_states(op, direction):
    for lengths, initial in itertools.product([False, True], repeat=2):
        check(op, direction, lengths, initial)


def test_the_reset_gate_of_a_gru_after_its_product():
    check("GRU", "bidirectional", True, True, linear_before_reset=1)


@pytest.mark.parametrize("op", GATES)
def test_many_times_are_a_loop(op):
    check(op, "reverse", True, True, times=70)


def test_a_loop_natively():
    check("LSTM", "forward", False, True, runner=None, times=70)


def test_the_batch_in_front():
    given = inputs_of("GRU", 1, False, True)[:6]
    graph, feed = one_node("GRU", given, 2, hidden_size=HIDDEN)
    y, h = CompiledModel(graph, make_runner=interpreted).run(feed)
    turned = [given[0].swapaxes(0, 1), *given[1:5], given[5].swapaxes(0, 1)]
    graph, feed = one_node("GRU", turned, 2, hidden_size=HIDDEN, layout=1)
    y1, h1 = CompiledModel(graph, make_runner=interpreted).run(feed)
    np.testing.assert_allclose(y1, y.transpose(2, 0, 1, 3), rtol=1e-6)
    np.testing.assert_allclose(h1, h.swapaxes(0, 1), rtol=1e-6)


def test_activations_with_numbers_and_clipping():
    given = inputs_of("RNN", 1, False, False)[:3]
    graph, feed = one_node(
        "RNN",
        given,
        2,
        hidden_size=HIDDEN,
        activations=["HardSigmoid"],
        activation_alpha=[0.3],
        activation_beta=[0.4],
        clip=0.7,
    )
    y, _ = CompiledModel(graph, make_runner=interpreted).run(feed)
    h = np.zeros((BATCH, HIDDEN))
    for t in range(TIMES):
        h = np.clip(0.3 * np.clip(given[0][t] @ given[1][0].T + h @ given[2][0].T, -0.7, 0.7) + 0.4, 0, 1)
        np.testing.assert_allclose(y[t, 0], h, rtol=1e-5)


def test_an_activation_that_is_not_known_is_refused():
    graph, _ = one_node("RNN", inputs_of("RNN", 1, False, False)[:3], 2, hidden_size=HIDDEN, activations=["Sine"])
    with pytest.raises(OpAttributeInvalid, match="activations is 'sine'"):
        CompiledModel(graph, make_runner=interpreted)


def test_weights_of_another_operator_are_refused():
    graph, _ = one_node("LSTM", inputs_of("GRU", 1, False, False)[:3], 2, hidden_size=HIDDEN)
    with pytest.raises(BadNode, match=r"weights of shape \(1, 15, 2\) and \(1, 15, 5\) are given"):
        CompiledModel(graph, make_runner=interpreted)
