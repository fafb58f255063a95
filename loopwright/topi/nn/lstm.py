"""lstm: long short-term memory, a recurrence over the first axis of its input.

    gates = Wi x + Bi + Wh h' + Bh,  cut into i, f, g, o                 h', c' are those of the step before
    c = f_act(f) · c' + f_act(i) · g_act(g)            h = f_act(o) · h_act(c)

The input's part of the gates is one product for all steps, before the recurrence (`te.scan`) begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from loopwright import te
from loopwright.ir import Expr, const
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.nn.matmul import matmul
from loopwright.topi.parts.sizes import check_rank, check_same, known, multiple_of, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import rounded_sample, sigmoid, stacked
from loopwright.topi.samples import real_numbers

Activation = Callable[[te.Tensor], te.Tensor]


def _lstm(
    xs: np.ndarray,
    wi: np.ndarray,
    wh: np.ndarray,
    bi: np.ndarray | None = None,
    bh: np.ndarray | None = None,
    h_init: np.ndarray | None = None,
    c_init: np.ndarray | None = None,
    proj: np.ndarray | None = None,
    p_i: np.ndarray | None = None,
    p_f: np.ndarray | None = None,
    p_o: np.ndarray | None = None,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> list[np.ndarray]:
    steps, batch = xs.shape[:2]
    size = wi.shape[0] // 4
    h = np.zeros((batch, wh.shape[1])) if h_init is None else h_init
    c = np.zeros((batch, size)) if c_init is None else c_init
    hidden, cells = [], []
    for step in reversed(range(steps)) if reverse else range(steps):
        gates = np.matmul(xs[step], wi.transpose()) + np.matmul(h, wh.transpose())
        for bias in (bi, bh):
            gates = gates if bias is None else gates + bias
        i, f, g, o = (gates[:, weight_layout.index(gate) * size :][:, :size] for gate in "IFGO")
        i, f = (gate if hole is None else gate + hole * c for gate, hole in ((i, p_i), (f, p_f)))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o if p_o is None else o + p_o * c) * np.tanh(c)
        h = h if proj is None else np.matmul(h, proj.transpose())
        hidden.append(h)
        cells.append(c)
    return [stacked(hidden), stacked(cells)]


def _samples() -> Iterator[Sample]:
    def weights(inputs: int, size: int, back: int, dtype: str = "float32") -> tuple[np.ndarray, ...]:
        return real_numbers((4 * size, inputs), dtype), real_numbers((4 * size, back), dtype)

    xs = real_numbers((3, 2, 4))
    biases = {"bi": real_numbers((20,)), "bh": real_numbers((20,), shift=0.5)}
    states = {"h_init": real_numbers((2, 5)), "c_init": real_numbers((2, 5), shift=0.5)}
    yield _named(xs, *weights(4, 5, 5))
    yield _named(xs, *weights(4, 5, 5), **biases, **states, weight_layout="IOFG", reverse=True)
    holes = {name: real_numbers((2, 5), shift=shift) for name, shift in (("p_i", 0.1), ("p_f", 0.2), ("p_o", 0.3))}
    yield _named(xs, *weights(4, 5, 3), proj=real_numbers((3, 5)), **holes)
    yield _named(real_numbers((1, 1, 3), "float64"), *weights(3, 2, 2, "float64"))


def _named(*args: np.ndarray | None, **attributes: Any) -> Sample:
    """A sample by position, up to the last weight: the operator's names for them are longer than the reference's."""
    order = ("bi", "bh", "h_init", "c_init", "proj", "p_i", "p_f", "p_o")
    given = [attributes.pop(name, None) for name in order]
    return rounded_sample(_lstm, *args, *given, **attributes)


@operator(reference=_lstm, samples=_samples, name="nn.lstm")
def lstm(
    Xs: te.Tensor,
    Wi: te.Tensor,
    Wh: te.Tensor,
    Bi: te.Tensor | None = None,
    Bh: te.Tensor | None = None,
    h_init: te.Tensor | None = None,
    c_init: te.Tensor | None = None,
    proj: te.Tensor | None = None,
    p_i: te.Tensor | None = None,
    p_f: te.Tensor | None = None,
    p_o: te.Tensor | None = None,
    f_act: Activation = te.sigmoid,
    g_act: Activation = te.tanh,
    h_act: Activation = te.tanh,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> tuple[te.Tensor, te.Tensor]:
    """The hidden states and the cell states after each step.

    Xs is (steps, batch, in), Wi (4 · size, in), Wh (4 · size, size), the biases (4 · size,); `weight_layout` says in
    which order the gates stand in them. The states begin with h_init and c_init, or zeros. `proj` (out, size) projects
    the hidden state, p_i, p_f and p_o (batch, size) let the gates see the cells. With `reverse` the last input comes
    first; states stand in the order in which they were computed.
    """
    op = "lstm"
    check_rank(op, "input", Xs, "(steps, batch, in)", 3)
    check_rank(op, "input weight", Wi, "(4 · size, in)", 2)
    check_rank(op, "hidden weight", Wh, "(4 · size, size)", 2)
    if sorted(weight_layout) != sorted("IFGO"):
        raise InvalidShapeError(op, f"weight_layout is {weight_layout!r}", "order the letters I, F, G, O")
    steps, batch, inputs = Xs.shape
    size, back = simplify(Wi.shape[0] // 4), Wh.shape[1]
    check_same(op, "inputs differ", ("Xs", inputs), ("Wi", Wi.shape[1]))
    check_same(op, "gates differ", ("Wi", Wi.shape[0]), ("Wh", Wh.shape[0]))
    check_same(op, "hidden states differ", ("Wh", back), ("the result", size if proj is None else proj.shape[0]))
    if not multiple_of(Wi.shape[0], 4):
        raise InvalidShapeError(op, f"Wi has {known(Wi.shape[0])} rows, not four for each cell", "there are four gates")
    wide = size if proj is None else proj.shape[0]
    for name, given, shape in (
        ("Bi", Bi, (Wi.shape[0],)),
        ("Bh", Bh, (Wi.shape[0],)),
        ("h_init", h_init, (batch, wide)),
        ("c_init", c_init, (batch, size)),
        ("proj", proj, (wide, size)),
        ("p_i", p_i, (batch, size)),
        ("p_f", p_f, (batch, size)),
        ("p_o", p_o, (batch, size)),
    ):
        if given is not None:
            check_rank(op, name, given, "of the states" if len(shape) == 2 else "(4 · size,)", len(shape))
            for axis, want in enumerate(shape):
                check_same(op, f"axis {axis} of {name}", (name, given.shape[axis]), ("the states", want))
    dtype = Xs.dtype

    from_input = matmul(Xs, Wi, transpose_b=True)

    def prepared(t: Expr, b: Expr, g: Expr) -> Expr:
        value: Expr = from_input(t, b, g)
        for bias in (Bi, Bh):
            value = value if bias is None else value + bias(g)
        return value

    x2h = te.compute((steps, batch, Wi.shape[0]), prepared, name="x2h", tag=default_tag(tag.BROADCAST))
    rows, state = simplify(steps + 1), (batch, size)
    h_state = te.placeholder((rows, batch, back), dtype, name="h_state")
    c_state = te.placeholder((rows, *state), dtype, name="c_state")

    def first(given: te.Tensor | None, width: Expr, name: str) -> te.Tensor:
        result: te.Tensor = te.compute(
            (1, batch, width), lambda _, b, h: const(0, dtype) if given is None else given(b, h), name=name
        )
        return result

    k = te.reduce_axis((0, back), name="k")
    h2h = te.compute(
        (rows, batch, Wh.shape[0]),
        lambda t, b, g: te.sum(h_state(t - 1, b, k.var) * Wh(g, k.var), axis=k),
        name="h2h",
    )

    def gate(letter: str, hole: te.Tensor | None = None, cells: te.Tensor | None = None) -> te.Tensor:
        """The gate before its activation: cut out of the product, and with what it sees of the cells."""
        begin = simplify(weight_layout.index(letter) * size)

        def element(t: Expr, b: Expr, h: Expr) -> Expr:
            step = steps - t if reverse else t - 1
            value = x2h(step, b, begin + h) + h2h(t, b, begin + h)
            if hole is None:
                return value
            return value + hole(b, h) * (c_state(t - 1, b, h) if cells is None else cells(t, b, h))

        result: te.Tensor = te.compute((rows, *state), element, name=f"gate_{letter.lower()}")
        return result

    i, f, g = f_act(gate("I", p_i)), f_act(gate("F", p_f)), g_act(gate("G"))
    next_c = te.compute(
        (rows, *state), lambda t, b, h: f(t, b, h) * c_state(t - 1, b, h) + i(t, b, h) * g(t, b, h), name="next_c"
    )
    o, seen = f_act(gate("O", p_o, next_c)), h_act(next_c)
    next_h = te.compute((rows, *state), lambda t, b, h: o(t, b, h) * seen(t, b, h), name="next_h")
    if proj is not None:
        whole, weight, p = next_h, proj, te.reduce_axis((0, size), name="p")
        next_h = te.compute(
            (rows, batch, back),
            lambda t, b, j: te.sum(whole(t, b, p.var) * weight(j, p.var), axis=p),
            name="next_h_proj",
        )
    hidden, cells = te.scan(
        [first(h_init, back, "h_first"), first(c_init, size, "c_first")],
        [next_h, next_c],
        [h_state, c_state],
        name="lstm_scan",
    )

    def after(scanned: te.Tensor, width: Expr, name: str) -> te.Tensor:
        result: te.Tensor = te.compute(
            (steps, batch, width), lambda t, b, h: scanned(t + 1, b, h), name=name, tag=default_tag(tag.INJECTIVE)
        )
        return result

    return after(hidden, back, "hidden_state"), after(cells, size, "cell_state")
