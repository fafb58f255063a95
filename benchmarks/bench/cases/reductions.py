"""Reductions: sum, max, min and mean over everything, rows and columns; argmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, Case, CLoop, Numpy, Problem, Torch, aligned, uniform

_KINDS = ["sum", "max", "min", "mean"]  # the order in which loops.c numbers them
_AXES = {"all": None, "rows": 1, "columns": 0}


def reduction(kind: str, over: str, rows: int, columns: int) -> Problem:
    """One number for each row or column, or for all together."""
    x = uniform((rows, columns))
    axis = _AXES[over]
    shape = {"all": (1,), "rows": (rows,), "columns": (columns,)}[over]
    count = {"all": rows * columns, "rows": columns, "columns": rows}[over]

    def program() -> Any:
        from loopwright import te

        X = te.placeholder((rows, columns), name="X")
        reducer = {"max": te.max, "min": te.min}.get(kind, te.sum)
        r, c = te.reduce_axis((0, rows), name="r"), te.reduce_axis((0, columns), name="c")
        body = {
            "all": lambda i: reducer(X[r, c], axis=[r, c]),
            "rows": lambda i: reducer(X[i, c], axis=c),
            "columns": lambda i: reducer(X[r, i], axis=r),
        }[over]
        Y = te.compute(shape, body, name="Y")
        return [X, te.compute(shape, lambda i: Y[i] / float(count), name="Z") if kind == "mean" else Y]

    def reference() -> list[Bounded]:
        value = wide(x)
        exact = np.reshape(getattr(np, kind)(value, axis=axis), shape)
        if kind in ("max", "min"):
            return [Bounded(exact, 0.0)]
        total = np.reshape(np.sum(np.abs(value), axis=axis), shape)
        return [Bounded(exact, gamma(count + 1) * (total / count if kind == "mean" else total))]

    def with_torch(torch: Any, x: Any, out: Any) -> Any:
        # Torch reduces all of a tensor to a scalar without out=.
        if axis is None:
            return lambda: out[0].copy_(getattr(torch, kind)(x[0]))
        if kind in ("max", "min"):
            kernel = torch.amax if kind == "max" else torch.amin
            return lambda: kernel(x[0], dim=axis, out=out[0])
        return lambda: getattr(torch, kind)(x[0], dim=axis, out=out[0])

    number = _KINDS.index(kind)
    sizes = (rows * columns, number) if over == "all" else (rows, columns, number)
    into = (lambda out: out[0].reshape(())) if over == "all" else (lambda out: out[0])
    function = getattr(np, kind)
    return Problem(
        program,
        [x],
        [aligned(shape)],
        reference,
        {
            "C": CLoop(f"c_reduce_{over}", sizes),
            "numpy": Numpy(lambda x, out: lambda: function(x[0], axis=axis, out=into(out))),
            "torch": Torch(with_torch),
        },
        flops=rows * columns,
    )


def argmax(over: str, rows: int, columns: int) -> Problem:
    """Where the greatest element is, the first of equals, and its value."""
    if over == "all":
        rows, columns = 1, rows * columns
    x = uniform((rows, columns))

    def program() -> Any:
        from loopwright import te, tir

        def better(a: Any, b: Any) -> Any:
            # As numpy and torch do it, a NaN counts as the greatest; so pairs may be combined in any order.
            (i, p), (j, q) = a, b
            wins = te.any(p > q, te.all(te.isnan(p), tir.Not(te.isnan(q))))
            ties = te.any(p.equal(q), te.all(te.isnan(p), te.isnan(q)))
            return te.if_then_else(te.any(wins, te.all(ties, i < j)), i, j), te.max(p, q)

        def worst(index: str, value: str) -> Any:
            return te.max_value(index), te.const(float("-inf"), value)

        reducer = te.comm_reducer(better, worst, name="argmax")
        X = te.placeholder((rows, columns), name="X")
        k = te.reduce_axis((0, columns), name="k")
        where, value = te.compute((rows,), lambda i: reducer((k.var, X[i, k]), axis=k), name="best")
        return [X, where, value]

    def with_numpy(x: Any, out: Any) -> Any:
        places = np.empty(rows, "int64")

        def run() -> None:
            np.argmax(x[0], axis=1, out=places)
            out[0][...] = places
            np.max(x[0], axis=1, out=out[1])

        return run

    def with_torch(torch: Any, x: Any, out: Any) -> Any:
        places = torch.empty(rows, dtype=torch.int64)

        def run() -> None:
            torch.max(x[0], dim=1, out=(out[1], places))
            out[0].copy_(places)

        return run

    return Problem(
        program,
        [x],
        [aligned(rows, "int32"), aligned(rows)],
        lambda: [Bounded(np.argmax(x, axis=1), 0.0), Bounded(wide(x).max(axis=1), 0.0)],
        {"numpy": Numpy(with_numpy), "torch": Torch(with_torch)},
        flops=rows * columns,
    )


_NEAR = [(65, 129), (1, 1), (1, 67), (33, 1), (17, 31)]
_SIZES = {"4096²": (4096, 4096), "1000²": (1000, 1000)}


def _tags(size: str) -> frozenset[str]:
    return frozenset({"large"}) if size == "4096²" else frozenset()


CASES = [
    *[
        Case(
            f"{kind} of {over}, {size}",
            reduction,
            (kind, over, *shape),
            [(kind, over, *near) for near in _NEAR],
            size == "1000²" and kind == "sum" and over != "all",
            _tags(size),
        )
        for size, shape in _SIZES.items()
        for kind in _KINDS
        for over in _AXES
    ],
    *[
        Case(f"argmax of {over}, {size}", argmax, (over, *shape), [(over, *near) for near in _NEAR])
        for size, shape in _SIZES.items()
        for over in ("rows", "all")
    ],
]
