"""Activations as each has them: in te, as ONNX operators, in numpy and torch, and their exact values with a bound."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.bench.case import Array
from benchmarks.bench.cases import math as bench_math
from benchmarks.bench.onnx_models import Step
from benchmarks.sweep.errors import Rounded

ROOT_HALF = 0.7071067811865476


def exact_erf(x: Array) -> Array:
    """erf in float64: torch's where it is installed (scipy's comes first), else the C library's, one by one."""
    if importlib.util.find_spec("scipy") is None and importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        found: Array = torch.special.erf(torch.from_numpy(np.ascontiguousarray(x))).numpy()
        return found
    return bench_math.exact_erf(x)


def exact_sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


@dataclass(frozen=True)
class Activation:
    """A function of one tensor."""

    name: str
    te: Callable[[Any], Any]
    steps: Sequence[tuple[str, str, str, dict[str, Any]]]  # operator, inputs, output, attributes; x → y
    exact: Callable[[Rounded], Rounded]
    torch: Callable[[Any, Any], Any]
    numpy: Callable[[Array], Array] | None = None
    numbers: dict[str, float] = field(default_factory=dict)  # constants of the ONNX model

    def onnx(self, source: str, target: str, prefix: str = "") -> list[Step]:
        """The steps from one value to another."""
        names = {"x": source, "y": target}

        def name(one: str) -> str:
            return names.get(one, one if one in self.numbers else prefix + one)

        return [
            Step(operator, [name(one) for one in inputs.split()], name(output), attributes)
            for operator, inputs, output, attributes in self.steps
        ]

    def constants(self, dtype: str) -> dict[str, Array]:
        """The constants of the steps."""
        return {name: np.asarray(value, dtype) for name, value in self.numbers.items()}


def _topi() -> Any:
    from loopwright import topi

    return topi


def _gelu_te(x: Any) -> Any:
    topi = _topi()
    return topi.multiply(topi.multiply(x, 0.5), topi.add(topi.erf(topi.multiply(x, ROOT_HALF)), 1.0))


def _hardswish_te(x: Any) -> Any:
    topi = _topi()
    return topi.multiply(x, topi.multiply(topi.clip(topi.add(x, 3.0), 0.0, 6.0), 1 / 6))


def _elu_te(x: Any) -> Any:
    topi = _topi()
    return topi.where(topi.greater(x, 0.0), x, topi.subtract(topi.exp(x), 1.0))


def _erf(x: Rounded) -> Rounded:
    return x.monotone("erf", exact_erf)


def _sigmoid(x: Rounded) -> Rounded:
    return x.monotone("sigmoid", exact_sigmoid)


def _elu(x: Rounded) -> Rounded:
    below = x.minimum(0.0).exp() - 1.0
    return Rounded(np.where(x.exact > 0, x.exact, below.exact), np.where(x.exact > 0, x.error, below.error), x.dtype)


def _softplus(x: Rounded) -> Rounded:
    return (x.exp() + 1.0).monotone("log", np.log)


ACTIVATIONS = [
    Activation(
        "relu",
        lambda x: _topi().nn.relu(x),
        [("Relu", "x", "y", {})],
        lambda x: x.maximum(0.0),
        lambda t, x: t.relu(x),
        lambda x: np.maximum(x, 0),
    ),
    Activation(
        "leaky_relu",
        lambda x: _topi().nn.leaky_relu(x, 0.0625),
        [("LeakyRelu", "x", "y", {"alpha": 0.0625})],
        lambda x: x.maximum(x * 0.0625),
        lambda t, x: t.nn.functional.leaky_relu(x, 0.0625),
        lambda x: np.where(x > 0, x, x * x.dtype.type(0.0625)),
    ),
    Activation(
        "relu6",
        lambda x: _topi().clip(x, 0.0, 6.0),
        [("Clip", "x low high", "y", {})],
        lambda x: x.maximum(0.0).minimum(6.0),
        lambda t, x: t.clamp(x, 0.0, 6.0),
        lambda x: np.clip(x, 0, 6),
        {"low": 0.0, "high": 6.0},
    ),
    Activation(
        "sigmoid",
        lambda x: _topi().sigmoid(x),
        [("Sigmoid", "x", "y", {})],
        _sigmoid,
        lambda t, x: t.sigmoid(x),
        lambda x: 1 / (1 + np.exp(-x)),
    ),
    Activation(
        "tanh",
        lambda x: _topi().tanh(x),
        [("Tanh", "x", "y", {})],
        lambda x: x.monotone("tanh", np.tanh),
        lambda t, x: t.tanh(x),
        lambda x: np.tanh(x),
    ),
    Activation(
        "gelu",
        _gelu_te,
        [("Gelu", "x", "y", {})],
        lambda x: x * 0.5 * (_erf(x * ROOT_HALF) + 1.0),
        lambda t, x: t.nn.functional.gelu(x),
    ),
    Activation(
        "silu",
        lambda x: _topi().multiply(x, _topi().sigmoid(x)),
        [("Sigmoid", "x", "s", {}), ("Mul", "x s", "y", {})],
        lambda x: x * _sigmoid(x),
        lambda t, x: t.nn.functional.silu(x),
        lambda x: x / (1 + np.exp(-x)),
    ),
    Activation(
        "hardswish",
        _hardswish_te,
        [("HardSwish", "x", "y", {})],
        lambda x: x * ((x + 3.0).maximum(0.0).minimum(6.0) * (1 / 6)),
        lambda t, x: t.nn.functional.hardswish(x),
    ),
    Activation(
        "elu",
        _elu_te,
        [("Elu", "x", "y", {"alpha": 1.0})],
        _elu,
        lambda t, x: t.nn.functional.elu(x),
    ),
    Activation(
        "softplus",
        lambda x: _topi().log(_topi().add(_topi().exp(x), 1.0)),
        [("Softplus", "x", "y", {})],
        _softplus,
        lambda t, x: t.nn.functional.softplus(x),
        lambda x: np.logaddexp(x, 0),
    ),
]
