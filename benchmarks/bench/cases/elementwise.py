"""Element-wise work: one pass over the data, in the cache (2^15 elements) and beyond it (2^24)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench.bounds import SLACK, unit, wide
from benchmarks.bench.case import Bounded, Case, CLoop, Numpy, Problem, Torch, aligned, uniform


class _Kind(NamedTuple):
    body: Callable[..., Any]  # of the elements, in te
    exact: Callable[..., Any]  # of the arrays, in float64
    allowed: Callable[..., Any]
    numpy: Callable[..., Any]  # (inputs, outputs) → the call
    torch: Callable[..., Any]
    c: str
    operands: int = 2
    out: str = "float32"


def _te() -> Any:
    from loopwright import te

    return te


def _axpy_numpy(x: Any, out: Any) -> Any:
    alpha = np.float32(1.5)

    def run() -> None:
        np.multiply(x[0], alpha, out=out[0])
        np.add(out[0], x[1], out=out[0])

    return run


def _relu_numpy(x: Any, out: Any) -> Any:
    zero = np.float32(0)

    def run() -> None:
        np.add(x[0], x[1], out=out[0])
        np.maximum(out[0], zero, out=out[0])

    return run


def _relu_torch(torch: Any, x: Any, out: Any) -> Any:
    def run() -> None:
        torch.add(x[0], x[1], out=out[0])
        out[0].relu_()

    return run


_EXACT: Callable[..., float] = lambda *_: 0.0  # noqa: E731
_KINDS = {
    "add": _Kind(
        lambda x, y: x + y,
        np.add,
        lambda x, y: unit() * np.abs(x + y),
        lambda x, out: lambda: np.add(x[0], x[1], out=out[0]),
        lambda torch, x, out: lambda: torch.add(x[0], x[1], out=out[0]),
        "c_add",
    ),
    "axpy": _Kind(
        lambda x, y: x * np.float32(1.5).item() + y,
        lambda x, y: 1.5 * x + y,
        lambda x, y: unit() * (np.abs(1.5 * x) * (1 + unit()) + np.abs(1.5 * x + y)),
        _axpy_numpy,
        lambda torch, x, out: lambda: torch.add(x[1], x[0], alpha=1.5, out=out[0]),
        "c_axpy",
    ),
    "relu of add": _Kind(
        lambda x, y: _te().if_then_else(x + y > 0, x + y, 0.0),
        lambda x, y: np.maximum(x + y, 0),
        lambda x, y: unit() * np.abs(x + y),
        _relu_numpy,
        _relu_torch,
        "c_relu_add",
    ),
    "copy": _Kind(
        lambda x: x,
        lambda x: x,
        _EXACT,
        lambda x, out: lambda: np.copyto(out[0], x[0]),
        lambda torch, x, out: lambda: out[0].copy_(x[0]),
        "c_copy",
        1,
    ),
    "cast to float64": _Kind(
        lambda x: x.astype("float64"),
        lambda x: x,
        _EXACT,
        lambda x, out: lambda: np.copyto(out[0], x[0]),
        lambda torch, x, out: lambda: out[0].copy_(x[0]),
        "c_cast",
        1,
        "float64",
    ),
}


def flat(kind: str, n: int) -> Problem:
    """`kind` over n elements."""
    made = _KINDS[kind]
    inputs = [uniform(n, seed=number) for number in range(made.operands)]

    def program() -> Any:
        te = _te()
        given = [te.placeholder((n,), name=name) for name in "XY"[: made.operands]]
        return [*given, te.compute((n,), lambda i: made.body(*[x[i] for x in given]), name="Z")]

    def reference() -> list[Bounded]:
        values = [wide(x) for x in inputs]
        return [Bounded(made.exact(*values), made.allowed(*values) * SLACK)]

    peers: dict[str, Any] = {"C": CLoop(made.c, (n,)), "numpy": Numpy(made.numpy), "torch": Torch(made.torch)}
    if kind == "copy":
        peers["memcpy"] = CLoop("c_memcpy", (n,))
    return Problem(program, inputs, [aligned(n, made.out)], reference, peers)


def broadcast(which: str, rows: int, columns: int) -> Problem:
    """A matrix plus a row, or plus a column."""
    x = uniform((rows, columns))
    y = uniform((1, columns) if which == "row" else (rows, 1), seed=1)

    def program() -> Any:
        te = _te()
        X, Y = te.placeholder(x.shape, name="X"), te.placeholder(y.shape, name="Y")
        body = (lambda i, j: X[i, j] + Y[0, j]) if which == "row" else (lambda i, j: X[i, j] + Y[i, 0])
        return [X, Y, te.compute(x.shape, body, name="Z")]

    def reference() -> list[Bounded]:
        exact = wide(x) + wide(y)
        return [Bounded(exact, unit() * np.abs(exact) * SLACK)]

    add = _KINDS["add"]
    loop = CLoop("c_add_row" if which == "row" else "c_add_column", (rows, columns))
    return Problem(
        program,
        [x, y],
        [aligned(x.shape)],
        reference,
        {"C": loop, "numpy": Numpy(add.numpy), "torch": Torch(add.torch)},
    )


_SIZES = {"2^15": (1 << 15, (128, 256)), "2^24": (1 << 24, (4096, 4096))}

CASES = [
    *[
        Case(
            f"{kind}, {size}",
            flat,
            (kind, n),
            [(kind, near) for near in (1009, 1, 7, 17, 65, 0)],
            quick=kind == "add" or (kind == "copy" and size == "2^15"),
        )
        for size, (n, _) in _SIZES.items()
        for kind in _KINDS
    ],
    *[
        Case(
            f"add a {which}, {size}",
            broadcast,
            (which, *shape),
            [(which, *near) for near in ((65, 31), (1, 1), (3, 17), (7, 129))],
        )
        for size, (_, shape) in _SIZES.items()
        for which in ("row", "column")
    ],
]
