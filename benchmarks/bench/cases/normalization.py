"""layer norm, rms norm, batch norm at inference, and argmax of rows as a classifier ends with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma, unit, wide
from benchmarks.bench.case import Bounded, Case, Numpy, Problem, Torch, TorchCompile, aligned, uniform
from benchmarks.bench.cases.reductions import argmax

_EPSILON = 1e-5
_ROUND = 1 + 1e-4  # products of small errors, left out below


def layer_norm(rows: int, columns: int) -> Problem:
    """(x - mean) / √(variance + ε) · g + b along rows, the variance from differences to the mean."""
    x = uniform((rows, columns), -1, 3)
    g, b = uniform(columns, 0.5, 1.5, seed=1), uniform(columns, seed=2)

    def program() -> Any:
        from loopwright import te

        X = te.placeholder((rows, columns), name="X")
        G, B = te.placeholder((columns,), name="G"), te.placeholder((columns,), name="B")
        k, s = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="s")
        total = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="total")
        mean = te.compute((rows,), lambda i: total[i] / float(columns), name="mean")
        squares = te.compute(
            (rows,), lambda i: te.sum((X[i, s] - mean[i]) * (X[i, s] - mean[i]), axis=s), name="squares"
        )
        scale = te.compute((rows,), lambda i: te.rsqrt(squares[i] / float(columns) + _EPSILON), name="scale")
        Y = te.compute((rows, columns), lambda i, j: (X[i, j] - mean[i]) * scale[i] * G[j] + B[j], name="Y")
        return [X, G, B, Y]

    def reference() -> list[Bounded]:
        value, weight, shift = wide(x), wide(g), wide(b)
        u = unit()
        mean = value.mean(axis=1, keepdims=True)
        d = value - mean
        d_error = gamma(columns + 1) * np.abs(value).mean(axis=1, keepdims=True) + u * np.abs(d)
        variance = (d * d).mean(axis=1, keepdims=True)
        v_error = (2 * np.abs(d) * d_error + d_error * d_error).mean(axis=1, keepdims=True)
        v_error = v_error + gamma(columns + 3) * ((np.abs(d) + d_error) ** 2).mean(axis=1, keepdims=True)
        scale = 1 / np.sqrt(variance + _EPSILON)
        s_share = v_error * scale * scale / 2 + 5 * u  # ε as float32, the sum, and 1/√ with three roundings
        exact = d * scale * weight + shift
        product = (np.abs(d) * (s_share + 3 * u) + d_error) * scale * np.abs(weight)
        return [Bounded(exact, (product + u * np.abs(exact)) * _ROUND)]

    def with_numpy(x: Any, out: Any) -> Any:
        mean, scale = np.empty((rows, 1), "float32"), np.empty((rows, 1), "float32")
        room, epsilon = aligned((rows, columns)), np.float32(_EPSILON)

        def run() -> None:
            np.mean(x[0], axis=1, keepdims=True, out=mean)
            np.subtract(x[0], mean, out=out[0])
            np.multiply(out[0], out[0], out=room)
            np.mean(room, axis=1, keepdims=True, out=scale)
            np.add(scale, epsilon, out=scale)
            np.sqrt(scale, out=scale)
            np.divide(out[0], scale, out=out[0])
            np.multiply(out[0], x[1], out=out[0])
            np.add(out[0], x[2], out=out[0])

        return run

    def function(torch: Any) -> Any:
        return lambda x, g, b: torch.nn.functional.layer_norm(x, (columns,), g, b, _EPSILON)

    return Problem(program, [x, g, b], [aligned((rows, columns))], reference, _peers(with_numpy, function))


def rms_norm(rows: int, columns: int) -> Problem:
    """x / √(mean of x² + ε) · g along rows."""
    x, g = uniform((rows, columns)), uniform(columns, 0.5, 1.5, seed=1)

    def program() -> Any:
        from loopwright import te

        X, G = te.placeholder((rows, columns), name="X"), te.placeholder((columns,), name="G")
        k = te.reduce_axis((0, columns), name="k")
        squares = te.compute((rows,), lambda i: te.sum(X[i, k] * X[i, k], axis=k), name="squares")
        scale = te.compute((rows,), lambda i: te.rsqrt(squares[i] / float(columns) + _EPSILON), name="scale")
        return [X, G, te.compute((rows, columns), lambda i, j: X[i, j] * scale[i] * G[j], name="Y")]

    def reference() -> list[Bounded]:
        value = wide(x)
        mean = (value * value).mean(axis=1, keepdims=True)
        exact = value / np.sqrt(mean + _EPSILON) * wide(g)
        return [Bounded(exact, np.abs(exact) * (gamma(columns + 2) / 2 + 7 * unit()) * _ROUND)]

    def with_numpy(x: Any, out: Any) -> Any:
        scale, epsilon = np.empty((rows, 1), "float32"), np.float32(_EPSILON)

        def run() -> None:
            np.multiply(x[0], x[0], out=out[0])
            np.mean(out[0], axis=1, keepdims=True, out=scale)
            np.add(scale, epsilon, out=scale)
            np.sqrt(scale, out=scale)
            np.divide(x[0], scale, out=out[0])
            np.multiply(out[0], x[1], out=out[0])

        return run

    def function(torch: Any) -> Any:
        return lambda x, g: torch.nn.functional.rms_norm(x, (columns,), g, _EPSILON)

    return Problem(program, [x, g], [aligned((rows, columns))], reference, _peers(with_numpy, function))


def batch_norm(batch: int, channels: int, height: int, width: int) -> Problem:
    """(x - mean) / √(variance + ε) · g + b, with a mean and a variance for each channel that are given."""
    x = uniform((batch, channels, height, width))
    mean, g, b = (uniform(channels, seed=seed) for seed in (1, 2, 3))
    variance = uniform(channels, 0.5, 2.0, seed=4)

    def program() -> Any:
        from loopwright import te

        X = te.placeholder(x.shape, name="X")
        M, V, G, B = (te.placeholder((channels,), name=name) for name in "MVGB")
        scale = te.compute((channels,), lambda c: te.rsqrt(V[c] + _EPSILON) * G[c], name="scale")
        Y = te.compute(x.shape, lambda n, c, h, w: (X[n, c, h, w] - M[c]) * scale[c] + B[c], name="Y")
        return [X, M, V, G, B, Y]

    def reference() -> list[Bounded]:
        m, v, weight, shift = (wide(p).reshape(-1, 1, 1) for p in (mean, variance, g, b))
        product = (wide(x) - m) / np.sqrt(v + _EPSILON) * weight
        exact = product + shift
        return [Bounded(exact, (np.abs(product) * 8 * unit() + np.abs(exact) * unit()) * _ROUND)]

    def with_numpy(x: Any, out: Any) -> Any:
        epsilon = np.float32(_EPSILON)

        def run() -> None:
            scale = x[3] / np.sqrt(x[2] + epsilon)
            np.multiply(x[0], scale.reshape(-1, 1, 1), out=out[0])
            np.add(out[0], (x[4] - x[1] * scale).reshape(-1, 1, 1), out=out[0])

        return run

    def function(torch: Any) -> Any:
        return lambda x, m, v, g, b: torch.nn.functional.batch_norm(x, m, v, g, b, eps=_EPSILON)

    return Problem(program, [x, mean, variance, g, b], [aligned(x.shape)], reference, _peers(with_numpy, function))


def _peers(with_numpy: Any, function: Any) -> dict[str, Any]:
    """Torch's functions of this kind have no out=: what they return is copied only when it is checked."""
    return {
        "numpy": Numpy(with_numpy),
        "torch": _eager(function),
        "torch compile": TorchCompile(function),
    }


def _eager(function: Any) -> Torch:
    """The same function as is compiled, called eagerly; it allocates its result, as it does for its users."""

    def make(torch: Any, x: Any, out: Any) -> Any:
        call = function(torch)
        out[0].copy_(call(*x))
        return lambda: call(*x)

    return Torch(make)


_NEAR = [(33, 129), (1, 1), (1, 67), (17, 31)]
_BAR = frozenset({"bar"})
_SHAPES = ((4096, 768), (1024, 4096))

CASES = [
    *[Case(f"layer_norm {r}×{c}", layer_norm, (r, c), _NEAR, quick=c == 768, tags=_BAR) for r, c in _SHAPES],
    *[Case(f"rms_norm {r}×{c}", rms_norm, (r, c), _NEAR) for r, c in _SHAPES],
    Case("batch_norm 8×64×56×56", batch_norm, (8, 64, 56, 56), [(2, 3, 5, 7), (1, 1, 1, 1), (1, 17, 1, 33)]),
    Case("argmax 128×50257", argmax, ("rows", 128, 50257), [("rows", *near) for near in _NEAR]),
]
