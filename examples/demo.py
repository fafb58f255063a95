"""The demo: matmul → exp → matmul, from tensor expressions to native code, checked and timed beside numpy.

    F[i, l] = sum over j of exp(sum over k of A[i, k] * B[k, j]) * C[j, l]        (1024 × 2048 × 1024 × 3072)

Run it with `make demo`. The program as a student writes it down runs its loops as they stand, which is slow; the same
program written by hand in script has register tiles, vectors and threads. `textbook_ladder.py` gets from the first to
something like the second step by step, with a proof for each; `packed_gemm.py` goes all the way to the BLAS.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

# numpy's BLAS otherwise spins on after each call and disturbs whoever is measured next.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.script import tir as T
from loopwright.target import host_description

M, K, N, L = 1024, 2048, 1024, 3072


def chain() -> list[te.Tensor]:
    """The program, as a student would write it down."""
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    C = te.placeholder((N, L), name="C")
    k = te.reduce_axis((0, K), name="k")
    j = te.reduce_axis((0, N), name="j")
    D = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="D")
    E = te.compute((M, N), lambda i, j: te.exp(D[i, j]), name="E")
    F = te.compute((M, L), lambda i, l: te.sum(E[i, j] * C[j, l], axis=j), name="F")
    return [A, B, C, F]


def tiled_chain(lanes: int, rows: int = 4, vectors: int = 4) -> PrimFunc:
    """The same program by hand: a tile of `rows` × `vectors` vector registers adds up, `exp` joins the first matmul."""
    width = lanes * vectors

    @T.prim_func
    def main(
        A: T.Buffer((M, K), "float32"),
        B: T.Buffer((K, N), "float32"),
        C: T.Buffer((N, L), "float32"),
        F: T.Buffer((M, L), "float32"),
    ):
        E = T.alloc_buffer((M, N))
        for column in range(N // width):
            for row in T.parallel(M // rows):
                D = T.decl_buffer((rows, width), scope="local")
                for r, v in T.grid(rows, vectors):
                    for x in T.vectorized(lanes):
                        D[r, v * lanes + x] = T.float32(0)
                for k in range(K):
                    for r in T.unroll(rows):
                        for v in T.unroll(vectors):
                            for x in T.vectorized(lanes):
                                D[r, v * lanes + x] += A[row * rows + r, k] * B[k, column * width + v * lanes + x]
                for r, v in T.grid(rows, vectors):
                    for x in T.vectorized(lanes):
                        E[row * rows + r, column * width + v * lanes + x] = T.exp(D[r, v * lanes + x])
        for column in range(L // width):
            for row in T.parallel(M // rows):
                G = T.decl_buffer((rows, width), scope="local")
                for r, v in T.grid(rows, vectors):
                    for x in T.vectorized(lanes):
                        G[r, v * lanes + x] = T.float32(0)
                for k in range(N):
                    for r in T.unroll(rows):
                        for v in T.unroll(vectors):
                            for x in T.vectorized(lanes):
                                G[r, v * lanes + x] += E[row * rows + r, k] * C[k, column * width + v * lanes + x]
                for r, v in T.grid(rows, vectors):
                    for x in T.vectorized(lanes):
                        F[row * rows + r, column * width + v * lanes + x] = G[r, v * lanes + x]

    return main


def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The float64 result, and how far a float32 evaluation in any order may be from it."""
    unit = float(np.finfo("float32").eps) / 2  # the error of one rounding
    a, b, c = (x.astype("float64") for x in (a, b, c))
    d = a @ b
    e = np.exp(d)
    d_error = (K + 1) * unit * (np.abs(a) @ np.abs(b))  # a sum of K products
    e_error = e * (np.expm1(d_error) + 4 * unit)  # exp is within 2 ulp of exact
    f_error = e_error @ np.abs(c) + (N + 1) * unit * ((e + e_error) @ np.abs(c))
    return e @ c, f_error


def main() -> None:
    started = time.perf_counter()
    function = te.create_prim_func(chain())
    built = lw.build(function)
    print(f"from te to native code, cold: {1e3 * (time.perf_counter() - started):.0f} ms; of that, building (ms):")
    print("   " + ", ".join(f"{stage} {1e3 * seconds:.1f}" for stage, seconds in built.timings.items()))

    print("\nThe program as script:\n")
    function.show()
    print("\nThe first matmul's inner loop, as LLVM text after its optimizer:\n")
    print(excerpt(built.get_source("ll"), r"call .*@llvm\.fma", before=6, after=8))
    print("\nThe same, as assembly:\n")
    print(excerpt(built.get_source("asm"), r"\t(vfmadd|fmadd|fmla)", before=4, after=8))

    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (M, K)).astype("float32") / np.float32(16)
    b = rng.uniform(-1, 1, (K, N)).astype("float32") / np.float32(4)
    c = rng.uniform(-1, 1, (N, L)).astype("float32")
    exact, allowed = reference(a, b, c)
    tiled = lw.build(tiled_chain(host_description().native_vector_lanes("float32")))

    print(f"\nOne call each (numpy: the middle of three), on {lw.runtime.num_threads()} threads:\n")
    numpy_time = sorted(timed(lambda: np.exp(a @ b) @ c) for _ in range(3))[1]
    print(f"    {'numpy':34} {numpy_time:8.3f} s")
    for name, module in (("script, tiled by hand", tiled), ("te, loops as written (be patient)", built)):
        f = np.empty((M, L), "float32")
        ours = timed(lambda module=module, f=f: module(a, b, c, f))
        error = np.abs(f - exact)
        assert (error <= allowed).all(), f"{name}: the result is outside the error bound of float32"
        worst = (error / allowed).max()
        print(f"    {name:34} {ours:8.3f} s   {numpy_time / ours:.3f} × numpy   error {worst:.3%} of its bound")
    print("\nChecked against float64, with the bound that any order of float32 additions must keep.")


def excerpt(text: str, pattern: str, before: int, after: int) -> str:
    """The lines around the first one that matches `pattern`."""
    lines = text.splitlines()
    found = next((number for number, line in enumerate(lines) if re.search(pattern, line)), 0)
    return "\n".join("    " + line for line in lines[max(0, found - before) : found + after])


def timed(run: Callable[[], object]) -> float:
    """The seconds one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
