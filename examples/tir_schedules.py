"""The twelve schedules of te_schedules.py once more, with tir.Schedule: steps on the program itself, each one proved.

    python examples/tir_schedules.py                 all of them: steps, error, proof
    python examples/tir_schedules.py softmax         print the program that the schedule of softmax makes
    python examples/tir_schedules.py --trace softmax print the steps it took

A te schedule says what the loops of a stage shall be; here each step changes the program at once, and is refused when
it would change a value. The program comes from a script (`@T.prim_func`) or from the tensors of te_schedules.py, and is
held to the same references. What is computed inside a loop also gets its memory there (`sink_alloc`), before loops
around it run in parallel; te schedules do this by themselves. Lowered, each is the same program as through te, up to
names; only the tail of argmax differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import loopwright as lw
from loopwright import te
from loopwright.ir import IterType, PrimFunc
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.schedule.analysis import is_output_block
from loopwright.script import tir as T

sys.path.insert(0, str(Path(__file__).resolve().parent))

import te_schedules as through_te
from te_schedules import BLOCK, KFACTOR, SIZE


class Case(NamedTuple):
    """The program as written, its schedule, and the same through te: its parameters and what they should become."""

    function: PrimFunc
    schedule: Schedule
    same: through_te.Case


# --- the classic sequence of a matrix product ---------------------------------------------------------------------


@T.prim_func
def product(
    A: T.Buffer((SIZE, SIZE), "float32"), B: T.Buffer((SIZE, SIZE), "float32"), C: T.Buffer((SIZE, SIZE), "float32")
):
    T.func_attr({"tir.noalias": True})
    for m, n, k in T.grid(SIZE, SIZE, SIZE):
        with T.block("C"):
            vm, vn, vk = T.axis.remap("SSR", [m, n, k])
            with T.init():
                C[vm, vn] = T.float32(0)
            C[vm, vn] = C[vm, vn] + A[vm, vk] * B[vk, vn]


def _tile(sch: Schedule, block: BlockRV | str) -> list[LoopRV]:
    """Tiles of the two data axes: the loops over tiles, then those inside one."""
    m, n = sch.get_loops(block)[:2]
    mo, mi = sch.split(m, [None, BLOCK])
    no, ni = sch.split(n, [None, BLOCK])
    return [mo, no, mi, ni]


def gemm_blocked() -> Case:
    """Tiles that fit the cache."""
    sch = Schedule(product)
    mo, no, mi, ni = _tile(sch, "C")
    ko, ki = sch.split(sch.get_loops("C")[-1], [None, KFACTOR])
    sch.reorder(mo, no, ko, ki, mi, ni)
    return Case(product, sch, through_te.gemm_blocked())


def gemm_vectorized() -> Case:
    """The innermost loop as vectors."""
    sch = gemm_blocked().schedule
    sch.vectorize(sch.get_loops("C")[-1])
    return Case(product, sch, through_te.gemm_vectorized())


def gemm_permuted() -> Case:
    """Rows of A are read in order: two loops of the rung before change places."""
    sch = gemm_vectorized().schedule
    *_, ki, mi, _ = sch.get_loops("C")
    sch.reorder(mi, ki)
    return Case(product, sch, through_te.gemm_permuted())


def _pack(sch: Schedule) -> None:
    """B is copied into panels, in parallel: the copy and its layout are steps, and the product stays as written."""
    packed = sch.cache_read("C", "B", "global")
    sch.transform_layout(packed, ("write", 0), lambda y, n: (n // BLOCK, y, n % BLOCK))
    y, n = sch.get_loops(packed)
    bigN, littleN = sch.split(n, [None, BLOCK])
    sch.reorder(bigN, y, littleN)
    sch.vectorize(littleN)
    sch.parallel(bigN)


def gemm_packed() -> Case:
    """The packed operand, made in parallel."""
    sch = gemm_permuted().schedule
    _pack(sch)
    return Case(product, sch, through_te.gemm_packed())


def gemm_cached() -> Case:
    """A tile of the result is summed up in memory of its own, and written once."""
    sch = Schedule(product)
    written = sch.cache_write("C", 0, "global")
    mo, no, mi, ni = _tile(sch, written)
    sch.reorder(mo, no, mi, ni)
    sch.compute_at("C", no)
    sch.sink_alloc("C", "C_global")
    *_, mc, nc, k = sch.get_loops("C")
    ko, ki = sch.split(k, [None, KFACTOR])
    sch.reorder(ko, mc, ki, nc)
    sch.vectorize(nc)
    sch.unroll(ki)
    sch.vectorize(ni)
    _pack(sch)
    return Case(product, sch, through_te.gemm_cached())


def gemm_parallel() -> Case:
    """Rows of tiles on threads."""
    sch = gemm_cached().schedule
    sch.parallel(sch.get_loops("C")[0])
    return Case(product, sch, through_te.gemm_parallel())


# --- operators ----------------------------------------------------------------------------------------------------


def conv2d(n: int = 1, ci: int = 4, size: int = 10, co: int = 8, kernel: int = 3) -> Case:
    """A tiled convolution: padding and product are made for a tile of the output at a time."""
    same = through_te.conv2d(n, ci, size, co, kernel)
    function = te.create_prim_func(same.args)
    sch = Schedule(function)
    b, o, h, w = sch.get_loops("relu")
    oo, oi = sch.split(o, [None, 4])
    ho, hi = sch.split(h, [None, 4])  # 10 rows: the last tile is cut short
    sch.reorder(b, oo, ho, oi, hi, w)
    for name in ("conv", "padded"):  # from the consumer to what it reads
        sch.compute_at(name, ho, preserve_unit_loops=True)  # loops of one iteration stay: there are seven at any size
    for name in ("conv", "padded"):
        sch.sink_alloc(name, name)
    *_, cb, cc, ch, cw, rc, ry, rx = sch.get_loops("conv")
    sch.reorder(cb, rc, ry, rx, cc, ch, cw)
    sch.vectorize(cw)
    sch.unroll(rx)
    sch.vectorize(w)
    sch.parallel(oo)
    return Case(function, sch, same)


def _inline_injective(sch: Schedule) -> None:
    """What AutoInlineInjective does: blocks that reduce nothing, and write no output, are computed where read."""
    for block in sch.get_child_blocks(sch.get_block("root")):
        axes = sch.get(block).iter_vars
        if all([axis.iter_type is IterType.DataPar for axis in axes]) and not is_output_block(sch, block):
            sch.compute_inline(block)


def depthwise_conv2d(channels: int = 6, multiplier: int = 2, size: int = 9, kernel: int = 3) -> Case:
    """A depthwise convolution with batch-norm and relu, whose element-wise parts are inlined by rule."""
    same = through_te.depthwise_conv2d(channels, multiplier, size, kernel)
    function = te.create_prim_func(same.args)
    sch = Schedule(function)
    _inline_injective(sch)
    b, c, _, w = sch.get_loops("relu")
    fused = sch.fuse(b, c)
    sch.compute_at("depthwise", fused)
    sch.sink_alloc("depthwise", "depthwise")
    sch.vectorize(w)
    sch.parallel(fused)
    return Case(function, sch, same)


def max_pool_batch_norm(channels: int = 4, size: int = 12) -> Case:
    """2×2 max pooling, then batch-norm by mean and variance, with the element-wise chain inlined."""
    same = through_te.max_pool_batch_norm(channels, size)
    function = te.create_prim_func(same.args)
    sch = Schedule(function)
    _inline_injective(sch)
    _, c, h, _ = sch.get_loops("norm")
    sch.compute_at("pool", h)
    sch.sink_alloc("pool", "pool")
    *_, ry, rx = sch.get_loops("pool")
    sch.unroll(ry)
    sch.unroll(rx)
    sch.parallel(c)
    return Case(function, sch, same)


def softmax(rows: int = 5, columns: int = 33) -> Case:
    """A row at a time: its maximum, the exponentials, their sum, the quotient, all while the row is in the cache."""

    @T.prim_func
    def function(x: T.Buffer((rows, columns), "float32"), out: T.Buffer((rows, columns), "float32")):
        T.func_attr({"tir.noalias": True})
        largest = T.alloc_buffer((rows,))
        power = T.alloc_buffer((rows, columns))
        total = T.alloc_buffer((rows,))
        for i, k in T.grid(rows, columns):
            with T.block("largest"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    largest[vi] = T.float32("-inf")
                largest[vi] = T.max(largest[vi], x[vi, vk])
        for i, c in T.grid(rows, columns):
            with T.block("power"):
                vi, vc = T.axis.remap("SS", [i, c])
                power[vi, vc] = T.exp(x[vi, vc] - largest[vi])
        for i, j in T.grid(rows, columns):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + power[vi, vj]
        for i, c in T.grid(rows, columns):
            with T.block("out"):
                vi, vc = T.axis.remap("SS", [i, c])
                out[vi, vc] = power[vi, vc] / total[vi]

    sch = Schedule(function)
    i, c = sch.get_loops("out")
    for name in ("total", "power", "largest"):
        sch.compute_at(name, i, preserve_unit_loops=True)  # so that a row of one element has its loop too
    for name in ("total", "power", "largest"):
        sch.sink_alloc(name, name)
    for inner in (sch.get_loops("power")[-1], c):
        _, lanes = sch.split(inner, [None, 4])
        sch.vectorize(lanes)
    sch.parallel(i)
    return Case(function, sch, through_te.softmax(rows, columns))


def argmax(rows: int = 5, columns: int = 37, lanes: int = 8) -> Case:
    """The place and the value of the largest element: every lane finds its own, then they are compared (`rfactor`)."""

    @T.prim_func
    def function(
        x: T.Buffer((rows, columns), "float32"), place: T.Buffer((rows,), "int32"), value: T.Buffer((rows,), "float32")
    ):
        T.func_attr({"tir.noalias": True})
        for i, k in T.grid(rows, columns):
            with T.block("best"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    place[vi] = T.max_value("int32")
                    value[vi] = T.float32("-inf")
                wins: T.bool = value[vi] > x[vi, vk] or (T.isnan(value[vi]) and not T.isnan(x[vi, vk]))
                ties: T.bool = value[vi] == x[vi, vk] or (T.isnan(value[vi]) and T.isnan(x[vi, vk]))
                new_place: T.int32 = T.if_then_else(wins or (ties and place[vi] < vk), place[vi], vk)
                new_value: T.float32 = T.max(value[vi], x[vi, vk])
                place[vi] = new_place
                value[vi] = new_value

    sch = Schedule(function)
    _, k = sch.get_loops("best")
    _, ki = sch.split(k, [None, lanes])
    found = sch.rfactor(ki, 0)
    i, _ = sch.get_loops("best")  # the loop over rows where lanes are compared; the old ones went with the lanes
    sch.compute_at(found, i)
    for partial in ("place_rf", "value_rf"):
        sch.sink_alloc(found, partial)
    sch.parallel(i)
    return Case(function, sch, through_te.argmax(rows, columns, lanes))


def lstm(steps: int = 6, batch: int = 2, hidden: int = 8) -> Case:
    """An LSTM as a scan: gates are inlined into the states, the product runs along rows of the weights."""
    same = through_te.lstm(steps, batch, hidden)
    function = te.create_prim_func(same.args)
    sch = Schedule(function)
    for name in ("gates", "taken", "kept"):
        sch.compute_inline(name)
    *_, g, i, j, k = sch.get_loops("product")
    sch.reorder(g, i, k, j)
    sch.vectorize(j)
    for update in ("next_h", "next_c"):
        sch.vectorize(sch.get_loops(update)[-1])
    return Case(function, sch, same)


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (
        gemm_blocked,
        gemm_vectorized,
        gemm_permuted,
        gemm_packed,
        gemm_cached,
        gemm_parallel,
        conv2d,
        depthwise_conv2d,
        max_pool_batch_norm,
        softmax,
        argmax,
        lstm,
    )
}


def check(case: Case) -> float:
    """Build and run the schedule; the largest error as a part of what is allowed."""
    return through_te.error_of(lw.build(case.schedule), case.same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=list(CASES), help="print the program of this one")
    parser.add_argument("--trace", action="store_true", help="print the steps instead")
    options = parser.parse_args()
    if options.name:
        schedule = CASES[options.name]().schedule
        print(schedule.trace if options.trace else schedule.mod)
        return
    print(f"{'schedule':22} {'steps':>5} {'scheduled in':>12} {'proved':>7} {'error / allowed':>16}")
    for name, make in CASES.items():
        start = time.perf_counter()
        case = make()
        seconds = time.perf_counter() - start
        steps = len([inst for inst in case.schedule.trace.insts if not inst.kind.startswith("Get")])
        print(f"{name:22} {steps:5d} {1e3 * seconds:9.0f} ms {case.schedule.is_proved!s:>7} {check(case):16.2f}")


if __name__ == "__main__":
    main()
