"""write_inits: reductions get their start values as nests of their own (where: tests of analysis/reduction_init)."""

from __future__ import annotations

import numpy as np

from loopwright import build
from loopwright.script import tir as T
from loopwright.transform import write_inits
from tests.transform.before_after import check, unchanged


def test_the_init_stands_before_the_loop_that_carries_the_reduction():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("C_init"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes(C[vi])
                C[vi] = T.float32(0)
            for k in range(8):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi], A[vi, vk])
                    T.writes(C[vi])
                    C[vi] = C[vi] + A[vi, vk]

    check(write_inits, before, after)


def test_without_reductions_nothing_changes():
    @T.prim_func
    def func(A: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi]

    unchanged(write_inits, func)


def test_a_loop_of_no_iterations_that_folding_would_drop():
    """`j * (i // 2)` is 0 once `i` is: where `j` is still known to run over the reduction, it starts all the same."""

    @T.prim_func
    def before(A: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
        for i in range(1):
            for j, k in T.grid(i, 2):
                with T.block("C"):
                    vi = T.axis.spatial(1, i)
                    vk = T.axis.reduce(2, j * i * 2 + k)
                    with T.init():
                        C[vi] = 3
                    C[vi] = C[vi] + A[0]

    result = np.full(1, 8, "int32")
    build(before)(np.ones(1, "int32"), result)
    assert result[0] == 3
