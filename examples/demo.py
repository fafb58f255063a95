"""The demo: matmul → exp → matmul from tensor expressions to native code, checked and timed beside numpy.

    E[i, l] = sum over j of exp(sum over k of A[i, k] * B[k, j]) * C[j, l]        (1024 × 2048 × 1024 × 3072)

Run it with `make demo`. Nothing here is scheduled: the loops run as they are written. Schedules are the next floor.
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
    print(f"from te to native code: {1e3 * (time.perf_counter() - started):.0f} ms, of which (ms)")
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
    f = np.empty((M, L), "float32")
    start = time.perf_counter()
    built(a, b, c, f)
    ours = time.perf_counter() - start

    exact, allowed = reference(a, b, c)
    error = np.abs(f - exact)
    assert (error <= allowed).all(), "the result is outside the error bound of float32"
    print(f"\nchecked against float64: largest error {error.max():.2e}, at most {(error / allowed).max():.1%} of the bound")

    theirs = min(timed(lambda: np.exp(a @ b) @ c) for _ in range(3))
    print(f"\nunscheduled loops {ours:.2f} s, numpy {theirs:.3f} s on {lw.runtime.num_threads()} threads: {theirs / ours:.3f} × numpy")
    print("(every loop runs as written; making it fast is a schedule's work, and schedules are the next step)")


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
