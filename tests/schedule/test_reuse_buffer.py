"""reuse_buffer: two buffers that are never needed at the same time share one piece of memory."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument, NotProved, WouldChangeValues
from loopwright.schedule.primitives.memory.reuse_buffer import CannotShare
from loopwright.schedule.rewrite.allocations import NotOurMemory
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, refused


def four(n: int = 6):
    """B → C → D → E, D of two dimensions."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] * 2.0, name="C")
    D = te.compute((n // 2, 2), lambda i, j: C[i * 2 + j] + 3.0, name="D")
    E = te.compute((n // 2, 2), lambda i, j: D[i, 1 - j] + 3.0, name="E")
    return te.create_prim_func([A, E])


@pytest.mark.parametrize("n", [2, 6, 10])
@pytest.mark.parametrize(("buffer", "other"), [("B", "D"), ("D", "B")])
def test_disjoint_lifetimes(n, buffer, other):
    before = four(n)
    sch = tir.Schedule(before)
    sch.reuse_buffer(buffer, buffer, other)
    names = [item.name for item in sch.view().root.block.alloc_buffers]
    assert sorted(names) == sorted(["C", other])
    check(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_the_larger_shape_holds_both():
    A = te.placeholder((3, 5), name="A")
    B = te.compute((3, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 2), lambda i, j: B[i % 3, j] * 2.0, name="C")
    D = te.compute((4, 2), lambda i, j: C[i, j] + 1.0, name="D")
    E = te.compute((4, 2), lambda i, j: D[3 - i, j] + 1.0, name="E")
    before = te.create_prim_func([A, E])
    sch = tir.Schedule(before)
    sch.reuse_buffer("B", "B", "D")
    (shared,) = [buffer for buffer in sch.view().root.block.alloc_buffers if buffer.name == "D"]
    assert [int(extent) for extent in shared.shape] == [4, 5]
    check(sch, before)


def test_in_place_where_each_cell_is_read_last_by_its_writer():
    before = chain()
    sch = tir.Schedule(before)
    sch.reuse_buffer("D", "D", "E")  # E[i] = exp(D[i]) reads the cell it writes
    check(sch, before)


def test_a_value_that_is_still_needed_is_the_witness():
    sch = tir.Schedule(four())
    error = refused(sch, WouldChangeValues, "reuse_buffer would change a value", "reuse_buffer", "B", "B", "C")
    assert "has overwritten what iteration (v_i=2) of B wrote" in error.why


def test_a_sum_must_not_read_what_it_sums_into():
    A = te.placeholder((1, 1), name="A")
    B = te.compute((1, 1), lambda i, j: A[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 1), "k")
    C = te.compute((1, 1), lambda i, j: te.sum(B[i, k] * A[k, j], axis=k), name="C")
    D = te.compute((1, 1), lambda i, j: C[i, j] + 1.0, name="D")
    sch = tir.Schedule(te.create_prim_func([A, D]))
    error = refused(sch, NotProved, "could not be proved", "reuse_buffer", "B", "B", "C")
    assert "would read C in the cell that it updates" in error.why


def test_an_index_that_is_read_from_the_shared_memory():
    # Laid out flat, B is read at one unknown index where it had two: the index would overwrite what it points to.
    A = te.placeholder((1, 1), "int32", name="A")
    B = te.compute((1, 1), lambda i, j: A[i, j] + 1, name="B")
    index = te.compute((1,), lambda i: i // 2, name="index")
    C = te.compute((1, 1), lambda i, j: B[index[i], index[j]] * 5, name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    error = refused(sch, NotProved, "could not be proved", "reuse_buffer", "C", "index", "B")
    assert error.why == "block C reads B in a new way"


def test_an_index_that_does_not_matter_is_still_a_load():
    # `index[i] % 1` is 0 whatever the index; without that load, the load of B would be taken for the load of the index.
    @T.prim_func
    def pointed(A: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
        B = T.alloc_buffer((1,), "int32")
        index = T.alloc_buffer((1,), "int32")
        for i in range(1):
            with T.block("B"):
                v_i = T.axis.spatial(1, i)
                B[v_i] = A[v_i] + 1
        for i in range(1):
            with T.block("index"):
                v_i = T.axis.spatial(1, i)
                index[v_i] = A[v_i]
        for i in range(1):
            with T.block("C"):
                v_i = T.axis.spatial(1, i)
                C[v_i] = B[index[v_i] % 1] * 2

    sch = tir.Schedule(pointed)
    error = refused(sch, WouldChangeValues, "reuse_buffer would change a value", "reuse_buffer", "B", "B", "index")
    assert "of index has overwritten what iteration (v_i=0) of B wrote" in error.why


def test_loads_that_cancel_once_they_are_of_one_memory():
    A = te.placeholder((2,), "int32", name="A")
    B = te.compute((2,), lambda i: A[i] % 2, name="B")
    D = te.compute((2,), lambda i: A[1 - i] % 2, name="D")
    C = te.compute((2,), lambda i: A[(B[i] - D[i]) % 2], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    error = refused(sch, WouldChangeValues, "reuse_buffer would change a value", "reuse_buffer", "B", "B", "D")
    assert "of D has overwritten what iteration (v_i=0) of B wrote" in error.why


def test_what_is_refused():
    sch = tir.Schedule(four())
    refused(sch, BadStepArgument, "no allocated buffer is called 'Z'", "reuse_buffer", "B", "B", "Z")
    refused(sch, BadStepArgument, "B is in its own memory already", "reuse_buffer", "B", "B", "B")
    refused(sch, NotOurMemory, "A is an argument", "reuse_buffer", "B", "A", "C")
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i].astype("int32"), name="C")
    D = te.compute((8,), lambda i: C[i] + 1, name="D")
    typed = tir.Schedule(te.create_prim_func([A, D]))
    refused(typed, CannotShare, "one holds float32, the other int32", "reuse_buffer", "B", "B", "C")
    scoped = tir.Schedule(four())
    scoped.set_scope("B", 0, "local")
    refused(scoped, CannotShare, "one is in local memory, the other in global", "reuse_buffer", "B", "B", "C")


@T.prim_func
def scratch_in_a_block(A: T.Buffer((5,), "int32"), C: T.Buffer((5,), "int32")):
    B = T.alloc_buffer((5,), "int32")
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            T.reads(A[vi])
            T.writes(B[vi])
            L = T.alloc_buffer((1,), "int32")
            L[0] = A[vi] * 2
            B[vi] = A[vi] + 1
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = A[vi]


def test_memory_inside_a_block_is_no_home_for_what_leaves_it():
    sch = tir.Schedule(scratch_in_a_block)
    refused(sch, CannotShare, "L exists only inside block 'B', and B also outside", "reuse_buffer", "B", "B", "L")
