"""Matrix products of any layout and type: what the families sgemm and dgemm are made of.

A shape is m, k, n: an m × k matrix times a k × n matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, Numpy, Problem, Torch, aligned, uniform


def matmul(m: int, k: int, n: int, layout: str = "nn", dtype: str = "float32", batch: int = 0) -> Problem:
    """C = A · B, `batch` times over; in `layout`, t says that A (first letter) or B (second) is stored transposed."""
    lead = (batch,) if batch else ()
    a = uniform((*lead, *((k, m) if layout[0] == "t" else (m, k))), seed=1, dtype=dtype)
    b = uniform((*lead, *((n, k) if layout[1] == "t" else (k, n))), seed=2, dtype=dtype)
    c = aligned((*lead, m, n), dtype)

    def program() -> Any:
        from loopwright import te

        A = te.placeholder(a.shape, dtype, name="A")
        B = te.placeholder(b.shape, dtype, name="B")
        axis = te.reduce_axis((0, k), name="k")

        def element(*at: Any) -> Any:
            *outer, i, j = at
            left = A[(*outer, axis, i)] if layout[0] == "t" else A[(*outer, i, axis)]
            right = B[(*outer, j, axis)] if layout[1] == "t" else B[(*outer, axis, j)]
            return te.sum(left * right, axis=axis)

        return [A, B, te.compute(c.shape, element, name="C")]

    def plain(x: Any, transposed: bool) -> Any:
        return x.swapaxes(-1, -2) if transposed else x

    def reference() -> list[Bounded]:
        left, right = plain(wide(a), layout[0] == "t"), plain(wide(b), layout[1] == "t")
        # A float64 reference of a float64 product is as far from the truth as ours may be.
        share = gamma(k + 1, dtype) + (gamma(k + 1, "float64") if dtype == "float64" else 0.0)
        return [Bounded(left @ right, share * (np.abs(left) @ np.abs(right)))]

    def with_numpy(x: Any, out: Any) -> Any:
        left, right = plain(x[0], layout[0] == "t"), plain(x[1], layout[1] == "t")
        return lambda: np.matmul(left, right, out=out[0])

    def with_torch(torch: Any, x: Any, out: Any) -> Any:
        left, right = plain(x[0], layout[0] == "t"), plain(x[1], layout[1] == "t")
        return lambda: torch.matmul(left, right, out=out[0])

    return Problem(
        program,
        [a, b],
        [c],
        reference,
        {"numpy": Numpy(with_numpy), "torch": Torch(with_torch)},
        flops=2 * max(batch, 1) * m * k * n,
    )


def boundary(*kinds: str) -> list[tuple[Any, ...]]:
    """Shapes around registers and tiles, primes or neighbours of powers of two, for a layout and type."""
    return [(*shape, *kinds) for shape in ((17, 31, 65), (1, 1, 1), (97, 1, 33), (5, 67, 1), (64, 63, 129), (0, 3, 5))]
