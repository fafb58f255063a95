"""softmax and log_softmax along rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma, ulps, unit, wide
from benchmarks.bench.case import Bounded, Case, Numpy, Problem, Torch, TorchCompile, aligned, uniform


def softmax(log: bool, rows: int, columns: int) -> Problem:
    """exp(x - max) / sum of exp(x - max), or its logarithm."""
    x = uniform((rows, columns), -8, 8)

    def program() -> Any:
        from loopwright import te

        X = te.placeholder((rows, columns), name="X")
        k, s = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="s")
        M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
        if log:
            S = te.compute((rows,), lambda i: te.sum(te.exp(X[i, s] - M[i]), axis=s), name="S")
            return [X, te.compute((rows, columns), lambda i, j: X[i, j] - M[i] - te.log(S[i]), name="Y")]
        E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
        S = te.compute((rows,), lambda i: te.sum(E[i, s], axis=s), name="S")
        return [X, te.compute((rows, columns), lambda i, j: E[i, j] / S[i], name="Y")]

    def reference() -> list[Bounded]:
        """A bound for the two-pass and the online form.

        The online form multiplies the sum by exp(old max - new max) whenever the maximum grows, which it does some
        log2(columns) times; each time is a difference, a function and a product, over a distance of `reach` together.
        """
        value = wide(x)
        d = value - value.max(axis=1, keepdims=True)
        e = np.exp(d)
        total = e.sum(axis=1, keepdims=True)
        e_share = np.expm1(unit() * np.abs(d)) + ulps("exp")
        reach = np.abs(d).max(axis=1, keepdims=True)
        rescaled = (np.log2(columns) + 2) * (ulps("exp") + 2 * unit()) + unit() * reach
        total_share = (e * e_share).sum(axis=1, keepdims=True) / total + gamma(columns) + rescaled
        if log:
            exact = d - np.log(total)
            absolute = unit() * (np.abs(d) + np.abs(exact)) + total_share + ulps("log") * np.abs(np.log(total))
            return [Bounded(exact, absolute * (1 + 1e-4))]
        exact = e / total
        return [Bounded(exact, exact * (e_share + total_share + 2 * unit()) * (1 + 1e-4))]

    def with_numpy(x: Any, out: Any) -> Any:
        most, total = np.empty((rows, 1), "float32"), np.empty((rows, 1), "float32")
        room = aligned((rows, columns)) if log else out[0]

        def run() -> None:
            np.max(x[0], axis=1, keepdims=True, out=most)
            np.subtract(x[0], most, out=out[0])
            np.exp(out[0], out=room)
            np.sum(room, axis=1, keepdims=True, out=total)
            if log:
                np.log(total, out=total)
                np.subtract(out[0], total, out=out[0])
            else:
                np.divide(out[0], total, out=out[0])

        return run

    def with_torch(torch: Any, x: Any, out: Any) -> Any:
        kernel = torch.log_softmax if log else torch.softmax
        return lambda: kernel(x[0], 1, out=out[0])

    def function(torch: Any) -> Any:
        kernel = torch.log_softmax if log else torch.softmax
        return lambda x: kernel(x, 1)

    return Problem(
        program,
        [x],
        [aligned((rows, columns))],
        reference,
        {"numpy": Numpy(with_numpy), "torch": Torch(with_torch), "torch compile": TorchCompile(function)},
    )


_NEAR = [(33, 129), (1, 1), (1, 67), (17, 1), (5, 31)]
CASES = [
    Case(
        f"{'log_' if log else ''}softmax {rows}×{columns}",
        softmax,
        (log, rows, columns),
        [(log, *near) for near in _NEAR],
        quick=rows == 1024 and not log,
        tags=frozenset({"bar"}),
    )
    for log, rows, columns in (
        (False, 64, 1024),
        (False, 1024, 1024),
        (False, 4096, 1024),
        (False, 128, 50257),
        (True, 1024, 1024),
        (True, 128, 50257),
    )
]
