"""GEMM: the six rungs of the classic tutorial through te schedules, then other loop orders, tiles and types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, only_function, scheduled
from loopwright import te
from loopwright.driver.build_module import schedule_to_module
from loopwright.ir import IterVar, PrimFunc
from loopwright.schedule import Schedule
from loopwright.target import host_description

BLOCK, KFACTOR = 32, 4


def _loops(function: PrimFunc, m: int, n: int, k: int, dtype: str = "float32") -> Loops:
    a, b = uniform((m, k), dtype=dtype, seed=1), uniform((k, n), dtype=dtype, seed=2)

    def reference() -> list[Bounded]:
        exact = wide(a) @ wide(b)
        return [Bounded(exact, gamma(k + 1, dtype) * (np.abs(wide(a)) @ np.abs(wide(b))))]

    return Loops(function, [a, b], [aligned((m, n), dtype)], reference, 2 * m * n * k)


# --- the classic tutorial -------------------------------------------------------------------------------------------


def _tensors(size: int, packed: bool) -> list[te.Tensor]:
    """A, B, C and, where B is packed into panels, the panels."""
    A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    if not packed:
        return [A, B, te.compute((size, size), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")]
    panels = te.compute((size // BLOCK, size, BLOCK), lambda x, y, z: B[y, x * BLOCK + z], name="packedB")
    C = te.compute((size, size), lambda m, n: te.sum(A[m, k] * panels[n // BLOCK, k, n % BLOCK], axis=k), name="C")
    return [A, B, C, panels]


TeSteps = Callable[[te.Schedule, te.Tensor], None]


def tutorial(steps: TeSteps, packed: bool, size: int) -> Loops:
    """A matmul of te, scheduled stage by stage."""
    tensors = _tensors(size, packed)
    C = tensors[2]
    s = te.create_schedule(C.op)
    steps(s, C)
    if packed:
        panel, _, column = s[tensors[3]].op.axis
        s[tensors[3]].vectorize(column)
        s[tensors[3]].parallel(panel)
    return _loops(only_function(schedule_to_module(s, tensors[:3])), size, size, size)


def default_order(s: te.Schedule, C: te.Tensor) -> None:
    """The innermost loop walks down a column of B."""


def _tile(s: te.Schedule, C: te.Tensor, row_first: bool) -> IterVar:
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=KFACTOR)
    s[C].reorder(mo, no, ko, *((mi, ki) if row_first else (ki, mi)), ni)
    return ni


def blocking(s: te.Schedule, C: te.Tensor) -> None:
    """32 × 32 tiles of C stay in L1."""
    _tile(s, C, row_first=False)


def vectorization(s: te.Schedule, C: te.Tensor) -> None:
    """Rows of a tile are vectors."""
    s[C].vectorize(_tile(s, C, row_first=False))


def permutation(s: te.Schedule, C: te.Tensor) -> None:
    """Rows of A are read in order."""
    s[C].vectorize(_tile(s, C, row_first=True))


def permutation_without_vectors(s: te.Schedule, C: te.Tensor) -> None:
    """The same order of loops, the innermost one left to the compiler."""
    _tile(s, C, row_first=True)


def write_cache(s: te.Schedule, C: te.Tensor) -> None:
    """A tile of C is summed up in a buffer of its own and written once."""
    CC = s.cache_write(C, "global")
    mo, no, _, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=KFACTOR)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].vectorize(ni)
    s[C].parallel(mo)


# --- other orders and tiles -----------------------------------------------------------------------------------------


def _matmul(m: int, n: int, k: int, dtype: str = "float32") -> PrimFunc:
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func([A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")])


def matmul(steps: Steps, m: int, n: int, k: int, dtype: str = "float32") -> Loops:
    """A matmul, scheduled step by step."""
    return _loops(scheduled(_matmul(m, n, k, dtype), steps), m, n, k, dtype)


def float64(steps: Steps, m: int, n: int, k: int) -> Loops:
    """The same in double precision."""
    return matmul(steps, m, n, k, "float64")


def order(names: str) -> Steps:
    """The three loops in another order, "ikj" for example."""

    def reorder(sch: Schedule) -> None:
        loops = dict(zip("ijk", sch.get_loops("C"), strict=True))
        sch.reorder(*[loops[name] for name in names])

    return reorder


def tiled(m: int, n: int, k: int, inner: str = "ikj") -> Steps:
    """Tiles of m × n × k, the loops inside a tile in the order `inner`."""

    def tile(sch: Schedule) -> None:
        outer, inside = [], {}
        for name, loop, size in zip("ijk", sch.get_loops("C"), (m, n, k), strict=True):
            tiles, inside[name] = sch.split(loop, [None, size])
            outer.append(tiles)
        sch.reorder(*outer, *[inside[name] for name in inner])

    return tile


def register_tile(sch: Schedule) -> None:
    """Accumulators in a local buffer, unrolled and in vectors; written back once."""
    lanes = host_description().native_vector_lanes("float32")
    i, j, k = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 2 * lanes])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    copy = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(copy, j_0, preserve_unit_loops=True)
    sch.sink_alloc("C", "C_local")
    sch.unroll(i_1)
    rows, columns = sch.get_loops(copy)[-2:]
    sch.unroll(rows)
    for loop in (j_1, columns):
        several, lane = sch.split(loop, [None, lanes])
        sch.unroll(several)
        sch.vectorize(lane)


def transposed_b(steps: Steps, m: int, n: int, k: int) -> Loops:
    """C = A · Bᵀ: both operands are read along rows, a dot product each."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")
    a, b = uniform((m, k), seed=1), uniform((n, k), seed=2)

    def reference() -> list[Bounded]:
        return [Bounded(wide(a) @ wide(b).T, gamma(k + 1) * (np.abs(wide(a)) @ np.abs(wide(b)).T))]

    function = scheduled(te.create_prim_func([A, B, C]), steps)
    return Loops(function, [a, b], [aligned((m, n))], reference, 2 * m * n * k)


