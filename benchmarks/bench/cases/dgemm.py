"""dgemm: float64 matrix products."""

from __future__ import annotations

from benchmarks.bench.case import Case
from benchmarks.bench.cases.gemm import boundary, matmul

CASES = [
    Case(f"{n}³", matmul, (n, n, n, "nn", "float64"), boundary("nn", "float64"), quick=n == 512)
    for n in (512, 1024, 1000)
]
