"""matmul → exp → matmul, from tensor expressions to native code, checked and timed beside numpy.

    F[i, l] = sum over j of exp(sum over k of A[i, k] * B[k, j]) * C[j, l]        (1024 × 2048 × 1024 × 3072)

As a student writes it down, the program runs its loops as they stand, which is slow. Scheduled by rule
(`autosched=True`) the same program packs its operands, keeps sums in registers and shares the work out, with a proof
for each step and no measurement. `textbook_ladder.py` and `packed_gemm.py` do such steps by hand.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable

# numpy's BLAS otherwise spins on after each call and disturbs whoever is measured next.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

import numpy as np

import loopwright as lw
from loopwright import autosched, te

PAIRS = 7
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
    function = te.create_prim_func(chain())
    print("The program as script:\n")
    function.show()

    started = time.perf_counter()
    plan = autosched.apply(function)
    scheduled = lw.build(plan.mod)
    took = time.perf_counter() - started
    print(f"\nScheduled by rule ({len(plan.trace.insts)} steps) and compiled in {took:.2f} s:\n")
    print(plan.explain())
    print("\nThe inner loop of the product, as assembly:\n")
    print(excerpt(scheduled.get_source("asm"), r"\t(vfmadd|fmadd|fmla)", before=4, after=8))

    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (M, K)).astype("float32") / np.float32(16)
    b = rng.uniform(-1, 1, (K, N)).astype("float32") / np.float32(4)
    c = rng.uniform(-1, 1, (N, L)).astype("float32")
    exact, allowed = reference(a, b, c)
    d, f, g = np.empty((M, N), "float32"), np.empty((M, L), "float32"), np.empty((M, L), "float32")

    def in_numpy() -> None:
        np.matmul(a, b, out=d)
        np.matmul(np.exp(d, out=d), c, out=g)

    threads = lw.runtime.num_threads()
    print(f"\nOn {threads} threads, medians of {PAIRS} pairs of calls and of ratios, ours and numpy's in turn:\n")
    pairs = [(timed(in_numpy), timed(lambda: scheduled(a, b, c, f))) for _ in range(PAIRS + 1)][1:]
    show("numpy", statistics.median(theirs for theirs, _ in pairs))
    ratio = statistics.median(theirs / mine for theirs, mine in pairs)
    ours = statistics.median(mine for _, mine in pairs)
    show("te, scheduled by rule", ours, ratio, share_of_bound(f, exact, allowed))
    written = lw.build(function)
    print("    (now one call of the loops as written: up to a minute)", flush=True)
    seconds = timed(lambda: written(a, b, c, f))
    show("te, loops as written (one call)", seconds, pairs[0][0] / seconds, share_of_bound(f, exact, allowed))
    print("\nChecked against float64, with the bound that any order of float32 additions must keep.")


def share_of_bound(result: np.ndarray, exact: np.ndarray, allowed: np.ndarray) -> float:
    """The largest error, as a share of what is allowed; more than all of it is a mistake."""
    worst = float((np.abs(result - exact) / allowed).max())
    assert worst <= 1, "the result is outside the error bound of float32"
    return worst


def show(name: str, seconds: float, ratio: float | None = None, error: float | None = None) -> None:
    """A line of the table."""
    compared = "" if ratio is None else f"   {ratio:.3f} × numpy   error {error:.3%} of its bound"
    print(f"    {name:34} {seconds:8.4f} s{compared}")


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
