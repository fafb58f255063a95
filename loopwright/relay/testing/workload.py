"""create_workload: a network as a module, with seeded random parameters that keep its values of one magnitude.

    mod, params = create_workload(Function([data], net))

Weights are drawn so that a layer's output has the size of its input (He's rule: variance 2 / inputs), and the
statistics of normalizations are near those of such values.
"""

from __future__ import annotations

import zlib
from math import prod, sqrt

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr, Function, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import post_order


def create_workload(
    net: Expr, seed: int = 0, inputs: tuple[str, ...] = ("data",)
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """The module of a network, and arrays for all its variables but the inputs."""
    function = net if isinstance(net, Function) else _closed(net, inputs)
    module = IRModule({"main": function})  # type: ignore[dict-item]
    infer_module(module)
    params = {}
    for param in function.params:
        if param.name_hint not in inputs:
            params[param.name_hint] = _drawn(param, seed)
    return module, params


def _closed(net: Expr, inputs: tuple[str, ...]) -> Function:
    """The function of all variables of an expression, inputs first."""
    free = [each for each in post_order(net) if isinstance(each, Var)]
    first = [one for one in free if one.name_hint in inputs]
    return Function([*first, *(one for one in free if one.name_hint not in inputs)], net)


def _drawn(param: Var, seed: int) -> np.ndarray:
    of = param.checked_type
    assert isinstance(of, TensorType)
    shape = of.concrete_shape
    name = param.name_hint
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if name.endswith("gamma") or name.endswith("var"):
        drawn = random.uniform(0.8, 1.2, shape)
    elif name.endswith(("beta", "mean", "bias")):
        drawn = random.uniform(-0.1, 0.1, shape)
    else:
        drawn = random.standard_normal(shape) * sqrt(2 / max(1, prod(shape[1:])))
    return np.ascontiguousarray(drawn.astype(of.dtype.numpy()))
