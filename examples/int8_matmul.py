"""An int8 matrix product with dot-product instructions: the same five loops as packed_gemm.py, and a tensor intrinsic.

    python examples/int8_matmul.py 512 1024                check, and time beside our float32 product, run by run
    python examples/int8_matmul.py --intrinsic vnni 512    choose: vnni, amx (x86-64), sdot (AArch64)
    python examples/int8_matmul.py --show 512              print the scheduled program and the steps

C int32 = A · B, with A uint8 (int8 for sdot) and B int8. One instruction multiplies rows of A with four elements of the
reduction that lie side by side in B; so B is packed as [columns / lanes, k / 4, lanes, 4]. `tensorize` finds the
instruction's computation in the innermost loops and marks it; everything around it is proved as ever.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.schedule import BlockRV, Schedule
from loopwright.target import describe
from loopwright.transform.tensor_intrinsics.x86_amx import amx_dot

sys.path.insert(0, str(Path(__file__).resolve().parent))

from packed_gemm import packed_gemm

GROUP = 4  # elements of the reduction that one instruction combines
KINDS = {"vnni": ("uint8", "int8"), "amx": ("uint8", "int8"), "sdot": ("int8", "int8")}


def int8_matmul(m: int, n: int, k: int, types: tuple[str, str]) -> PrimFunc:
    """C = A · B, summed in int32."""
    A, B = te.placeholder((m, k), types[0], name="A"), te.placeholder((k, n), types[1], name="B")
    r = te.reduce_axis((0, k), "k")
    product = lambda i, j: te.sum(A[i, r].astype("int32") * B[r, j].astype("int32"), axis=r)  # noqa: E731
    return te.create_prim_func([A, B, te.compute((m, n), product, name="C")])


def with_dot_products(m: int, n: int, k: int, intrinsic: str, lanes: int) -> Schedule:
    """The product through an instruction that makes `lanes` results from four products each (vnni, sdot)."""
    sch = Schedule(int8_matmul(m, n, k, KINDS["vnni" if lanes == 16 else "sdot"]))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    mr, vectors = (8, 3) if lanes == 16 else (6, 4)
    while n % (vectors * lanes):
        vectors -= 1
    while m % mr:
        mr -= 1
    mc, kc = _part(m, 192, mr), _part(k, 512, GROUP)

    init = sch.decompose_reduction(block, i)
    ic, ir, im = sch.split(i, [None, mc // mr, mr])
    jr, jv, jn = sch.split(j, [None, vectors, lanes])
    pc, p, quad = sch.split(r, [None, kc // GROUP, GROUP])
    sch.reorder(pc, ic, jr, ir, p, im, jv, jn, quad)

    # B is packed so that one instruction's operand is contiguous; A so that a tile's rows are contiguous; the tile of
    # results stays in registers while the slab of the reduction runs.
    packed_b = sch.stage(block, pc, "B", layout=lambda k, j: (j // lanes, k // GROUP, j % lanes, k % GROUP))
    packed_a = sch.stage(block, ic, "A", layout=lambda i, k: (i // mr, k // GROUP, i % mr, k % GROUP))
    tile_in = sch.stage(block, ir, "C", "local")
    tile_out = sch.get_block("C_unstage")
    sch.tensorize(jn, intrinsic)
    sch.unroll(im)
    sch.unroll(jv)

    for copy in (tile_in, tile_out):
        rows, columns = sch.get_loops(copy)[-2:]
        sch.unroll(rows)
        vector, lane = sch.split(columns, [None, lanes])
        sch.unroll(vector)
        sch.vectorize(lane)
    # Packing: four rows of B are interleaved, a vector of columns at a time; A goes four elements at a time.
    interleave(sch, packed_b, lanes)
    rows, columns = sch.get_loops(packed_a)[-2:]
    panel, row = sch.split(rows, [None, mr])
    groups, four = sch.split(columns, [None, GROUP])
    sch.reorder(panel, groups, row, four)
    sch.unroll(row)
    sch.vectorize(four)
    _, lane = sch.split(sch.get_loops(init)[-1], [None, 16 if n % 16 == 0 else 1])
    sch.vectorize(lane)
    return sch


def interleave(sch: Schedule, packed: BlockRV, lanes: int) -> None:
    """The packing of B through shuffles of whole rows."""
    rows, columns = sch.get_loops(packed)[-2:]
    groups, four = sch.split(rows, [None, GROUP])
    vector, lane = sch.split(columns, [None, lanes])
    sch.reorder(groups, vector, four, lane)
    sch.tensorize(four, f"interleave_{GROUP}x{lanes}_int8")


def with_tiles(m: int, n: int, k: int) -> Schedule:
    """The product through AMX tiles: 32 × 32 results stay in tile registers while a slab of the reduction runs."""
    if m % 32 or n % 32 or k % 64:
        raise SystemExit("the AMX schedule takes sizes that 32, 32 and 64 divide")
    sch = Schedule(int8_matmul(m, n, k, KINDS["amx"]))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    kc = _part(k, 1024, 64)
    init = sch.decompose_reduction(block, i)
    i_0, i_1 = sch.split(i, [None, 32])
    j_0, j_1 = sch.split(j, [None, 32])
    pc, p = sch.split(r, [None, kc])
    sch.reorder(pc, j_0, i_0, i_1, j_1, p)
    packed = sch.stage(block, pc, "B", layout=lambda k, j: (j // 16, k // GROUP, j % 16, k % GROUP))
    sch.tensorize(i_1, amx_dot(32, 32, kc, "u8s8s32"))
    interleave(sch, packed, 16)
    _, lane = sch.split(sch.get_loops(init)[-1], [None, 16])
    sch.vectorize(lane)
    return sch


def _part(size: int, limit: int, step: int) -> int:
    """The largest multiple of `step` up to `limit` that divides `size`."""
    return max([part for part in range(step, min(limit, size) + 1, step) if size % part == 0], default=step)


def scheduled(m: int, n: int, k: int, kind: str) -> Schedule:
    """The product, scheduled for an instruction."""
    if kind == "amx":
        return with_tiles(m, n, k)
    name, lanes = ("dot_16x4_vnni", 16) if kind == "vnni" else ("dot_4x4_i8i8s32_sdot", 4)
    if n % lanes or k % GROUP:
        raise SystemExit(f"the schedule takes widths that {lanes} divides and depths that {GROUP} divides")
    return with_dot_products(m, n, k, name, lanes)


def available() -> list[str]:
    """The instructions that this machine has."""
    features = describe("llvm").features
    if platform.machine() == "x86_64":
        return [name for name, need in (("vnni", "avx512vnni"), ("amx", "amx-int8")) if need in features]
    return ["sdot"] if "dotprod" in features else []


def check_and_time(size: int, kind: str, pairs: int) -> str:
    """One line of a table: checked against numpy's int32 product, timed beside our float32 product, pair by pair."""
    product = lw.build(scheduled(size, size, size, kind).mod)
    floats = lw.build(packed_gemm(size, size, size).mod)
    random = np.random.default_rng(0)
    types = [np.dtype(name) for name in KINDS[kind]]
    a, b = [random.integers(np.iinfo(t).min, np.iinfo(t).max, (size, size), t, endpoint=True) for t in types]
    x, y = random.random((size, size), np.float32), random.random((size, size), np.float32)
    c, z = np.empty((size, size), np.int32), np.empty((size, size), np.float32)
    product(a, b, c)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64)), "the int8 product is wrong"
    floats(x, y, z)
    ratios, best, best_float = [], float("inf"), float("inf")
    for _ in range(pairs):
        begin = time.thread_time()
        product(a, b, c)
        middle = time.thread_time()
        floats(x, y, z)
        end = time.thread_time()
        ratios.append((end - middle) / (middle - begin))
        best, best_float = min(best, middle - begin), min(best_float, end - middle)
    rates = [2 * size**3 / seconds / 1e9 for seconds in (best, best_float)]
    return f"{size:>6}  {kind:>9}  {rates[0]:>12.1f}  {rates[1]:>16.1f}  {statistics.median(ratios):>14.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[512, 1024])
    parser.add_argument("--intrinsic", choices=list(KINDS), help="one of them; else all that this machine has")
    parser.add_argument("--pairs", type=int, default=15, help="timed pairs of runs, int8 and float32")
    parser.add_argument("--show", action="store_true", help="print the scheduled program")
    options = parser.parse_args()
    kinds = [options.intrinsic] if options.intrinsic else available()
    if not kinds:
        sys.exit("this machine has none of the instructions")
    if options.show:
        size = options.sizes[0]
        scheduled(size, size, size, kinds[0]).show()
        return
    print("  size  intrinsic  best int8 Gop/s  best float32 Gop/s  median float32 / int8")
    for size in options.sizes:
        for kind in kinds:
            print(check_and_time(size, kind, options.pairs))


if __name__ == "__main__":
    main()
