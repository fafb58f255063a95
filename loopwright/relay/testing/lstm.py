"""A chain of LSTM cells (Hochreiter and Schmidhuber, 1997), one an iteration, that share their weights."""

from __future__ import annotations

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, Tuple, var
from loopwright.relay.op.registry import make
from loopwright.relay.testing.workload import create_workload


class _Gates:
    """The weights that all cells share."""

    def __init__(self, units: int) -> None:
        self.units = 4 * units
        self.weights = {name: (var(f"{name}_weight"), var(f"{name}_bias")) for name in ("i2h", "h2h")}

    def __call__(self, name: str, data: Expr) -> Expr:
        weight, bias = self.weights[name]
        return make("nn.bias_add", make("nn.dense", data, weight, units=self.units), bias, axis=-1)


def _cell(gates_of: _Gates, data: Expr, hidden: Expr, cell: Expr) -> tuple[Expr, Expr]:
    """The next state: what is shown, and what is kept."""
    gates = make("add", gates_of("i2h", data), gates_of("h2h", hidden))
    parts = make("split", gates, indices_or_sections=4, axis=1)
    enter, forget, show = (make("sigmoid", parts[k]) for k in (0, 1, 3))
    kept = make("add", make("multiply", forget, cell), make("multiply", enter, make("tanh", parts[2])))
    return make("multiply", show, make("tanh", kept)), kept


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Expr:
    """The states after all iterations, of `data` and the parameters; the state is zero at first."""
    data: Expr = var("data", shape=(batch_size, num_hidden), dtype=dtype)
    hidden = cell = make("zeros", shape=(batch_size, num_hidden), dtype=dtype)
    gates = _Gates(num_hidden)
    for _ in range(iterations):
        hidden, cell = _cell(gates, data, hidden, cell)
        data = hidden
    return Tuple([hidden, cell])


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32", seed: int = 0
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A module whose main takes `data` and the parameters, and arrays for those."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype), seed=seed)
