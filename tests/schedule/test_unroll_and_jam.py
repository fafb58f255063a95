"""unroll_and_jam: some iterations of an outer loop are done together, in the innermost place."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotSupported, WouldChangeValues
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers, chain, check, matmul, refused


def test_the_inner_loop_goes_innermost():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    outer, inner = sch.unroll_and_jam(sch.get_loops("C")[0], 2)
    assert sch.get(outer).extent == 3 and sch.get(inner).kind.name == "UNROLLED"

    @T.prim_func
    def expected(A: T.Buffer((6, 4)), B: T.Buffer((4, 5)), C: T.Buffer((6, 5))):
        T.func_attr({"tir.noalias": True})
        for i_0, j, k in T.grid(3, 5, 4):
            for i_1 in T.unroll(2):
                with T.block("C"):
                    vi = T.axis.spatial(6, i_0 * 2 + i_1)
                    vj, vk = T.axis.remap("SR", [j, k])
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    check(sch, before, expected)


@pytest.mark.parametrize("m", [1, 3, 4, 5])
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_tails_are_guarded(m, factor):
    before = matmul(m, 3, 2)
    sch = tir.Schedule(before)
    sch.unroll_and_jam(sch.get_loops("C")[0], factor)
    check(sch, before)
    assert_same_numbers(sch.mod["main"], before)


def test_every_block_below_gets_a_loop():
    before = chain()
    sch = tir.Schedule(before)
    loop = sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    made = sch.unroll_and_jam(loop, 2)
    assert len(made) == 3
    check(sch, before)


@T.prim_func
def diagonal(A: T.Buffer((5, 6))):
    for i, j in T.grid(4, 5):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + T.float32(1)


def test_a_value_made_later_is_the_witness():
    sch = tir.Schedule(diagonal)
    loop = sch.get_loops("A")[0]
    error = refused(sch, WouldChangeValues, "unroll_and_jam would change a value", "unroll_and_jam", loop, 2)
    assert "before iteration (vi=0, vj=1) of A writes it" in error.why


@T.prim_func
def triangle(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
    for i in range(4):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    refused(sch, BadStepArgument, "factor is 0", "unroll_and_jam", i, 0)
    refused(sch, BadStepArgument, "factor is 'x'", "unroll_and_jam", i, "x")
    sch.parallel(j)
    refused(sch, NotSupported, "loop j is parallel", "unroll_and_jam", j, 2)
    other = tir.Schedule(triangle)
    loop = other.get_loops("B")[0]
    refused(other, NotSupported, "the bounds of an inner loop depend on i", "unroll_and_jam", loop, 2)
