"""Calls out of a program: into numpy through a registered function, and into C; from te and from a script.

    python examples/extern_calls.py

A packed function gets tensors that share the program's memory. A C function gets pointers and numbers; its library is
loaded into the process, so that compiled programs and the evaluator find it.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import Buffer, PrimFunc, Stmt
from loopwright.script import tir as T

N, M, K = 6, 5, 4

C_SOURCE = """
/* The sum of each row; what is below zero counts nothing. */
void positive_sums(const float *rows, float *sums, int n, int m) {
    for (int i = 0; i < n; ++i) {
        sums[i] = 0;
        for (int j = 0; j < m; ++j) sums[i] += rows[i * m + j] > 0 ? rows[i * m + j] : 0;
    }
}
"""


def load_c() -> None:
    """Compile the C function and make it known to this process."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "sums.c"), Path(folder, "libsums.so")
        source.write_text(C_SOURCE)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


@lw.register_func("example.matmul", override=True)
def matmul(a, b, c):
    """numpy's matrix product, right into the program's memory."""
    np.matmul(np.from_dlpack(a), np.from_dlpack(b), out=np.from_dlpack(c))


def graph() -> list[te.Tensor]:
    """numpy multiplies, C sums, the C library takes roots, a statement built in Python adds up."""
    A, B = te.placeholder((N, K), name="A"), te.placeholder((K, M), name="B")
    C = te.extern((N, M), [A, B], lambda ins, outs: tir.call_packed("example.matmul", *ins, *outs), name="C")
    S = te.extern(
        (N,),
        [C],
        lambda ins, outs: tir.call_extern("void", "positive_sums", ins[0].data, outs[0].data, N, M),
        name="S",
    )
    R = te.compute((N,), lambda i: tir.call_pure_extern("float32", "sqrtf", S[i]), name="R")

    def running(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        target[0] = source[0]
        with ib.for_range(1, N, "i") as i:
            target[i] = target[i - 1] + source[i]
        return ib.get()

    return [A, B, te.extern((N,), [R], running, name="running")]


def script_function() -> PrimFunc:
    """The same as a script."""
    n, m, k = N, M, K

    @T.prim_func
    def main(A: T.Buffer((n, k), "float32"), B: T.Buffer((k, m), "float32"), running: T.Buffer((n,), "float32")):
        C = T.alloc_buffer((n, m))
        S = T.alloc_buffer((n,))
        with T.block("C"):
            T.reads(A[0:n, 0:k], B[0:k, 0:m])
            T.writes(C[0:n, 0:m])
            T.call_packed("example.matmul", A, B, C)
        with T.block("S"):
            T.reads(C[0:n, 0:m])
            T.writes(S[0:n])
            T.evaluate(T.call_extern("void", "positive_sums", C.data, S.data, n, m))
        for i in range(n):
            with T.block("running"):
                vi = T.axis.opaque(n, i)
                before: T.float32 = T.if_then_else(vi > 0, running[vi - 1], T.float32(0))
                running[vi] = before + T.call_pure_extern("float32", "sqrtf", S[vi])

    return main


def main() -> None:
    load_c()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((N, K), (K, M)))  # sums of these are exact
    sums = np.maximum(a @ b, 0).sum(axis=1)
    expected = np.cumsum(np.sqrt(sums), dtype="float32")
    for name, program in (("te", te.create_prim_func(graph())), ("script", script_function())):
        compiled, evaluated = np.zeros(N, "float32"), np.zeros(N, "float32")
        lw.build(program)(a, b, compiled)
        evaluate(program, a, b, evaluated)
        np.testing.assert_array_equal(compiled, expected)
        np.testing.assert_array_equal(evaluated, expected)
        print(f"{name}: numpy → C → the C library → loops, compiled and evaluated alike: … {compiled[-1]:.3f}")


if __name__ == "__main__":
    main()
