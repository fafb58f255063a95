"""reindex, reindex_cache_read, reindex_cache_write: a block touches a buffer that its own axes index."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.schedule.rewrite.reindexing import AxesDiffer, NotOnePoint
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, matmul, refused
from tests.schedule.test_cache_read import shared_loop


def strided(n: int = 8):
    """B[i] = sum of A[2 i + r] W[r]."""
    A, W = te.placeholder((2 * n + 2,), name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis((0, 3), "r")
    B = te.compute((n,), lambda i: te.sum(A[i * 2 + r] * W[r], axis=r), name="B")
    return te.create_prim_func([A, W, B])


def test_reads_become_points_of_the_axes():
    before = strided()
    sch = tir.Schedule(before)
    copy = sch.reindex("B", ("read", 0))
    assert sch.get(copy).name_hint == "A_reindex"

    @T.prim_func
    def expected(A: T.Buffer(18), W: T.Buffer(3), B: T.Buffer(8)):
        T.func_attr({"tir.noalias": True})
        A_reindex = T.alloc_buffer((8, 3))
        for ax0, ax1 in T.grid(8, 3):
            with T.block("A_reindex"):
                vi, vr = T.axis.remap("SS", [ax0, ax1])
                T.reads(A[vi * 2 + vr])
                T.writes(A_reindex[vi, vr])
                A_reindex[vi, vr] = A[vi * 2 + vr]
        for i, r in T.grid(8, 3):
            with T.block("B"):
                vi, vr = T.axis.remap("SR", [i, r])
                T.reads(A_reindex[vi, vr], W[vr])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A_reindex[vi, vr] * W[vr]

    check(sch, before, expected)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("buffer", [("read", 0), ("read", 1), ("write", 0), "A", "B"])
def test_every_side_at_odd_sizes(n, buffer):
    before = strided(n)
    sch = tir.Schedule(before)
    sch.reindex("B", buffer)
    check(sch, before)


def test_a_guarded_block_copies_what_it_touches():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("C")[0], [None, 4])
    sch.reindex("C", ("read", 0))
    sch.reindex("C", ("write", 0))
    check(sch, before)


@T.prim_func
def padded(A: T.Buffer(8), B: T.Buffer(10)):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = T.if_then_else(1 <= vi and vi < 9, A[vi - 1], T.float32(0))


def test_what_is_outside_the_buffer_is_not_copied():
    sch = tir.Schedule(padded)
    sch.reindex("B", ("read", 0))
    check(sch, padded)


@T.prim_func
def in_place(A: T.Buffer(8)):
    for i in range(7):
        with T.block("A"):
            vi = T.axis.spatial(7, i)
            A[vi + 1] = A[vi] + T.float32(1)


def test_values_made_on_the_way_are_no_copies_of_the_start():
    sch = tir.Schedule(in_place)
    error = refused(sch, WouldChangeValues, "reindex would change a value", "reindex", "A", ("read", 0))
    assert "A_reindex[1]" in error.why


def test_a_layout_of_the_axes():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    copy = sch.reindex_cache_read("C", 0, "local", lambda i, j, k: (k // 2, i, k % 2))
    assert [int(extent) for extent in sch.get(copy).writes[0].buffer.shape] == [2, 6, 2]
    assert sch.get(copy).name_hint == "A_local"
    out = sch.reindex_cache_write("C", 0, "local", lambda i, j, k: (j, i))
    assert sch.get(out).name_hint == "C_local"
    check(sch, before)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.parametrize(
    ("layout", "extent"), [("lambda i, j, k: (i % 3, k)", "3"), ("lambda i, j, k: (i // 2, k)", "3")]
)
def test_a_layout_where_values_meet_is_refused_with_a_witness(layout, extent):
    sch = tir.Schedule(matmul(6, 5, 4))
    error = refused(sch, WouldChangeValues, "would change", "reindex_cache_read", "C", 0, "local", layout)
    assert "A_local" in error.why


def test_a_layout_with_gaps_is_fine():
    before = matmul(3, 2, 2)
    sch = tir.Schedule(before)
    sch.reindex_cache_read("C", 0, "global", lambda i, j, k: (i * 2, k))
    check(sch, before)


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, AxesDiffer, "the access of block 'C' uses v_k alone", "reindex_cache_read", "C", 0, "local",
            lambda i, j, k: (i,))  # fmt: skip
    refused(sch, AxesDiffer, "the layout uses v_j alone", "reindex_cache_read", "C", 0, "local",
            lambda i, j, k: (i, j, k))  # fmt: skip
    refused(sch, BadStepArgument, "the map takes 2 indices, block 'C' has 3", "reindex_cache_write", "C", 0, "local",
            lambda i, j: (i, j))  # fmt: skip
    refused(sch, BadStepArgument, "there is no memory scope 'sofa'", "reindex_cache_read", "C", 0, "sofa",
            lambda i, j, k: (i, k))  # fmt: skip
    refused(sch, NoSuchBuffer, "reads 2 buffers, so there is none at 2", "reindex", "C", ("read", 2))
    refused(sch, NoSuchBuffer, "touches no buffer 'Z'", "reindex", "C", "Z")
    refused(sch, BadStepArgument, r"buffer is \['in', 0\]", "reindex", "C", ("in", 0))
    refused(sch, NoSuchBuffer, "block 'root' writes 0 buffers", "reindex", "root", ("write", 0))
    sch.blockize(sch.get_loops("C")[1])
    refused(sch, NotSupported, "has blocks inside", "reindex", "C_o", ("write", 0))


def test_several_cells_at_one_point():
    A = te.placeholder((9,), name="A")
    B = te.compute((8,), lambda i: A[i] + A[i + 1], name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    refused(sch, NotOnePoint, r"in several places: A\[v_i \+ 1\] and A\[v_i\]", "reindex", "B", ("read", 0))


def test_in_a_chain():
    before = chain()
    sch = tir.Schedule(before)
    sch.reindex("E", ("read", 0))
    sch.reindex("D", ("write", 0))
    sch.reindex("F", "F")
    check(sch, before)


@T.prim_func
def with_a_zero_term(A: T.Buffer(8), W: T.Buffer(64), B: T.Buffer(8)):
    for i, k in T.grid(8, 64):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi + 0 * vk] * W[vk + 0 * vi]


def test_an_axis_in_a_zero_term_gives_no_dimension():
    sch = tir.Schedule(with_a_zero_term)
    copy = sch.reindex("B", ("read", 0))
    assert [loop.extent.value for loop in map(sch.get, sch.get_loops(copy))] == [8]
    assert [int(size) for size in sch.get(copy).writes[0].buffer.shape] == [8]
    sch.reindex_cache_read("B", 1, "local", lambda i, k: (k,))  # the layout uses just the axes that the access uses
    check(sch, with_a_zero_term)
    assert sch.is_proved


def test_an_axis_of_one_iteration_keeps_its_dimension():
    A = te.placeholder((1, 8), name="A")
    B = te.compute((1, 8), lambda i, j: A[i, j] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    copy = sch.reindex("B", ("read", 0))
    assert [int(size) for size in sch.get(copy).writes[0].buffer.shape] == [1, 8]


def test_caches_in_a_loop_that_writer_and_reader_share():
    layout = "lambda i: (i // 2, i % 2)"
    for step, block in (("reindex_cache_read", "C"), ("reindex_cache_write", "B")):
        sch = tir.Schedule(shared_loop)
        copy = getattr(sch, step)(block, 0, "shared", layout)
        assert [(loop.name, sch.get(loop).extent.value) for loop in sch.get_loops(copy)] == [("i", 3), ("ax0", 4)]
        check(sch, shared_loop)
        assert sch.is_proved


def test_axes_that_start_below_zero():
    @T.prim_func
    def shifted(A: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
        for i in T.serial(-2, 6):
            with T.block("Y"):
                v = T.axis.spatial((-2, 6), i)
                Y[v + 2] = A[T.min(T.max(v, 0), 7)] + 1

    for which in (("read", 0), ("write", 0)):
        sch = tir.Schedule(shifted)
        sch.reindex("Y", which)
        assert_same_numbers(shifted, sch.mod["main"])
    sch = tir.Schedule(shifted)
    with pytest.raises(NotSupported, match="axes of block 'Y' may be negative, and v outside of the copy"):
        sch.reindex_cache_write("Y", 0, "global", lambda v: [v])


@pytest.mark.parametrize("n", [-2, 0, 1, 8])
def test_an_axis_bound_to_a_number_is_copied_where_its_domain_has_that(n):
    @T.prim_func
    def first_of_some(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
        for t in range(n):
            with T.block("C"):
                v0 = T.axis.spatial(n, 0)
                vt = T.axis.spatial(n, t)
                C[vt] = A[v0] + vt

    start = np.arange(8, dtype="int32"), np.arange(40, 48, dtype="int32")
    wanted = [array.copy() for array in start]
    evaluate(first_of_some, *wanted, n)
    for step in (
        lambda sch: sch.reindex("C", "A"),
        lambda sch: sch.reindex_cache_read("C", 0, "global", lambda v0, vt: (v0,)),
        lambda sch: sch.reindex("C", "C"),
    ):
        sch = tir.Schedule(first_of_some)
        step(sch)
        found = [array.copy() for array in start]
        evaluate(sch.mod["main"], *found, n)
        assert found[1].tolist() == wanted[1].tolist()


def test_a_map_without_a_signature():
    sch = tir.Schedule(matmul(2, 2, 2))
    for step in ("reindex_cache_read", "reindex_cache_write"):
        with pytest.raises(BadStepArgument, match=f"{step}: how many indices int takes is not known"):
            getattr(sch, step)("C", 0, "global", int)
        with pytest.raises(BadStepArgument, match=f"{step}: the map raises TypeError") as raised:
            getattr(sch, step)("C", 0, "global", lambda i, j, k: i[0])
        assert "return indices: lambda i, j: (j, i)" in str(raised.value)
