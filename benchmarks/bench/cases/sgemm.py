"""sgemm: float32 matrix products, m × k × n; square, odd, skinny, transposed and batched."""

from __future__ import annotations

from benchmarks.bench.case import Case
from benchmarks.bench.cases.gemm import boundary, matmul

BAR = frozenset({"bar"})  # the shapes that our promise about sgemm names


def _row(shape: tuple[int, int, int], quick: bool = False) -> Case:
    m, k, n = shape
    name = f"{m}³" if m == k == n else f"{m}×{k}×{n}"
    # The skinny way is the one that has to work for odd sizes too.
    near = tuple([size - 1 if size > 8 else size for size in (min(m, 130), min(k, 130), min(n, 130))])
    tags = BAR | {"1024³"} if name == "1024³" else BAR
    return Case(name, matmul, shape, [near, *boundary()], quick, tags)


def _batched(batch: int, size: int) -> Case:
    boundary = [(1, 1, 1, "nn", "float32", 3), (17, 31, 33, "nn", "float32", 2)]
    return Case(f"{batch} × {size}³", matmul, (size, size, size, "nn", "float32", batch), boundary)


CASES = [
    *[_row((n, n, n), quick=n in (256, 512)) for n in (256, 512, 1024, 2048)],
    _row((1024, 2048, 1024)),
    *[_row(shape) for shape in ((4096, 64, 64), (64, 4096, 64), (64, 64, 4096))],
    *[_row(shape, quick=shape[0] == 1) for shape in ((1, 1024, 1024), (8, 1024, 1024))],
    *[_row((n, n, n), quick=n == 127) for n in (127, 255, 257, 1000, 1023)],
    *[
        Case(f"{text} {n}³", matmul, (n, n, n, layout), boundary(layout))
        for layout, text in (("nt", "A·Bᵀ"), ("tn", "Aᵀ·B"))
        for n in (512, 1024)
    ],
    _batched(8, 256),
    _batched(64, 64),
]
