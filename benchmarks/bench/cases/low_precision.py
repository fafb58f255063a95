"""Matrix products in int8, bfloat16 and float16, m × k × n, beside the same product in float32.

Bytes are unsigned times signed, as quantized networks have them, summed in int32; the second operand is constant.
OpenVINO does that product in float32; where it computes in bytes, it rounds, which is another product. The halves are
summed in float32 and rounded once, as torch does it; nothing is constant there.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401  # gives numpy the name bfloat16
import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, Case, Onnx, OursToo, Problem, Torch, aligned, uniform
from benchmarks.bench.cases.gemm import matmul
from benchmarks.bench.networks import OURS_FLOAT32
from benchmarks.bench.onnx_models import Step, model

UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def int8_product(m: int, k: int, n: int) -> Problem:
    """C = A · B in int32, of uint8 and constant int8."""
    rng = np.random.default_rng(0)
    a, b, c = aligned((m, k), "uint8"), aligned((k, n), "int8"), aligned((m, n), "int32")
    a[:], b[:] = rng.integers(0, 256, a.shape), rng.integers(-128, 128, b.shape)

    def onnx_model() -> bytes:
        return model([Step("MatMulInteger", ["x0", "b"], "y0")], {"x0": a}, {"y0": c}, {"b": b})

    return Problem(
        lambda: _with_constant(m, k, n, "uint8", "int8", "int32", b),
        [a],
        [c],
        lambda: [Bounded((wide(a) @ wide(b)).astype("int64"), 0.0)],  # far below 2^53: exact
        {
            "onnxruntime": Onnx("onnxruntime", onnx_model),
            "openvino": Onnx("openvino", onnx_model),
            OURS_FLOAT32: _float32_product(m, k, n),
        },
        flops=2 * m * k * n,
        read=a.nbytes + b.nbytes,
    )


def half_product(m: int, k: int, n: int, dtype: str) -> Problem:
    """C = A · B, rounded to the operands' type once."""
    a, b = uniform((m, k), seed=1).astype(dtype), uniform((k, n), seed=2).astype(dtype)

    def program() -> Any:
        from loopwright import te

        A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
        axis = te.reduce_axis((0, k), name="k")

        def element(i: Any, j: Any) -> Any:
            return te.sum(A[i, axis].astype("float32") * B[axis, j].astype("float32"), axis=axis)

        sums = te.compute((m, n), element, name="sums")
        return [A, B, te.compute((m, n), lambda i, j: sums[i, j].astype(dtype), name="C")]

    def reference() -> list[Bounded]:
        left, right = wide(a), wide(b)
        exact, error = left @ right, gamma(k + 1) * (np.abs(left) @ np.abs(right))
        # Products of halves are exact in float32; in the end the sum is rounded to a half.
        return [Bounded(exact, (error + UNIT[dtype] * (np.abs(exact) + error)) * (1 + 2.0**-20) + 2.0**-25)]

    left, right = uniform((m, k), seed=1), uniform((k, n), seed=2)
    return Problem(
        program,
        [a, b],
        [aligned((m, n), dtype)],
        reference,
        {
            "torch": Torch(lambda torch, x, out: lambda: torch.matmul(x[0], x[1], out=out[0]), apart=True),
            OURS_FLOAT32: OursToo(matmul(m, k, n).program, [left, right], [aligned((m, n))]),
        },
        flops=2 * m * k * n,
    )


def _with_constant(m: int, k: int, n: int, left: str, right: str, dtype: str, b: Any) -> Any:
    from loopwright import te, tir

    A, B = te.placeholder((m, k), left, name="A"), te.placeholder((k, n), right, name="B")
    axis = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(A[i, axis].astype(dtype) * B[axis, j].astype(dtype), axis=axis)

    func = te.create_prim_func([A, B, te.compute((m, n), element, name="C")])
    return tir.bind_constants(func, {"B": b})


def _float32_product(m: int, k: int, n: int) -> OursToo:
    b = uniform((k, n), seed=2)
    made = lambda: _with_constant(m, k, n, "float32", "float32", "float32", b)  # noqa: E731
    return OursToo(made, [uniform((m, k), seed=1)], [aligned((m, n))])


_NEAR = [(17, 31, 65), (1, 1, 1), (5, 67, 1), (64, 63, 129), (16, 64, 16), (0, 3, 5)]

CASES = [
    *[
        Case(f"int8 {n}³", int8_product, (n, n, n), _NEAR, n == 512, frozenset({"int8"}))
        for n in (256, 512, 1024, 2048)
    ],
    *[
        Case(
            f"{dtype} {n}³",
            half_product,
            (n, n, n, dtype),
            [(*near, dtype) for near in _NEAR],
            n == 512,
            frozenset({dtype}),
        )
        for dtype in ("bfloat16", "float16")
        for n in (256, 512, 1024, 2048)
    ],
]
