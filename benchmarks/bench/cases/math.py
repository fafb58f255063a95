"""Functions of one element: exp, log, tanh, erf, sigmoid, gelu."""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

import numpy as np

from benchmarks.bench.bounds import ulps, unit, wide
from benchmarks.bench.case import Array, Bounded, Case, Numpy, Problem, Torch, TorchCompile, aligned, uniform

_ROOT = 0.7071067811865476  # 1/√2
_RANGE = {"log": (1e-3, 100.0), "exp": (-20.0, 20.0)}


def elementwise(name: str, n: int) -> Problem:
    """`name` of n elements; gelu in its erf form, x/2 · (1 + erf(x/√2))."""
    low, high = _RANGE.get(name, (-6.0, 6.0))
    x = uniform(n, low, high)

    def program() -> Any:
        from loopwright import te

        X = te.placeholder((n,), name="X")

        def body(i: Any) -> Any:
            if name == "gelu":
                return 0.5 * X[i] * (1.0 + te.erf(X[i] * _ROOT))
            return getattr(te, name)(X[i])

        return [X, te.compute((n,), body, name="Y")]

    compiled: dict[str, Any] = {}
    if name == "gelu":
        compiled = {"torch compile": TorchCompile(lambda torch: torch.nn.functional.gelu)}
    return Problem(
        program,
        [x],
        [aligned(n)],
        lambda: [_reference(name, wide(x))],
        {"numpy": _numpy(name), "torch": Torch(lambda torch, x, out: _torch(torch, name, x, out)), **compiled},
    )


def _reference(name: str, x: Array) -> Bounded:
    if name == "gelu":
        t = x * _ROOT
        f = exact_erf(t)
        # The argument has two roundings (the constant's and the product's), 1 + erf one, the two products one each.
        f_error = 2 / np.sqrt(np.pi) * np.exp(-(t * t)) * np.abs(t) * 2 * unit() + ulps("erf") * np.abs(f)
        exact = 0.5 * x * (1 + f)
        inner = f_error + unit() * (1 + f + f_error)
        return Bounded(exact, (0.5 * np.abs(x) * inner * (1 + 4 * unit()) + 3 * unit() * np.abs(exact)) * (1 + 1e-6))
    if name == "sigmoid":
        exact = 1 / (1 + np.exp(-x))
    else:
        exact = exact_erf(x) if name == "erf" else getattr(np, name)(x)
    return Bounded(exact, ulps(name) * np.abs(exact))


def exact_erf(x: Array) -> Array:
    """erf in float64: scipy's where it is installed, else the C library's, element by element."""
    if importlib.util.find_spec("scipy") is not None:
        found: Array = importlib.import_module("scipy.special").erf(x)
        return found
    return np.fromiter(map(math.erf, x.ravel().tolist()), "float64", x.size).reshape(x.shape)


def _numpy(name: str) -> Numpy:
    if name in ("erf", "gelu"):
        return Numpy(lambda x, out: _scipy(name, x, out), needs="scipy")
    if name == "sigmoid":
        return Numpy(_sigmoid)
    function = getattr(np, name)
    return Numpy(lambda x, out: lambda: function(x[0], out=out[0]))


def _sigmoid(x: Any, out: Any) -> Any:
    one = np.float32(1)

    def run() -> None:
        np.negative(x[0], out=out[0])
        np.exp(out[0], out=out[0])
        np.add(out[0], one, out=out[0])
        np.divide(one, out[0], out=out[0])

    return run


def _scipy(name: str, x: Any, out: Any) -> Any:
    erf = importlib.import_module("scipy.special").erf
    if name == "erf":
        return lambda: erf(x[0], out=out[0])
    root, one, half = np.float32(_ROOT), np.float32(1), np.float32(0.5)

    def run() -> None:
        np.multiply(x[0], root, out=out[0])
        erf(out[0], out=out[0])
        np.add(out[0], one, out=out[0])
        np.multiply(out[0], x[0], out=out[0])
        np.multiply(out[0], half, out=out[0])

    return run


def _torch(torch: Any, name: str, x: Any, out: Any) -> Any:
    if name == "gelu":
        return lambda: torch._C._nn.gelu(x[0], out=out[0])
    function = getattr(torch, name)
    return lambda: function(x[0], out=out[0])


CASES = [
    Case(f"{name}, {size}", elementwise, (name, n), [(name, near) for near in (1009, 1, 7, 17, 65, 0)], quick=quick)
    for size, n in (("2^20", 1 << 20), ("2^24", 1 << 24))
    for name in ("exp", "log", "tanh", "erf", "sigmoid", "gelu")
    for quick in [size == "2^20" and name in ("exp", "gelu")]
]
