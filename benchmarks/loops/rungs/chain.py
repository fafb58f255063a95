"""The textbook ladder: matmul → exp → matmul, rung by rung."""

from __future__ import annotations

import numpy as np

from benchmarks.bench.bounds import gamma, ulps, wide
from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, scheduled
from loopwright import te
from loopwright.schedule import Schedule
from loopwright.target import host_description

TILE = 32


def chain(steps: Steps, m: int, k: int, n: int, columns: int) -> Loops:
    """F = exp(A · B) · C."""
    A, B, C = (te.placeholder(shape, name=name) for name, shape in zip("ABC", ((m, k), (k, n), (n, columns))))
    r, s = te.reduce_axis((0, k), name="k"), te.reduce_axis((0, n), name="n")
    D = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="D")
    E = te.compute((m, n), lambda i, j: te.exp(D[i, j]), name="E")
    F = te.compute((m, columns), lambda i, j: te.sum(E[i, s] * C[s, j], axis=s), name="F")
    a, b, c = (
        uniform((m, k), -0.125, 0.125, seed=1), uniform((k, n), -0.25, 0.25, seed=2), uniform((n, columns), seed=3)
    )  # fmt: skip

    def reference() -> list[Bounded]:
        d, off = wide(a) @ wide(b), gamma(k + 1) * (np.abs(wide(a)) @ np.abs(wide(b)))
        e = np.exp(d)
        share = np.expm1(off) + ulps("exp") + gamma(n + 1)
        return [Bounded(e @ wide(c), (e * share) @ np.abs(wide(c)) * (1 + 1e-4))]

    function = scheduled(te.create_prim_func([A, B, C, F]), steps)
    return Loops(function, [a, b, c], [aligned((m, columns))], reference, 2 * m * n * (k + columns))


def reorder(sch: Schedule) -> None:
    """The innermost loop runs along rows of B, C, D and F."""
    for name in ("D", "F"):
        m, n, k = sch.get_loops(name)
        sch.reorder(m, k, n)


def tile_reduction(sch: Schedule) -> None:
    """A strip of B (or C) is used for all rows before the next."""
    for name in ("D", "F"):
        m, n, k = sch.get_loops(name)
        k_0, k_1 = sch.split(k, [None, 64])
        sch.reorder(k_0, m, k_1, n)


def tile_all(sch: Schedule) -> None:
    """Tiles of both matmuls stay in L2."""
    for name in ("D", "F"):
        m, n, k = sch.get_loops(name)
        m_0, m_1 = sch.split(m, [None, TILE])
        n_0, n_1 = sch.split(n, [None, 4 * TILE])
        k_0, k_1 = sch.split(k, [None, 64])
        sch.reorder(m_0, n_0, k_0, m_1, k_1, n_1)


def fuse_exp(sch: Schedule) -> None:
    """exp runs on a tile of D right after it is computed."""
    tile_all(sch)
    m, n = sch.get_loops("E")
    m_0, m_1 = sch.split(m, [None, TILE])
    n_0, n_1 = sch.split(n, [None, 4 * TILE])
    sch.reorder(m_0, n_0, m_1, n_1)
    sch.merge(sch.get_loops("D")[0], m_0)
    sch.merge(sch.get_loops("D")[1], sch.get_loops("E")[1])


def fuse_rows(sch: Schedule) -> None:
    """A strip of rows goes through all three blocks before the next begins."""
    fuse_exp(sch)
    sch.merge(sch.get_loops("D")[0], sch.get_loops("F")[0])


def vectorize_and_parallel(sch: Schedule) -> None:
    """Vectors inside, threads outside."""
    fuse_rows(sch)
    lanes = host_description().native_vector_lanes("float32")
    for name in ("D", "E", "F"):
        _, inner = sch.split(sch.get_loops(name)[-1], [None, lanes])
        sch.vectorize(inner)
    sch.parallel(sch.get_loops("D")[0])


def _rung(name: str, steps: Steps) -> Rung:
    return Rung(f"textbook: {name}", lambda *shape: chain(steps, *shape), (256, 512, 256, 768), (33, 65, 131, 40))


RUNGS = [
    _rung("as written", as_written),
    _rung("reorder", reorder),
    _rung("tile the reduction", tile_reduction),
    _rung("tile all", tile_all),
    _rung("fuse exp", fuse_exp),
    _rung("fuse rows", fuse_rows),
    _rung("vectorize, parallel", vectorize_and_parallel),
]
