"""A matrix product from 1 % of the machine to about 90 %, rung by rung: docs/tutorial/03_packed_gemm.md explains each.

    python examples/gemm_ladder.py 768                    every rung: checked, timed on one thread, beside the peak
    python examples/gemm_ladder.py 768 --threads 2        the last rung on two threads, and what the rules make of it
    python examples/gemm_ladder.py 768 --show packed      print the program of one rung

Each rung does the steps of the one before and some more. Sizes follow from the description of the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import loopwright as lw
from loopwright import autosched, te
from loopwright.ir import PrimFunc
from loopwright.runtime import threads
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.script import tir as T
from loopwright.target import CpuDescription, describe

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Sizes:
    """`rows` × `columns` results in registers; `panel` columns of B packed at a time; vectors of `lanes`."""

    rows: int
    columns: int
    panel: int
    lanes: int


def choose_sizes(n: int, k: int, cpu: CpuDescription) -> Sizes:
    """Sizes for a product with n columns and a sum of k parts, from registers and L2."""
    lanes = cpu.native_vector_lanes("float32")
    fitting = [
        (vectors, rows)
        for vectors in range(1, 7)
        for rows in range(2, 17)
        # The sums, one row of B, and a number of A spread over a vector.
        if rows * vectors + vectors + 1 <= cpu.registers and n % (vectors * lanes) == 0
    ]
    # A step of the sum loads rows + vectors times for rows · vectors multiply-adds.
    vectors, rows = max(fitting or [(1, 4)], key=lambda tile: tile[0] * tile[1] / (tile[0] + tile[1]))
    columns = vectors * lanes
    # A panel is read again for each tile of rows: it should stay in half of L2, the rest is A's and C's.
    most = max(1, cpu.cache_sizes.l2 // 2 // (k * columns * FLOAT_BYTES))
    tiles = -(-n // columns)
    panel = max(count for count in range(1, tiles + 1) if count <= most and (tiles % count == 0 or count == 1))
    return Sizes(rows, columns, panel * columns, lanes)


def matmul(m: int, n: int, k: int) -> PrimFunc:
    """C = A · B as a tensor expression."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


# --- rungs --------------------------------------------------------------------------------------------------------


@dataclass
class Work:
    """A schedule in the making, with the handles that later rungs need."""

    sch: Schedule
    sizes: Sizes
    block: BlockRV
    loops: dict[str, LoopRV]
    tile_out: BlockRV | None = None


def as_written(work: Work) -> None:
    """The innermost loop walks down a column of B."""


def reordered(work: Work) -> None:
    """The innermost loop walks along rows of B and C."""
    i, j, k = (work.loops[name] for name in "ijk")
    work.sch.reorder(i, k, j)


def tiled(work: Work) -> None:
    """A tile of C is worked on while the sum runs; each number that is loaded is used several times."""
    sch, sizes = work.sch, work.sizes
    i, j, k = (work.loops[name] for name in "ijk")
    i_0, i_1 = sch.split(i, [None, sizes.rows])
    j_0, j_1 = sch.split(j, [None, sizes.columns])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    work.loops |= {"i_0": i_0, "i_1": i_1, "j_0": j_0, "j_1": j_1}


def in_registers(work: Work) -> None:
    """The tile is a buffer of its own; unrolled and in vectors, it becomes registers."""
    tiled(work)
    sch, lanes, loops = work.sch, work.sizes.lanes, work.loops
    work.tile_out = sch.cache_write(work.block, 0, "local")
    sch.reverse_compute_at(work.tile_out, loops["j_0"], preserve_unit_loops=True)
    sch.sink_alloc(work.block, "C_local")  # one tile of it at a time, so lowering makes it that small
    sch.unroll(loops["i_1"])
    vectors(sch, loops["j_1"], lanes)
    rows, columns = sch.get_loops(work.tile_out)[-2:]
    sch.unroll(rows)
    vectors(sch, columns, lanes)


