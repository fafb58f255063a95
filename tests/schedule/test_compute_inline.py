"""compute_inline: a block's value where it is read."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import numpy as np
import pytest

import loopwright
from loopwright import te
from loopwright.arith import Analyzer
from loopwright.evaluator import difference, evaluate_terms
from loopwright.evaluator.errors import UninitialisedRead
from loopwright.ir import PrimFunc, Var, const, substitute
from loopwright.schedule import Schedule
from loopwright.schedule.errors import HandleGone, ScheduleError, WouldChangeValues
from loopwright.schedule.primitives.compute.compute_inline import NotInlinable
from loopwright.schedule.rewrite.inlining import inverse_of
from loopwright.schedule.rewrite.regions import Span
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.campaign import programs
from tests.schedule.steps import assert_same_numbers, chain, check, check_replay, matmul, refused, same_program


@T.prim_func
def two_steps(A: T.Buffer(8), C: T.Buffer(8)):
    B = T.alloc_buffer(8)
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * 2.0


def test_the_value_takes_the_place_of_the_load():
    sch = Schedule(two_steps)
    block = sch.get_block("B")
    sch.compute_inline(block)

    @T.prim_func
    def expected(A: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = (A[vi] + 1.0) * 2.0

    check(sch, two_steps, expected)
    with pytest.raises(HandleGone, match="block B is no longer in the program"):
        sch.get(block)


def test_shifted_and_transposed_loads():
    A = te.placeholder((6, 6), name="A")
    B = te.compute((6, 6), lambda i, j: A[j, i] + 1, name="B")
    C = te.compute((4, 5), lambda i, j: B[i + 2, j + 1] * B[j, i], name="C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    sch.compute_inline("B")

    @T.prim_func
    def expected(A: T.Buffer((6, 6)), C: T.Buffer((4, 5))):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(4, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[0:6, 0:6])
                C[vi, vj] = (A[vj + 1, vi + 2] + T.float32(1)) * (A[vi, vj] + T.float32(1))

    check(sch, func, expected)


@T.prim_func
def stores_at_an_offset(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    B = T.alloc_buffer((16,))
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * 4 + (3 - vj)] = A[vi, vj] + 1.0
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj * 4 + vi]


@pytest.mark.parametrize("seed", range(20))
def test_digits_are_found_again(seed):
    random = Random(seed)
    spans, index, reach = {}, const(random.randint(-5, 5)), 0
    for place in range(random.randint(1, 3)):
        axis, low = Var(f"v{place}"), random.randint(-3, 3)
        high = low + random.randint(0, 3)
        factor = (reach + random.randint(1, 3)) * random.choice([1, -1])
        index, reach = index + axis * factor, reach + abs(factor) * (high - low)
        spans[axis] = Span(const(low), const(high))
    inverse = inverse_of([index], spans)
    assert inverse is not None
    ranges = [range(int(span.low), int(span.high) + 1) for span in spans.values()]
    for point in product(*ranges):
        at = dict(zip(spans, point, strict=True))
        cell = Analyzer().simplify(substitute(index, at))
        found = inverse([cell])
        assert [int(Analyzer().simplify(found[axis])) for axis in spans] == list(point)


def test_store_indices_are_inverted():
    sch = Schedule(stores_at_an_offset)
    sch.compute_inline("B")
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))] == ["C"]
    check(sch, stores_at_an_offset)


def test_into_several_consumers_and_reductions():
    A, W = te.placeholder((5, 4), name="A"), te.placeholder((4, 3), name="W")
    B = te.compute((5, 4), lambda i, j: te.exp(A[i, j]), name="B")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((5, 3), lambda i, j: te.sum(B[i, k] * W[k, j], axis=k), name="C")
    D = te.compute((5, 3), lambda i, j: C[i, j] + B[i, j], name="D")
    func = te.create_prim_func([A, W, D])
    sch = Schedule(func)
    sch.compute_inline("B")
    check(sch, func)
    refused(sch, NotInlinable, "block 'C' is a reduction: it has an init", "compute_inline", "C")


def test_after_tiling_and_moving():
    func = chain(5, 4, 3, 2)
    sch = Schedule(func)
    outer, _ = sch.split(sch.get_loops("F")[0], [None, 2])
    sch.compute_at("E", outer)
    sch.compute_inline("E")
    check(sch, func)


def test_padding_is_inlined_lazily():
    n = 5
    X, W = te.placeholder((n, n), name="X"), te.placeholder((3, 3), name="W")
    P = te.compute(
        (n + 2, n + 2),
        lambda y, x: te.if_then_else(te.all(y >= 1, y < n + 1, x >= 1, x < n + 1), X[y - 1, x - 1], 0.0),
        name="P",
    )
    ry, rx = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    Y = te.compute((n, n), lambda y, x: te.sum(P[y + ry, x + rx] * W[ry, rx], axis=[ry, rx]), name="Y")
    func = te.create_prim_func([X, W, Y])
    sch = Schedule(func)
    sch.compute_inline("P")
    check(sch, func)
    x, w = (np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in ((n, n), (3, 3)))
    got, want = np.zeros((n, n), "float32"), np.zeros((n, n), "float32")
    loopwright.build(sch.mod)(x, w, got)
    loopwright.build(func)(x, w, want)
    np.testing.assert_array_equal(got, want)


def test_a_block_that_nobody_reads_is_taken_out():
    @T.prim_func
    def func(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi]

    sch = Schedule(func)
    sch.compute_inline("B")

    @T.prim_func
    def expected(A: T.Buffer(4), C: T.Buffer(4)):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi]

    check(sch, func, expected)


def test_constants_and_lets():
    @T.prim_func
    def func(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer((1,))
        for i in range(1):
            with T.block("B"):
                vi = T.axis.spatial(1, i)
                B[vi] = 3.0
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] * B[0] + B[0]

    sch = Schedule(func)
    sch.compute_inline("B")
    check(sch, func)


def test_what_was_overwritten_meanwhile_is_not_read():
    @T.prim_func
    def func(A: T.Buffer(6), C: T.Buffer(6)):
        B = T.alloc_buffer(6)
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] + 1.0
        for i in range(6):
            with T.block("A"):
                vi = T.axis.spatial(6, i)
                A[vi] = 0.0
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                C[vi] = B[vi]

    sch = Schedule(func)
    match = r"iteration \(vi=0\) of B reads A\[0\] after iteration \(vi=0\) of A has overwritten it"
    refused(sch, WouldChangeValues, match, "compute_inline", "B")


def test_in_place_and_reversed_is_refused():
    @T.prim_func
    def func(A: T.Buffer(6)):
        B = T.alloc_buffer(6)
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] + 1.0
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                A[vi] = B[5 - vi]

    sch = Schedule(func)
    match = r"iteration \(vi=\d\) of B reads A\[\d\] after iteration \(vi=\d\) of C has overwritten it"
    refused(sch, WouldChangeValues, match, "compute_inline", "B")


def test_in_place_at_the_same_cell_is_fine():
    @T.prim_func
    def func(A: T.Buffer(6)):
        B = T.alloc_buffer(6)
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi] + 1.0
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                A[vi] = B[vi] * 2.0

    sch = Schedule(func)
    sch.compute_inline("B")
    check(sch, func)


def test_two_writers():
    @T.prim_func
    def func(A: T.Buffer(8), C: T.Buffer(8)):
        B = T.alloc_buffer(8)
        for i in range(4):
            with T.block("B0"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0
        for i in range(4):
            with T.block("B1"):
                vi = T.axis.spatial(4, i)
                B[vi + 4] = A[vi] - 1.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    sch = Schedule(func)
    refused(sch, NotInlinable, "block 'B1' writes it as well", "compute_inline", "B0")


def test_a_part_that_is_not_written_is_not_computed():
    @T.prim_func
    def func(A: T.Buffer(4), C: T.Buffer(8), D: T.Buffer(4)):
        B = T.alloc_buffer(8)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.Select(vi < 4, B[vi], 0.0)

    refused(
        Schedule(func), NotInlinable, r"does not write all of B, and block 'C' may read B\[vi\]", "compute_inline", "B"
    )

    @T.prim_func
    def lazy(A: T.Buffer(4), C: T.Buffer(8)):
        B = T.alloc_buffer(8)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.if_then_else(vi < 4, B[vi], 0.0)

    sch = Schedule(lazy)
    sch.compute_inline("B")
    check(sch, lazy)


def test_refusals():
    sch = Schedule(two_steps)
    refused(sch, NotInlinable, "block 'C' writes C, which the caller reads", "compute_inline", "C")
    refused(sch, NotInlinable, "block 'root' is the root block", "compute_inline", "root")
    refused(Schedule(matmul()), NotInlinable, "is a reduction: it has an init", "compute_inline", "C")

    @T.prim_func
    def many_to_one(A: T.Buffer(8), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi // 2] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    match = r"writes B\[vi // 2\], where one cell may belong to several iterations"
    refused(Schedule(many_to_one), NotInlinable, match, "compute_inline", "B")

    @T.prim_func
    def memory_of_its_own(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                X = T.alloc_buffer(1)
                B[vi] = T.Select(vi < 0, X[0], A[vi])
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    @T.prim_func
    def a_part_under_a_name(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                X = T.match_buffer(A[vi : vi + 1], (1,), offset_factor=1)
                B[vi] = X[0]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    for func in (memory_of_its_own, a_part_under_a_name):
        refused(Schedule(func), NotInlinable, "block 'B' is not a single store", "compute_inline", "B")

    @T.prim_func
    def impure(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.call_extern("float32", "tick", A[vi])
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    refused(Schedule(impure), NotInlinable, "calls something that does more than give a value", "compute_inline", "B")


# --- memory that each iteration of a loop uses again ----------------------------------------------------------------


@T.prim_func
def step_by_step(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
    B = T.alloc_buffer((1, 4))
    for t in T.serial(1, 6):
        for i in range(4):
            with T.block("B"):
                vt = T.axis.scan((1, 6), t)
                vi = T.axis.spatial(4, i)
                B[0, vi] = A[vt - 1, vi] + 1.0
        for i in range(4):
            with T.block("C"):
                vt = T.axis.scan((1, 6), t)
                vi = T.axis.spatial(4, i)
                C[vt, vi] = B[0, 3 - vi] * B[0, vi]


def test_the_value_of_the_same_step():
    sch = Schedule(step_by_step)
    sch.compute_inline("B")

    @T.prim_func
    def expected(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        for t in T.serial(1, 6):
            for i in range(4):
                with T.block("C"):
                    vt = T.axis.scan((1, 6), t)
                    vi = T.axis.spatial(4, i)
                    C[vt, vi] = (A[vt - 1, 3 - vi] + 1.0) * (A[vt - 1, vi] + 1.0)

    check(sch, step_by_step, expected)


def test_the_value_of_the_same_step_after_tiling():
    @T.prim_func
    def func(A: T.Buffer((5, 4)), C: T.Buffer((5, 4))):
        B = T.alloc_buffer((4,))
        for t in range(5):
            for i in range(4):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi] = A[vt, vi] + 1.0
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = B[3 - vi] * 2.0

    sch = Schedule(func)
    t, i = sch.get_loops("B")
    sch.split(t, [None, 2])
    sch.compute_inline("B")
    check(sch, func)


def test_the_value_of_the_same_step_inside_a_block():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        B = T.alloc_buffer((4,))
        for t in range(4):
            for i in range(4):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi] = A[vt, vi] + 1.0
            with T.block("outer"):
                wt = T.axis.spatial(4, t)
                for i in range(4):
                    with T.block("C"):
                        vt = T.axis.spatial(4, wt)
                        vi = T.axis.spatial(4, i)
                        C[vt, vi] = B[vi] * 2.0

    sch = Schedule(func)
    sch.compute_inline("B")
    check(sch, func)


def test_the_stages_of_a_scan():
    steps, n = 4, 3
    X = te.placeholder((steps, n), name="X")
    s = te.placeholder((steps, n), name="s")
    first = te.compute((1, n), lambda _, i: X[0, i], name="first")
    double = te.compute((steps, n), lambda t, i: s[t - 1, i] * 2, name="double")
    sums = te.compute((steps, n), lambda t, i: double[t, i] + X[t, i], name="sums")
    after = te.compute((steps, n), lambda t, i: sums[t, i] - double[t, n - 1 - i], name="after")
    out = te.scan(first, after, s, inputs=[X], name="out")
    func = te.create_prim_func([X, out])
    sch = Schedule(func)
    sch.compute_inline("sums")
    sch.compute_inline("double")
    check(sch, func)
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))] == ["first", "after"]


SEVERAL = "where one cell may belong to several iterations"


def test_the_value_of_the_step_before_stays():
    @T.prim_func
    def func(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        B = T.alloc_buffer((4,))
        for t in range(6):
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = T.if_then_else(vt > 0, B[vi], 0.0)
            for i in range(4):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi] = A[vt, vi] + 1.0

    refused(Schedule(func), NotInlinable, SEVERAL, "compute_inline", "B")


def test_what_is_refused_is_told_without_the_dimension_for_the_steps():
    @T.prim_func
    def func(A: T.Buffer((6, 8)), C: T.Buffer((6, 4))):
        B = T.alloc_buffer((4,))
        for t in range(6):
            for i in range(8):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi // 2] = A[vt, vi]
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = B[vi]

    refused(Schedule(func), NotInlinable, rf"writes B\[vi // 2\], {SEVERAL}", "compute_inline", "B")


def test_a_cell_that_this_step_has_not_written_yet_stays():
    @T.prim_func
    def func(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        B = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("first"):
                vi = T.axis.spatial(4, i)
                C[0, vi] = 0.0
        for t, i in T.grid(6, 4):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vi] = A[vt, vi] + 1.0
            with T.block("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                T.where(t > 0)
                C[vt, vi] = B[3 - vi]

    refused(Schedule(func), NotInlinable, SEVERAL, "compute_inline", "B")


def test_a_reader_after_the_loop_stays():
    @T.prim_func
    def func(A: T.Buffer((6, 4)), C: T.Buffer((4,))):
        B = T.alloc_buffer((4,))
        for t, i in T.grid(6, 4):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vi] = A[vt, vi] + 1.0
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    refused(Schedule(func), NotInlinable, SEVERAL, "compute_inline", "B")


def test_a_step_that_does_not_always_write_stays():
    @T.prim_func
    def func(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        B = T.alloc_buffer((4,))
        for t in range(6):
            for i in range(4):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    T.where(t % 2 == 0)
                    B[vi] = A[vt, vi] + 1.0
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = B[vi]

    refused(Schedule(func), NotInlinable, SEVERAL, "compute_inline", "B")


def test_a_step_that_writes_a_part_of_what_is_read_stays():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        B = T.alloc_buffer((4,))
        for t in range(4):
            for i in range(2):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi] = A[vt, vi] + 1.0
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = T.Select(vi < 2, B[vi], 0.0)

    match = "does not write all of B, and block 'C' may read B where it was not written"
    refused(Schedule(func), NotInlinable, match, "compute_inline", "B")


def test_steps_of_any_number():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        C = T.match_buffer(c, (n, 4))
        B = T.alloc_buffer((4,))
        for t in range(n):
            for i in range(4):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi] = A[vt, vi] + 1.0
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = B[3 - vi] * 2.0

    sch = Schedule(func)
    sch.compute_inline("B")

    @T.prim_func
    def expected(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        C = T.match_buffer(c, (n, 4))
        for t in range(n):
            for i in range(4):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = (A[vt, 3 - vi] + 1.0) * 2.0

    same_program(sch.mod["main"], expected)


STEPS = """
@T.prim_func
def main(A: T.Buffer((4, 3)), S: T.Buffer((4, 3))):
    B = T.alloc_buffer((3,))
    D = T.alloc_buffer((3,))
    for i in range(3):
        with T.block("start"):
            vi = T.axis.spatial(3, i)
            D[vi] = A[0, vi]
    for t in range(4):
