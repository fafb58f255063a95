"""compute_inline: a block's value where it is read."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

import loopwright
from loopwright import te
from loopwright.arith import Analyzer
from loopwright.ir import Var, const, substitute
from loopwright.schedule import Schedule
from loopwright.schedule.errors import HandleGone, WouldChangeValues
from loopwright.schedule.inlining import inverse_of
from loopwright.schedule.primitives.compute_inline import NotInlinable
from loopwright.schedule.regions import Span
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


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
