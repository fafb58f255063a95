"""InjectSoftwarePipeline on functions with blocks: prologue, body and epilogue are blocks."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.ir import assert_structural_equal
from loopwright.script import tir as T
from loopwright.transform import PipelineBreaksDependence
from tests.transform.before_after import same_results

RUN = tir.transform.InjectSoftwarePipeline()


def pipelined(function):
    return RUN(function)


def test_two_stages():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for _ in range(2):
            for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
                with T.block():
                    T.reads(A[i])
                    T.writes(C[i])
                    B = T.alloc_buffer((1,))
                    with T.block():
                        T.reads(A[i])
                        T.writes(B[0])
                        B[0] = A[i] * T.float32(2)
                    with T.block():
                        T.reads(B[0])
                        T.writes(C[i])
                        C[i] = B[0] + T.float32(1)

    @T.prim_func(private=True)
    def after(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for _ in range(2):
            with T.block():
                T.reads(A[0:8])
                T.writes(C[0:8])
                B = T.alloc_buffer((2, 1))
                with T.block():
                    T.reads(A[0])
                    T.writes(B[0, 0])
                    B[0, 0] = A[0] * T.float32(2)
                with T.block():
                    T.reads(A[1:8], B[0:2, 0])
                    T.writes(B[0:2, 0], C[0:7])
                    for i in range(7):
                        with T.block():
                            T.reads(A[i + 1])
                            T.writes(B[(i + 1) % 2, 0])
                            B[(i + 1) % 2, 0] = A[i + 1] * T.float32(2)
                        with T.block():
                            T.reads(B[i % 2, 0])
                            T.writes(C[i])
                            C[i] = B[i % 2, 0] + T.float32(1)
                with T.block():
                    T.reads(B[1, 0])
                    T.writes(C[7])
                    C[7] = B[1, 0] + T.float32(1)

    result = pipelined(before)
    assert_structural_equal(result, after)
    same_results(before, result)


def chain(stages, orders, count=9):
    @T.prim_func(private=True)
    def function(A: T.Buffer((count,)), D: T.Buffer((count,))):
        for i in T.serial(count, annotations={"software_pipeline_stage": stages, "software_pipeline_order": orders}):
            with T.block():
                T.reads(A[i])
                T.writes(D[i])
                B = T.alloc_buffer((1,))
                C = T.alloc_buffer((1,))
                with T.block():
                    T.reads(A[i])
                    T.writes(B[0])
                    B[0] = A[i] * T.float32(2)
                with T.block():
                    T.reads(B[0])
                    T.writes(C[0])
                    C[0] = B[0] + T.float32(2)
                with T.block():
                    T.reads(B[0], C[0])
                    T.writes(D[i])
                    D[i] = C[0] * B[0]

    return function


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize(
    "stages, orders",
    [
        ([0, 1, 2], [0, 1, 2]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 0, 1], [1, 2, 0]),
        ([0, 2, 2], [2, 0, 1]),
        ([1, 1, 3], [0, 1, 2]),
    ],
)
def test_every_value_is_kept(stages, orders, count):
    before = chain(stages, orders, count)
    result = pipelined(before)
    assert "T.alloc_buffer" in str(result)
    same_results(before, result)


def test_a_pipeline_in_a_pipeline_counts_as_three_statements():
    @T.prim_func(private=True)
    def before(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        for i in T.serial(
            6, annotations={"software_pipeline_stage": [0, 0, 1, 1], "software_pipeline_order": [0, 2, 1, 3]}
        ):
            with T.block():
                S = T.alloc_buffer((4,))
                for j in range(4):
                    with T.block():
                        S[j] = A[i, j]
                for j in T.serial(
                    4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}
                ):
                    with T.block():
                        B = T.alloc_buffer((1,))
                        with T.block():
                            B[0] = S[j] * T.float32(2)
                        with T.block():
                            C[i, j] = B[0] + T.float32(1)

    result = pipelined(before)
    assert "B = T.alloc_buffer((2, 1))" in str(result)
    same_results(before, result)


def test_an_order_that_loses_values():
    with pytest.raises(PipelineBreaksDependence):
        pipelined(chain([1, 0, 2], [0, 1, 2]))
