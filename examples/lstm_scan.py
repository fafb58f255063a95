"""An LSTM as a recurrence: te.scan with two states and nine stages a step, and the same loop as a script.

    python examples/lstm_scan.py

Both are compiled and checked against numpy in float64. The scan becomes one ordered loop over time; a schedule may
reorder what lies inside a step, and is refused where it would change the order of steps.
"""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule, ScheduleError
from loopwright.script import tir as T

STEPS, BATCH, HIDDEN = 8, 2, 16


def lstm() -> list[te.Tensor]:
    """Xi2h (the input's part of the gates), Wh2h, and the states h and c after every step."""
    Xi2h = te.placeholder((STEPS, 4, BATCH, HIDDEN), name="Xi2h")
    Wh2h = te.placeholder((4, HIDDEN, HIDDEN), name="Wh2h")
    state = (STEPS, BATCH, HIDDEN)
    h = te.placeholder(state, name="h")
    c = te.placeholder(state, name="c")
    first_h = te.compute((1, BATCH, HIDDEN), lambda _, i, j: te.const(0.0, "float32"), name="first_h")
    first_c = te.compute((1, BATCH, HIDDEN), lambda _, i, j: te.const(0.0, "float32"), name="first_c")

    k = te.reduce_axis((0, HIDDEN), name="k")
    h2h = te.compute(Xi2h.shape, lambda t, g, i, j: te.sum(h[t - 1, i, k] * Wh2h[g, j, k], axis=k), name="h2h")
    gates = te.compute(Xi2h.shape, lambda *i: Xi2h(*i) + h2h(*i), name="gates")
    in_gate = te.compute(state, lambda t, i, j: te.sigmoid(gates[t, 0, i, j]), name="in_gate")
    in_value = te.compute(state, lambda t, i, j: te.tanh(gates[t, 1, i, j]), name="in_value")
    forget = te.compute(state, lambda t, i, j: te.sigmoid(gates[t, 2, i, j]), name="forget")
    out_gate = te.compute(state, lambda t, i, j: te.sigmoid(gates[t, 3, i, j]), name="out_gate")
    kept = te.compute(state, lambda t, i, j: forget[t, i, j] * c[t - 1, i, j], name="kept")
    next_c = te.compute(state, lambda t, i, j: kept[t, i, j] + in_gate[t, i, j] * in_value[t, i, j], name="next_c")
    next_h = te.compute(state, lambda t, i, j: out_gate[t, i, j] * te.tanh(next_c[t, i, j]), name="next_h")
    all_h, all_c = te.scan([first_h, first_c], [next_h, next_c], [h, c], inputs=[Xi2h], name="lstm")
    return [Xi2h, Wh2h, all_h, all_c]


def lstm_script() -> PrimFunc:
    """The same recurrence, written as loops."""
    steps, batch, hidden = STEPS, BATCH, HIDDEN

    @T.prim_func
    def main(
        Xi2h: T.Buffer((steps, 4, batch, hidden), "float32"),
        Wh2h: T.Buffer((4, hidden, hidden), "float32"),
        h: T.Buffer((steps, batch, hidden), "float32"),
        c: T.Buffer((steps, batch, hidden), "float32"),
    ):
        for i, j in T.grid(batch, hidden):
            with T.block("first"):
                vi, vj = T.axis.remap("SS", [i, j])
                h[0, vi, vj] = T.float32(0)
                c[0, vi, vj] = T.float32(0)
        for t in T.serial(1, steps):
            with T.block("step"):
                vt = T.axis.scan((1, steps), t)
                gates = T.alloc_buffer((4, batch, hidden))
                for g, i, j, k in T.grid(4, batch, hidden, hidden):
                    with T.block("gates"):
                        vg, vi, vj, vk = T.axis.remap("SSSR", [g, i, j, k])
                        with T.init():
                            gates[vg, vi, vj] = Xi2h[vt, vg, vi, vj]
                        gates[vg, vi, vj] += h[vt - 1, vi, vk] * Wh2h[vg, vj, vk]
                for i, j in T.grid(batch, hidden):
                    with T.block("next"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        taken: T.float32 = T.sigmoid(gates[0, vi, vj]) * T.tanh(gates[1, vi, vj])
                        c[vt, vi, vj] = T.sigmoid(gates[2, vi, vj]) * c[vt - 1, vi, vj] + taken
                        h[vt, vi, vj] = T.sigmoid(gates[3, vi, vj]) * T.tanh(c[vt, vi, vj])

    return main


def reference(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The states after every step, in float64."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-v))

    x, w = x.astype("float64"), w.astype("float64")
    h, c = np.zeros((STEPS, BATCH, HIDDEN)), np.zeros((STEPS, BATCH, HIDDEN))
    for t in range(1, STEPS):
        gates = x[t] + np.einsum("ik,gjk->gij", h[t - 1], w)
        c[t] = sigmoid(gates[2]) * c[t - 1] + sigmoid(gates[0]) * np.tanh(gates[1])
        h[t] = sigmoid(gates[3]) * np.tanh(c[t])
    return h, c


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (STEPS, 4, BATCH, HIDDEN)).astype("float32")
    w = (rng.uniform(-1, 1, (4, HIDDEN, HIDDEN)) / HIDDEN).astype("float32")
    exact_h, exact_c = reference(x, w)
    # A step sums HIDDEN products of at most 1/HIDDEN each, and its functions are within a few units of their last
    # place; none makes an error larger by more than a factor of one, and the cell adds what the step before had.
    bound = STEPS * (HIDDEN + 16) * 2.0**-23

    function = te.create_prim_func(lstm())
    for name, program in (("te.scan", function), ("script", lstm_script())):
        h, c = np.empty_like(exact_h, "float32"), np.empty_like(exact_c, "float32")
        lw.build(program)(x, w, h, c)
        error = max(np.abs(h - exact_h).max(), np.abs(c - exact_c).max())
        assert error <= bound, f"{name} is wrong by {error}"
        print(f"{name:8} {STEPS} steps of {BATCH}×{HIDDEN}: largest error {error:.1e} (bound {bound:.1e})")

    sch = Schedule(function)
    *_, j, k = sch.get_loops("h2h")
    sch.reorder(k, j)
    t, *_ = sch.get_loops("next_h")
    try:
        sch.parallel(t)
    except ScheduleError as refused:
        print("\nSteps cannot run at once:", str(refused).splitlines()[0])


if __name__ == "__main__":
    main()
