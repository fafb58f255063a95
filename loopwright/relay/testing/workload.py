"""create_workload: a network as a module, with seeded random parameters that keep its values of one magnitude.

    mod, params = create_workload(Function([data], net))

Weights are drawn so that a layer's output has the size of its input (He's rule: variance 2 / inputs), and the
statistics of normalizations are near those of such values. An initializer of one's own is a function that is given the
name of each parameter and an array of zeros to fill.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from math import prod, sqrt
from typing import TypeAlias

import numpy as np

from loopwright.ir.function import IRModule
from loopwright.relay.arrays import as_tensor_array
from loopwright.relay.expr import Expr, Function, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import post_order

Fill: TypeAlias = Callable[[str, np.ndarray], object]


def create_workload(
    net: Expr, initializer: Fill | None = None, seed: int = 0, inputs: tuple[str, ...] = ("data",)
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """The module of a network, and arrays for all its variables but the inputs."""
    function = net if isinstance(net, Function) else _closed(net, inputs)
    module = IRModule({"main": function})  # type: ignore[dict-item]
    infer_module(module)
    params: dict[str, np.ndarray] = {}
    for param in function.params:
        if param.name_hint not in inputs:
            drawn = _drawn(param, seed) if initializer is None else _filled(param, initializer)
            params[param.name_hint] = as_tensor_array(drawn)
    return module, params


def _closed(net: Expr, inputs: tuple[str, ...]) -> Function:
    """The function of all variables of an expression, inputs first."""
    free = [each for each in post_order(net) if isinstance(each, Var)]
    first = [one for one in free if one.name_hint in inputs]
    return Function([*first, *(one for one in free if one.name_hint not in inputs)], net)


def _filled(param: Var, initializer: Fill) -> np.ndarray:
    of = param.checked_type
    assert isinstance(of, TensorType)
    result = np.zeros(of.concrete_shape, of.dtype.numpy())
    initializer(param.name_hint, result)
    return result


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


class Initializer:
    """Fills arrays by the name of their parameter: `initializer("conv0_weight", array)`."""

    def __call__(self, desc: str, arr: np.ndarray) -> None:
        for end, value in (("gamma", 1.0), ("beta", 0.0), ("bias", 0.0), ("mean", 0.0), ("var", 1.0)):
            if desc.endswith(end):
                arr[:] = value
                return
        self.fill_weight(desc, arr)

    def fill_weight(self, desc: str, arr: np.ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how weights are drawn")


class Xavier(Initializer):
    """Weights uniform (or gaussian) of a variance of `magnitude` over the inputs, the outputs or their mean."""

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        if rnd_type not in ("uniform", "gaussian") or factor_type not in ("avg", "in", "out"):
            raise ValueError(f"Xavier draws uniform or gaussian by avg, in or out, and not {rnd_type} by {factor_type}")
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def fill_weight(self, desc: str, arr: np.ndarray) -> None:
        if arr.ndim < 2:
            raise ValueError(f"Xavier draws weights of two dimensions or more, and {desc} has {arr.ndim}")
        window = prod(arr.shape[2:])
        fans = {"in": arr.shape[1] * window, "out": arr.shape[0] * window}
        fans["avg"] = (fans["in"] + fans["out"]) / 2
        scale = sqrt(self.magnitude / fans[self.factor_type])
        if self.rnd_type == "uniform":
            arr[:] = np.random.uniform(-scale, scale, size=arr.shape)
        else:
            arr[:] = np.random.normal(0, scale, size=arr.shape)


class Constant(Initializer):
    """Weights of one value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def fill_weight(self, desc: str, arr: np.ndarray) -> None:
        arr[:] = self.value
