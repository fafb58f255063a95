"""reverse_compute_inline: a block folded into the one that makes what it reads."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.schedule import Schedule
from loopwright.schedule.errors import WouldChangeValues
from loopwright.schedule.primitives.compute.compute_inline import NotInlinable
from loopwright.schedule.primitives.compute.reverse_compute_inline import NotFoldable
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, refused


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


def test_the_store_moves_into_the_producer():
    sch = Schedule(two_steps)
    producer = sch.get_block("B")
    outer, _ = sch.split(sch.get_loops(producer)[0], [None, 3])
    sch.reverse_compute_inline("C")

    @T.prim_func
    def expected(A: T.Buffer(8), C: T.Buffer(8)):
        for i_0, i_1 in T.grid(3, 3):
            with T.block("B"):
                vi = T.axis.spatial(8, i_0 * 3 + i_1)
                T.where(i_0 * 3 + i_1 < 8)
                C[vi] = (A[vi] + 1.0) * 2.0

    check(sch, two_steps, expected)
    assert sch.get(producer).name_hint == "B"


def test_a_guard_where_less_is_used_than_made():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1, name="B")
    C = te.compute((5,), lambda i: B[i + 2] * 2, name="C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    sch.reverse_compute_inline("C")

    @T.prim_func
    def expected(A: T.Buffer(8), C: T.Buffer(5)):
        T.func_attr({"tir.noalias": True})
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                if 2 <= vi and vi < 7:
                    C[vi - 2] = (A[vi] + T.float32(1)) * T.float32(2)

    check(sch, func, expected)


def test_other_inputs_and_repeated_reads():
    A, E = te.placeholder((4, 5), name="A"), te.placeholder((5, 4), name="E")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((5, 4), lambda i, j: B[j, i] * B[j, i] + E[i, j], name="C")
    func = te.create_prim_func([A, E, C])
    sch = Schedule(func)
    sch.reverse_compute_inline("C")
    check(sch, func)


@T.prim_func
def reshape(A: T.Buffer((4, 6)), C: T.Buffer((24,))):
    B = T.alloc_buffer((4, 6))
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
    for i in range(24):
        with T.block("C"):
            vi = T.axis.spatial(24, i)
            C[vi] = B[vi // 6, vi % 6]


def test_a_reshape_is_folded():
    sch = Schedule(reshape)
    sch.reverse_compute_inline("C")
    assert "C[vi * 6 + vj] = A[vi, vj]" in sch.mod.script()
    check(sch, reshape)


def test_only_a_column_is_used():
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((4,), lambda i: B[i, 3] * 2, name="C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    sch.reverse_compute_inline("C")
    check(sch, func)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_chains_fold_one_after_the_other(size):
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] + 1, name="B")
    C = te.compute((size,), lambda i: B[i] * 2, name="C")
    D = te.compute((size,), lambda i: te.exp(C[size - 1 - i]), name="D")
    func = te.create_prim_func([A, D])
    sch = Schedule(func)
    sch.reverse_compute_inline("C")
    sch.reverse_compute_inline("D")
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))] == ["B"]
    check(sch, func)


def test_a_reduction_is_not_folded_into(with_suggestions):
    sch = Schedule(chain())
    error = refused(sch, NotFoldable, "reads the result of a reduction, block 'D'", "reverse_compute_inline", "E")
    assert "reverse_compute_at" in str(error)
    refused(sch, NotInlinable, "block 'F' is a reduction", "reverse_compute_inline", "F")


def test_a_consumer_that_covers_more_is_refused():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2, name="B")
    C = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), B[i - 1], 0.0), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    match = r"the caller reads C\[0\], but iteration \(v_i=0\) of C no longer writes it"
    refused(sch, WouldChangeValues, match, "reverse_compute_inline", "C")


def test_inputs_made_in_between_are_not_read_too_early():
    @T.prim_func
    def func(A: T.Buffer(4), C: T.Buffer(4)):
        B = T.alloc_buffer(4)
        E = T.alloc_buffer(4)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0
        for i in range(4):
            with T.block("E"):
                vi = T.axis.spatial(4, i)
                E[vi] = A[vi] * 3.0
                A[vi] = 0.0
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] + A[vi]

    sch = Schedule(func)
    refused(sch, WouldChangeValues, r"A\[0\]", "reverse_compute_inline", "C")


@pytest.mark.parametrize("place", ["t", "2 - t"])
def test_a_cell_that_several_iterations_make_is_not_theirs_alone(place):
    func = from_source(f"""
        @T.prim_func
        def main(C: T.Buffer((4,), "int32")):
            B = T.alloc_buffer((4,), "int32")
            for t in range(3):
                for i in range(4):
                    with T.block("B"):
                        vi, vt = T.axis.remap("SS", [i, t])
                        B[vi] = vi + 10 * vt
                with T.block("C"):
                    v = T.axis.spatial(4, {place})
                    C[v] = B[v]
        """)
    sch = Schedule(func)
    with pytest.raises(NotFoldable, match="reads a cell of B that several iterations of block 'B' write") as refused:
        sch.reverse_compute_inline("C")
    assert "or give each iteration a cell of B" in str(refused.value)


def test_a_cell_that_is_made_again_and_again_with_the_same_value_is_folded():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
            B = T.alloc_buffer((4,), "int32")
            for t in range(3):
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi] + 1
                with T.block("C"):
                    v = T.axis.spatial(4, t)
                    C[v] = B[v]
        """)
    sch = Schedule(func)
    sch.reverse_compute_inline("C")
    check(sch, func)


def test_refusals():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] + B[i + 1], name="C")
    D = te.compute((4,), lambda i: B[i] * 2, name="D")
    sch = Schedule(te.create_prim_func([A, C]))
    refused(sch, NotFoldable, r"reads B at several cells: B\[v_i\] and B\[v_i \+ 1\]", "reverse_compute_inline", "C")
    refused(sch, NotFoldable, "reads nothing that another block makes", "reverse_compute_inline", "B")
    sch = Schedule(te.create_prim_func([A, C, D]))
    match = "is not the only one that reads B: block 'C' does as well"
    refused(sch, NotFoldable, match, "reverse_compute_inline", "D")
    broadcast = te.compute((4, 6), lambda i, j: B[j], name="W")
    sch = Schedule(te.create_prim_func([A, broadcast]))
    refused(sch, NotFoldable, "one cell may belong to several iterations", "reverse_compute_inline", "W")


def test_a_consumer_of_a_part_of_the_last_block():
    A = te.placeholder((8,), name="A")
    B = te.compute((2, 4), lambda i, j: A[i * 4 + j] + 1, name="B")
    C = te.compute((7,), lambda i: B[i // 4, i % 4] * 2, name="C")
    func = te.create_prim_func([A, C])
    sch = Schedule(func)
    sch.reverse_compute_inline("C")
    assert "if v_i * 4 + v_j < 7:" in sch.mod.script()
    check(sch, func)