def int8(steps: Steps, m: int, n: int, k: int) -> Loops:
    """int8 operands, int32 sums."""
    A, B = te.placeholder((m, k), "int8", name="A"), te.placeholder((k, n), "int8", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype("int32") * B[r, j].astype("int32"), axis=r), name="C")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype("int8") for shape in ((m, k), (k, n)))

    def reference() -> list[Bounded]:
        return [Bounded((a.astype("float64") @ b.astype("float64")).astype("int64"), 0)]

    function = scheduled(te.create_prim_func([A, B, C]), steps)
    return Loops(function, [a, b], [aligned((m, n), "int32")], reference, 2 * m * n * k)


def _tutorial(name: str, steps: TeSteps, packed: bool = False, size: int = 1024) -> Rung:
    return Rung(f"tutorial: {name}", lambda *shape: tutorial(steps, packed, *shape), (size,), (64,))


def _rung(name: str, steps: Steps, size: int = 512, small: int = 65, make: Callable[..., Loops] = matmul) -> Rung:
    return Rung(name, lambda *shape: make(steps, *shape), (size,) * 3, (small,) * 3)


RUNGS = [
    _tutorial("default order", default_order, size=512),
    _tutorial("blocking", blocking),
    _tutorial("vectorization", vectorization),
    _tutorial("loop permutation", permutation),
    _tutorial("loop permutation, no vectors", permutation_without_vectors),
    _tutorial("array packing", permutation, packed=True),
    _tutorial("array packing, no vectors", permutation_without_vectors, packed=True),
    _tutorial("write cache, parallel", write_cache, packed=True),
    _rung("order ikj", order("ikj")),
    _rung("order kij", order("kij")),
    _rung("order jki", order("jki"), size=256),
    _rung("tiled 32×64×32, ikj", tiled(32, 64, 32)),
    _rung("tiled 32×32×32, kij", tiled(32, 32, 32, "kij")),
    _rung("tiled 16×16×16, ijk", tiled(16, 16, 16, "ijk")),
    _rung("tiled 48×80×40 of 500, ikj", tiled(48, 80, 40), size=500),
    _rung("register tile", register_tile, size=768, small=64),
    _rung("transposed B, ijk", as_written, make=transposed_b),
    _rung("float64, order ikj", order("ikj"), make=float64),
    _rung("int8 to int32, order ikj", order("ikj"), make=int8),
    _rung("int8 to int32, tiled 32×64×32", tiled(32, 64, 32), make=int8),
]
