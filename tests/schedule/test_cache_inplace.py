"""cache_inplace: a block updates a copy of a buffer, copied in before it and out after it."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.primitives.memory.cache_inplace import NotInPlace
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, check, matmul, refused


@T.prim_func
def doubled(A: T.Buffer(8)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] * T.float32(2)


def test_copies_in_and_out():
    sch = tir.Schedule(doubled)
    into, out = sch.cache_inplace("A", 0, "local")
    assert sch.get(into).name_hint == "A_local" and sch.get(out).name_hint == "A_local_out"

    @T.prim_func
    def expected(A: T.Buffer(8)):
        A_local = T.alloc_buffer((8,), scope="local")
        for ax0 in range(8):
            with T.block("A_local"):
                v0 = T.axis.spatial(8, ax0)
                T.reads(A[v0])
                T.writes(A_local[v0])
                A_local[v0] = A[v0]
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                T.reads(A_local[vi])
                T.writes(A_local[vi])
                A_local[vi] = A_local[vi] * T.float32(2)
        for ax0 in range(8):
            with T.block("A_local_out"):
                v0 = T.axis.spatial(8, ax0)
                T.reads(A_local[v0])
                T.writes(A[v0])
                A[v0] = A_local[v0]

    check(sch, doubled, expected)
    assert_same_numbers(sch.mod["main"], doubled)


@T.prim_func
def recurrence(A: T.Buffer(9), B: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi + 1] = A[vi] + T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi + 1]


def test_other_readers_keep_their_place():
    sch = tir.Schedule(recurrence)
    sch.cache_inplace("A", "A", "global")
    check(sch, recurrence)


@T.prim_func
def back_and_forth(A: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi + 1] + T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            A[8] = A[vi]


def test_a_copy_that_others_write_meanwhile():
    sch = tir.Schedule(back_and_forth)
    sch.cache_inplace("A", "A", "global")
    check(sch, back_and_forth)


def test_sums_from_what_was_there():
    before = matmul(4, 3, 2)
    sch = tir.Schedule(before)
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    sch.cache_inplace("C_update", "C", "local")
    check(sch, before)


@pytest.mark.parametrize("scope", ["global", "local", "shared"])
def test_scopes(scope):
    sch = tir.Schedule(doubled)
    sch.cache_inplace("A", 0, scope)
    check(sch, doubled)


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, NotInPlace, "reads A, but does not write it", "cache_inplace", "C", 0, "local")
    refused(sch, NoSuchBuffer, "reads no buffer 'C'", "cache_inplace", "C", "C", "local")
    other = tir.Schedule(doubled)
    refused(other, BadStepArgument, "there is no memory scope 'x'", "cache_inplace", "A", 0, "x")
