"""The BLIS matrix product as an ordinary schedule: pack both operands, keep a tile of the result in registers.

    python examples/packed_gemm.py 512 1024 1000          check, and time against numpy on one thread
    python examples/packed_gemm.py --show 512             print the scheduled program and the steps
    python examples/packed_gemm.py --assembly 512         print the inner loop as the machine runs it

Five loops around a micro-kernel (Van Zee and van de Geijn): columns of B that fit the last cache, a slab of the
reduction, rows of A that fit the second, and then tiles of `mr` × `nr` results that stay in registers while the slab
runs. Every step is proved to keep every value; a wrong one would be refused with the two iterations that show it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

# numpy's product runs on one thread, like ours.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.schedule import LoopRV, Schedule
from loopwright.target import CpuDescription, describe

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Tiles:
    """Sizes of the five loops: `mr` × `nr` results in registers, `mc` × `kc` of A and `kc` × `nc` of B packed.

    The micro-kernel does `ku` steps of the reduction for each turn of its loop.
    """

    mr: int
    nr: int
    mc: int
    nc: int
    kc: int
    ku: int
    lanes: int


def choose_tiles(m: int, n: int, k: int, cpu: CpuDescription) -> Tiles:
    """Tiles for an m × k by k × n product: what registers and caches hold, sizes that divide the problem preferred."""
    lanes = cpu.native_vector_lanes("float32")
    best, best_score = (1, 1), 0.0
    for vectors in range(1, 7):
        for mr in range(2, 17):
            # Accumulators, one row of B, and a value of A spread over a vector; the most work for a load wins.
            if mr * vectors + vectors + 1 > cpu.registers:
                continue
            score = mr * vectors / (mr + vectors) * _fit(m, mr) * _fit(n, vectors * lanes)
            if score > best_score:
                best, best_score = (mr, vectors), score
    mr, nr = best[0], best[1] * lanes
    caches = cpu.cache_sizes
    kc = _part(k, min(256, max(64, caches.l1d * 4 // 3 // (nr * FLOAT_BYTES))), 1)
    mc = _part(m, max(mr, caches.l2 // 8 // (kc * FLOAT_BYTES)), mr)
    nc = _part(n, 4096, nr)
    return Tiles(mr, nr, mc, nc, kc, 2 - kc % 2, lanes)


def _fit(size: int, tile: int) -> float:
    """How much of the tiles' work is useful; less when the last one is cut short, which takes a kernel of its own."""
    whole = -(-size // tile) * tile
    return size / whole * (1.0 if whole == size else 0.8)


def _part(size: int, limit: int, step: int) -> int:
    """A multiple of `step` up to `limit`: one that divides `size` if it is not too small, else even parts."""
    for part in range(min(limit, size) // step * step, max(step, limit // 3), -step):
        if size % part == 0:
            return part
    parts = -(-size // limit)
    return -(-size // (parts * step)) * step


def matmul(m: int, n: int, k: int) -> PrimFunc:
    """C = A · B as a tensor expression."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def packed_gemm(m: int, n: int, k: int, tiles: Tiles | None = None) -> Schedule:
    """The product, scheduled."""
    t = tiles or choose_tiles(m, n, k, describe("llvm"))
    mr, nr = t.mr, t.nr
    sch = Schedule(matmul(m, n, k))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)

    # The five loops. The start value is a block of its own, since a slab of the reduction only adds to C.
    init = sch.decompose_reduction(block, i)
    ic, ir, im = sch.split(i, [None, t.mc // mr, mr])
    jc, jr, jn = sch.split(j, [None, t.nc // nr, nr])
    pc, p, pu = sch.split(r, [None, t.kc // t.ku, t.ku])
    sch.reorder(jc, pc, ic, jr, ir, p, pu, im, jn)

    # What is packed, and where: each panel is laid out in the order in which the micro-kernel reads it.
    packed_b = sch.stage(block, pc, "B", layout=lambda k, j: (j // nr, k, j % nr))
    packed_a = sch.stage(block, ic, "A", layout=lambda i, k: (i // mr, k, i % mr))
    tile_in = sch.stage(block, ir, "C", "local")
    tile_out = sch.get_block("C_unstage")

    sch.prefetch(block, p, "A_stage", distance=16 // t.ku)

    # The micro-kernel: constant indices after unrolling, so the tile becomes registers.
    sch.unroll(pu)
    sch.unroll(im)
    _vectors(sch, jn, t.lanes)
    for copy in (tile_in, tile_out):
        rows, columns = sch.get_loops(copy)[-2:]
        sch.unroll(rows)
        _vectors(sch, columns, t.lanes)

    # Packing runs over whole vectors of B, and over `mr` rows of A at a time; so does writing the start value.
    _, lane = sch.split(sch.get_loops(packed_b)[-1], [None, t.lanes])
    sch.vectorize(lane)
    rows, column = sch.get_loops(packed_a)[-2:]
    panel, row = sch.split(rows, [None, mr])
    sch.reorder(panel, column, row)
    sch.unroll(row)
    _, lane = sch.split(sch.get_loops(init)[-1], [None, t.lanes])
    sch.vectorize(lane)
    return sch


def _vectors(sch: Schedule, loop: LoopRV, lanes: int) -> None:
    """A loop as unrolled vectors."""
    vector, lane = sch.split(loop, [None, lanes])
    sch.unroll(vector)
    sch.vectorize(lane)


def check_and_time(size: int, pairs: int) -> str:
    """One line of a table: the error against float64, and the time beside numpy's, pair by pair."""
    started = time.perf_counter()
    sch = packed_gemm(size, size, size)
    scheduled = time.perf_counter()
    run = lw.build(sch.mod)
    built = time.perf_counter()
    random = np.random.default_rng(0)
    a, b = random.random((size, size), np.float32), random.random((size, size), np.float32)
    ours, theirs = np.empty((size, size), np.float32), np.empty((size, size), np.float32)
    run(a, b, ours)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # Each sum of `size` products of numbers in [0, 1) is off by at most size · 2⁻²⁴ of itself, and a bit to spare.
    error = float(np.max(np.abs(ours - exact) / exact))
    assert error <= size * 2.0**-24, f"{size}: relative error {error}"
    ratios, best = [], float("inf")
    for _ in range(pairs):
        begin = time.thread_time()  # what this thread ran, not what it waited: the machine may be shared
        run(a, b, ours)
        middle = time.thread_time()
        np.matmul(a, b, out=theirs)
        end = time.thread_time()
        ratios.append((end - middle) / (middle - begin))
        best = min(best, middle - begin)
    gflops = 2 * size**3 / best / 1e9
    return (
        f"{size:>6}  {len(_steps(sch)):>5}  {scheduled - started:>8.2f} s  {built - scheduled:>6.2f} s"
        f"  {error:>9.1e}  {gflops:>12.1f}  {statistics.median(ratios):>8.3f}"
    )


def _steps(sch: Schedule) -> list[str]:
    """The steps that changed the program, as Python."""
    return [line for line in sch.trace.as_python() if "sch.get_" not in line]


def inner_loop(m: int, n: int, k: int, tiles: Tiles | None = None) -> list[str]:
    """The instructions of the micro-kernel: the loop with the most multiply-adds."""
    return busiest_loop(lw.build(packed_gemm(m, n, k, tiles).mod).get_source("asm").splitlines())


def busiest_loop(lines: Sequence[str]) -> list[str]:
    """The shortest stretch from a label to the branch back to it that holds the most multiply-adds."""
    labels = {line.split(":")[0].strip(): position for position, line in enumerate(lines) if line.startswith(".L")}
    best: list[str] = []
    for position, line in enumerate(lines):
        words = line.split()
        target = words[-1] if len(words) > 1 else ""
        start = labels.get(target)
        if start is None or start >= position:
            continue
        if any(text.startswith(".L") for text in lines[start + 1 : position]):
            continue  # another loop, or a branch, is inside
        body = [text.strip() for text in lines[start + 1 : position + 1] if not text.lstrip().startswith((".", "#"))]
        if _multiply_adds(body) > _multiply_adds(best):
            best = body
    return best


def _multiply_adds(body: Sequence[str]) -> int:
    return sum(text.startswith(("vfmadd", "fmla")) for text in body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[512, 1024, 1000])
    parser.add_argument("--pairs", type=int, default=15, help="timed pairs of runs, ours and numpy's")
    parser.add_argument("--show", action="store_true", help="print the scheduled program")
    parser.add_argument("--assembly", action="store_true", help="print the inner loop")
    options = parser.parse_args()
    if options.show:
        packed_gemm(*[options.sizes[0]] * 3).show()
        return
    if options.assembly:
        print("\n".join(inner_loop(*[options.sizes[0]] * 3)))
        return
    print("  size  steps    schedule     build  rel. error  best GFLOP/s  median numpy / ours")
    for size in options.sizes:
        print(check_and_time(size, options.pairs))


if __name__ == "__main__":
    main()
