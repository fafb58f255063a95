"""The chain: matmul → exp → matmul, m × k × j × n; the intermediate matrix of m × j never has to exist as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma, ulps, wide
from benchmarks.bench.case import Bounded, Case, Numpy, Problem, Torch, TorchCompile, aligned, uniform


def chain(m: int, k: int, j: int, n: int) -> Problem:
    """F = exp(A · B) · C."""
    a = uniform((m, k), -1 / 16, 1 / 16, seed=1)
    b = uniform((k, j), -1 / 4, 1 / 4, seed=2)
    c = uniform((j, n), seed=3)

    def program() -> Any:
        from loopwright import te

        A, B, C = (te.placeholder(x.shape, name=name) for x, name in ((a, "A"), (b, "B"), (c, "C")))
        inner, outer = te.reduce_axis((0, k), name="k"), te.reduce_axis((0, j), name="j")
        D = te.compute((m, j), lambda x, y: te.sum(A[x, inner] * B[inner, y], axis=inner), name="D")
        E = te.compute((m, j), lambda x, y: te.exp(D[x, y]), name="E")
        F = te.compute((m, n), lambda x, z: te.sum(E[x, outer] * C[outer, z], axis=outer), name="F")
        return [A, B, C, F]

    def reference() -> list[Bounded]:
        A, B, C = wide(a), wide(b), wide(c)
        d = A @ B
        e = np.exp(d)
        d_error = gamma(k + 1) * (np.abs(A) @ np.abs(B))
        e_error = np.exp(d + d_error) * (1 + ulps("exp")) - e
        return [Bounded(e @ C, e_error @ np.abs(C) + gamma(j + 1) * ((e + e_error) @ np.abs(C)))]

    def with_numpy(x: Any, out: Any) -> Any:
        middle = aligned((m, j))

        def run() -> None:
            np.matmul(x[0], x[1], out=middle)
            np.exp(middle, out=middle)
            np.matmul(middle, x[2], out=out[0])

        return run

    def with_torch(torch: Any, x: Any, out: Any) -> Any:
        middle = torch.empty((m, j))

        def run() -> None:
            torch.matmul(x[0], x[1], out=middle)
            torch.exp(middle, out=middle)
            torch.matmul(middle, x[2], out=out[0])

        return run

    compiled = TorchCompile(lambda torch: lambda A, B, C: torch.matmul(torch.exp(torch.matmul(A, B)), C))
    return Problem(
        program,
        [a, b, c],
        [aligned((m, n))],
        reference,
        {"numpy": Numpy(with_numpy), "torch": Torch(with_torch), "torch compile": compiled},
        flops=2 * m * j * (k + n),
    )


_BOUNDARY = [(17, 33, 31, 65), (1, 1, 1, 1), (65, 1, 127, 5)]
CASES = [
    Case("1024×2048×1024×3072", chain, (1024, 2048, 1024, 3072), _BOUNDARY, tags=frozenset({"bar"})),
    Case("256×512×256×768", chain, (256, 512, 256, 768), _BOUNDARY, quick=True),
]