def packed(work: Work) -> None:
    """Columns of B are copied into panels, in the order in which the tile reads them."""
    in_registers(work)
    sch, sizes, loops = work.sch, work.sizes, work.loops
    columns = sizes.columns
    j_c, j_0 = sch.split(loops["j_0"], [None, sizes.panel // columns])
    sch.reorder(j_c, loops["i_0"], j_0)
    copy = sch.stage(work.block, j_c, "B", layout=lambda k, j: (j // columns, k, j % columns))
    _, lane = sch.split(sch.get_loops(copy)[-1], [None, sizes.lanes])
    sch.vectorize(lane)
    loops["j_c"] = j_c


def unrolled(work: Work) -> None:
    """Two parts of the sum for each turn of the loop."""
    packed(work)
    _, k_1 = work.sch.split(work.loops["k"], [None, 2])
    work.sch.unroll(k_1)


def on_threads(work: Work) -> None:
    """Bands of rows are shared out; all threads read one panel."""
    unrolled(work)
    work.sch.parallel(work.loops["i_0"])


RUNGS: list[Callable[[Work], None]] = [as_written, reordered, tiled, in_registers, packed, unrolled, on_threads]


def vectors(sch: Schedule, loop: LoopRV, lanes: int) -> None:
    """A loop as unrolled vectors."""
    several, lane = sch.split(loop, [None, lanes])
    sch.unroll(several)
    sch.vectorize(lane)


def scheduled(rung: Callable[[Work], None], m: int, n: int, k: int, sizes: Sizes | None = None) -> Schedule:
    """The product on one rung of the ladder."""
    sch = Schedule(matmul(m, n, k))
    block = sch.get_block("C")
    loops = dict(zip("ijk", sch.get_loops(block), strict=True))
    rung(Work(sch, sizes or choose_sizes(n, k, describe("llvm")), block, loops))
    return sch


# --- measuring ----------------------------------------------------------------------------------------------------


def peak(cpu: CpuDescription, turns: int = 200_000) -> float:
    """Operations a second of one core that multiplies and adds in registers, measured: twelve sums in vectors."""
    lanes, sums = cpu.native_vector_lanes("float32"), 12

    @T.prim_func
    def busy(x: T.Buffer((lanes,), "float32"), out: T.Buffer((sums, lanes), "float32")):
        total = T.alloc_buffer((sums, lanes), "float32", scope="local")
        for i in T.unroll(sums):
            for lane in T.vectorized(lanes):
                total[i, lane] = x[lane]
        for _ in range(turns):
            for i in T.unroll(sums):
                for lane in T.vectorized(lanes):
                    total[i, lane] = total[i, lane] * x[lane] + x[lane]
        for i in T.unroll(sums):
            for lane in T.vectorized(lanes):
                out[i, lane] = total[i, lane]

    run = lw.build(busy)
    x, out = np.full(lanes, 0.5, "float32"), np.empty((sums, lanes), "float32")
    return 2 * turns * sums * lanes / best_of(9, lambda: run(x, out))


def best_of(times: int, run: Callable[[], object], wall: bool = False) -> float:
    """Seconds of the best run: by what this thread ran, not what it waited, unless others help it."""
    clock, best = time.perf_counter if wall else time.thread_time, float("inf")
    for _ in range(times):
        begin = clock()
        run()
        best = min(best, clock() - begin)
    return best


def measure(name: str, sch: Schedule, size: int, limit: float, count: int = 1) -> str:
    """One line of the table: checked against float64, then timed."""
    assert sch.is_proved
    run = lw.build(sch.mod)
    random = np.random.default_rng(0)
    a, b = random.random((size, size), np.float32), random.random((size, size), np.float32)
    c = np.empty((size, size), np.float32)
    with threads(count):
        run(a, b, c)
        exact = a.astype(np.float64) @ b
        assert np.max(np.abs(c - exact) / exact) <= size * 2.0**-24, name
        seconds = best_of(2 if name == "as_written" else 15, lambda: run(a, b, c), wall=count > 1)
    flops = 2 * size**3 / seconds
    steps = len([line for line in sch.trace.as_python() if "sch.get_" not in line])
    return f"{name:14} {steps:>5} {flops / 1e9:>9.1f} {flops / limit:>9.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", type=int, nargs="?", default=768)
    parser.add_argument("--threads", type=int, default=1, help="for the last rung")
    parser.add_argument("--show", choices=[rung.__name__ for rung in RUNGS], help="print the program of one rung")
    options = parser.parse_args()
    cpu, size = describe("llvm"), options.size
    if options.show:
        rung = next(rung for rung in RUNGS if rung.__name__ == options.show)
        print(scheduled(rung, size, size, size).mod["main"].script())
        return
    limit = peak(cpu)
    print(f"{cpu}: {choose_sizes(size, size, cpu)}; {limit / 1e9:.1f} GFLOP/s in registers\n")
    print(f"{'rung':14} {'steps':>5} {'GFLOP/s':>9} {'of peak':>9}")
    for rung in RUNGS[:-1]:
        print(measure(rung.__name__, scheduled(rung, size, size, size), size, limit), flush=True)
    count, last = options.threads, scheduled(on_threads, size, size, size)
    print(measure("on_threads", last, size, limit * count, count), flush=True)
    by_rule = autosched.apply(matmul(size, size, size), f"llvm -num-cores={count}").schedule
    print(measure("by rule", by_rule, size, limit * count, count))


if __name__ == "__main__":
    main()
