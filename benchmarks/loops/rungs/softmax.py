"""softmax and layer normalization along rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.bench.bounds import gamma, ulps, unit, wide
from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, scheduled
from loopwright import te
from loopwright.schedule import Schedule


def softmax(steps: Steps, rows: int, columns: int) -> Loops:
    """exp(x - max) / Σ exp(x - max)."""
    X = te.placeholder((rows, columns), name="X")
    k, s = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="s")
    M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((rows,), lambda i: te.sum(E[i, s], axis=s), name="S")
    Y = te.compute((rows, columns), lambda i, j: E[i, j] / S[i], name="Y")
    x = uniform((rows, columns), -8, 8, seed=1)

    def reference() -> list[Bounded]:
        d = wide(x) - wide(x).max(1, keepdims=True)
        e = np.exp(d)
        share = np.expm1(unit() * np.abs(d)) + ulps("exp")
        total = e.sum(1, keepdims=True)
        total_share = (e * share).sum(1, keepdims=True) / total + gamma(columns + 1)
        exact = e / total
        return [Bounded(exact, exact * (share + total_share + 2 * unit()) * (1 + 1e-4))]

    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned((rows, columns))], reference, 5 * rows * columns)


def by_rows(sch: Schedule) -> None:
    """All four stages of a row before the next row."""
    row = sch.get_loops("Y")[0]
    for name in ("S", "E", "M"):
        sch.compute_at(name, row)


def by_rows_in_vectors(sch: Schedule) -> None:
    """The same, exp and the quotient in vectors."""
    by_rows(sch)
    for name in ("E", "Y"):
        _, lane = sch.split(sch.get_loops(name)[-1], [None, 16])
        sch.vectorize(lane)


def _rung(name: str, steps: Steps, make: Callable[..., Loops] = softmax) -> Rung:
    return Rung(name, lambda *shape: make(steps, *shape), (512, 1024), (7, 50))


RUNGS = [
    _rung("softmax, stage by stage", as_written),
    _rung("softmax, row by row", by_rows),
    _rung("softmax, row by row in vectors", by_rows_in_vectors),
]
