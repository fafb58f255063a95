"""Small programs that the tests search."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import PrimFunc


def gemm(m: int = 32, n: int = 32, k: int = 32, relu: bool = False) -> PrimFunc:
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    axis = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, axis] * B[axis, j], axis=axis), name="C")
    if relu:
        D = te.compute((m, n), lambda i, j: te.max(C[i, j], te.const(0.0, "float32")), name="D")
        return te.create_prim_func([A, B, D])
    return te.create_prim_func([A, B, C])