"""

CELLS = "        for i in range(3):\n"

BLOCK = """\
            with T.block("{name}"):
                vt, vi = T.axis.remap("SS", [t, i])
                {store}
"""


def random_steps(seed: int) -> PrimFunc:
    """Steps of B, whose memory each step uses again, of its reader C and of D, whose values B reads, in any order."""
    random = Random(seed)

    def cell() -> str:
        return random.choice(["vi", "vi", "2 - vi", "0", "T.max(vi - 1, 0)"])

    def step() -> str:
        return random.choice(["vt", "vt", "T.max(vt - 1, 0)"])

    stores = {
        "B": f"B[{random.choice(['vi', '2 - vi'])}] = {random.choice('AS')}[{step()}, {cell()}] + D[{cell()}]",
        "C": f"S[vt, vi] = B[{cell()}] + A[vt, vi] * B[{cell()}]",
        "D": f"D[vi] = A[{step()}, {cell()}] - D[vi]",
    }
    blocks = [BLOCK.format(name=name, store=stores[name]) for name in random.sample(sorted(stores), 3)]
    nests = [CELLS + "".join(blocks)] if random.random() < 0.3 else [CELLS + block for block in blocks]
    function = from_source(STEPS + "".join(nests))
    assert isinstance(function, PrimFunc)
    return function


def test_random_steps():
    answers: Counter[object] = Counter()
    for seed in range(programs(60, 150)):
        func = random_steps(seed)
        sch = Schedule(func)
        try:
            sch.compute_inline("B")
        except ScheduleError as refusal:
            answers[type(refusal)] += 1
            continue
        try:
            before = evaluate_terms(func)
        except UninitialisedRead:  # the first step reads what none has written
            continue
        answers["right"] += 1
        assert difference(before, evaluate_terms(sch.mod["main"])) is None, func.script()
    assert all([answers[answer] > 4 for answer in ("right", NotInlinable, WouldChangeValues)]), answers


# --- conditions and bounds that read the buffer ---------------------------------------------------------------------


def test_the_predicate_of_a_consumer():
    @T.prim_func
    def before(A: T.Buffer((8, 4)), C: T.Buffer((8, 4))):
        B = T.alloc_buffer((8, 4))
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(8, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(B[i, j] < T.float32(10))
                C[vi, vj] = B[vi, vj] + T.float32(1)

    sch = Schedule(before)
    sch.compute_inline("B")

    @T.prim_func
    def expected(A: T.Buffer((8, 4)), C: T.Buffer((8, 4))):
        for i, j in T.grid(8, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(A[i, j] * T.float32(2) < T.float32(10))
                C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)

    same_program(sch.mod["main"], expected)
    assert sch.is_proved
    check_replay(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_conditions_around_blocks_and_bounds_of_loops():
    @T.prim_func
    def before(N: T.Buffer(6, "int32"), A: T.Buffer((6, 9)), C: T.Buffer((6, 9))):
        B = T.alloc_buffer(6, "int32")
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = T.min(N[vi], 9)
        for i in range(6):
            if B[5 - i] > 2:
                for j in range(B[i]):
                    with T.block("C"):
                        vi, vj = T.axis.spatial(6, i), T.axis.spatial(9, j)
                        C[vi, vj] = A[vi, vj] + T.Cast("float32", B[vi])

    sch = Schedule(before)
    sch.compute_inline("B")
    assert "B" not in [buffer.name for buffer in sch.mod["main"].body.block.alloc_buffers]
    assert sch.is_proved
    assert_same_numbers(sch.mod["main"], before)


def test_loops_inside_the_consumer():
    @T.prim_func
    def before(A: T.Buffer((4, 6)), C: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                for j in range(6):
                    C[vi, j] = B[vi, 5 - j]

    sch = Schedule(before)
    sch.compute_inline("B")
    check(sch, before)


@pytest.mark.parametrize("where", ["T.where(B[i] < T.float32(10))", "T.where(B[7 - i] < T.float32(10))"])
def test_a_predicate_whose_inputs_change_before_it_is_refused(where):
    text = f"""
@T.prim_func
def before(A: T.Buffer(8), C: T.Buffer(8)):
    B = T.alloc_buffer(8)
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(0)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            {where}
            C[vi] = T.float32(1)
"""
    sch = Schedule(from_source(text))
    refused(sch, WouldChangeValues, "compute_inline would change a value", "compute_inline", "B")


@pytest.mark.parametrize(("index", "is_right"), [("k + 1", True), ("k + 2", True), ("k", False)])
def test_a_predicate_beside_a_block_that_changes_its_inputs(index, is_right):
    """Iterations overwrite what the inlined value is computed from."""
    text = f"""
@T.prim_func
def before(A: T.Buffer(10), D: T.Buffer(8)):
    B = T.alloc_buffer(10)
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * T.float32(2)
    for k in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, k)
            T.where(B[{index}] < T.float32(10))
            D[vi] = T.float32(1)
        with T.block("A"):
            vi = T.axis.spatial(8, k)
            A[vi + 1] = T.float32(0)
"""
    before = from_source(text)
    sch = Schedule(before)
    if is_right:
        sch.compute_inline("B")
        assert_same_numbers(sch.mod["main"], before)
    else:
        refused(sch, WouldChangeValues, "compute_inline would change a value", "compute_inline", "B")
