"""The textbook ladder: matmul → exp → matmul, made faster rung by rung, every step proved.

    python examples/textbook_ladder.py

Each rung starts from the program of `chain()` and is checked against numpy; the last column is its speed as a ratio to
the unscheduled program. The last rung's steps are printed, saved as JSON, loaded and replayed on a fresh schedule.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import structural_equal
from loopwright.schedule import Schedule, ScheduleError, Trace
from loopwright.target import host_description

M, K, N, L = 256, 512, 256, 768
TILE = 32
LANES = host_description().native_vector_lanes("float32")


def chain() -> list[te.Tensor]:
    """D = A @ B, E = exp(D), F = E @ C."""
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    C = te.placeholder((N, L), name="C")
    k = te.reduce_axis((0, K), name="k")
    n = te.reduce_axis((0, N), name="n")
    D = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="D")
    E = te.compute((M, N), lambda m, n: te.exp(D[m, n]), name="E")
    F = te.compute((M, L), lambda m, l: te.sum(E[m, n] * C[n, l], axis=n), name="F")
    return [A, B, C, F]


def unscheduled(sch: Schedule) -> None:
    """The loops as written."""


def reorder(sch: Schedule) -> None:
    """The innermost loop runs along rows of B, C, D and F."""
    for name in ("D", "F"):
        m, n, k = sch.get_loops(name)
        sch.reorder(m, k, n)


def tile_the_reduce_axis(sch: Schedule) -> None:
    """A band of B (or C) is used for all rows before the next."""
    for name in ("D", "F"):
        m, n, k = sch.get_loops(name)
        k_0, k_1 = sch.split(k, [None, 64])
        sch.reorder(k_0, m, k_1, n)


def tile_all(sch: Schedule) -> None:
    """Tiles of both matmuls stay in the cache."""
    for name in ("D", "F"):
        m, n, k = sch.get_loops(name)
        m_0, m_1 = sch.split(m, [None, TILE])
        n_0, n_1 = sch.split(n, [None, 4 * TILE])
        k_0, k_1 = sch.split(k, [None, 64])
        sch.reorder(m_0, n_0, k_0, m_1, k_1, n_1)


def merge_exp_into_the_tile(sch: Schedule) -> None:
    """exp runs on a tile of D right after it is made."""
    tile_all(sch)
    m, n = sch.get_loops("E")
    m_0, m_1 = sch.split(m, [None, TILE])
    n_0, n_1 = sch.split(n, [None, 4 * TILE])
    sch.reorder(m_0, n_0, m_1, n_1)
    rows = sch.merge(sch.get_loops("D")[0], m_0)
    sch.merge(sch.get_loops("D")[1], sch.get_loops("E")[1])
    del rows


def merge_the_m_loops(sch: Schedule) -> None:
    """A band of rows goes through all three blocks before the next begins."""
    merge_exp_into_the_tile(sch)
    sch.merge(sch.get_loops("D")[0], sch.get_loops("F")[0])


def vectorize_and_parallel(sch: Schedule) -> None:
    """Vectors inside, threads outside."""
    merge_the_m_loops(sch)
    for name in ("D", "E", "F"):
        *_, inner = sch.get_loops(name)
        _, lanes = sch.split(inner, [None, LANES])
        sch.vectorize(lanes)
    sch.parallel(sch.get_loops("D")[0])


RUNGS: list[Callable[[Schedule], None]] = [
    unscheduled,
    reorder,
    tile_the_reduce_axis,
    tile_all,
    merge_exp_into_the_tile,
    merge_the_m_loops,
    vectorize_and_parallel,
]


def main() -> None:
    function = te.create_prim_func(chain())
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (M, K)).astype("float32") / np.float32(8)
    b = rng.uniform(-1, 1, (K, N)).astype("float32") / np.float32(4)
    c = rng.uniform(-1, 1, (N, L)).astype("float32")
    exact = np.exp(a.astype("float64") @ b) @ c
    scale = np.exp(a.astype("float64") @ b) @ np.abs(c)
    base = 0.0
    print(f"{'rung':28} {'steps':>5} {'schedule':>10} {'run':>9} {'× unscheduled':>14}")
    for rung in RUNGS:
        sch = Schedule(function)
        start = time.perf_counter()
        rung(sch)
        scheduling = time.perf_counter() - start
        module = lw.build(sch.mod)
        f = np.empty((M, L), "float32")
        module(a, b, c, f)
        assert (np.abs(f - exact) <= (K + N + 8) * 2**-23 * scale).all(), f"{rung.__name__} is wrong"
        seconds = module.time_evaluator(module.entry_name, lw.cpu(), number=1, repeat=3)(a, b, c, f).median
        base = base or seconds
        steps = len([inst for inst in sch.trace.insts if not inst.kind.startswith("Get")])
        print(
            f"{rung.__name__:28} {steps:5d} {1e3 * scheduling:7.1f} ms {1e3 * seconds:6.1f} ms {base / seconds:13.1f}×"
        )

    print("\nThe steps of the last rung:\n")
    print(sch.trace)
    saved = json.dumps(sch.trace.as_json())
    again = Schedule(function)
    Trace.apply_json_to_schedule(saved, again)
    assert structural_equal(again.mod["main"], sch.mod["main"])
    print(f"\nsaved as {len(saved)} bytes of JSON, loaded, replayed: the same program")

    print("\nA step that would be wrong is refused, with the iterations that show it:\n")
    try:
        reduce_loop = Schedule(function)
        reduce_loop.parallel(reduce_loop.get_loops("D")[2])
    except ScheduleError as refused:
        print(refused)


if __name__ == "__main__":
    main()
