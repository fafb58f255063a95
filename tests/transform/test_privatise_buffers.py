"""privatise_buffers: memory of each iteration of a parallel loop, written down before anything else is lowered."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import tir
from loopwright.ir import Allocate
from loopwright.script import tir as T
from loopwright.transform import privatise_buffers, write_allocations
from loopwright.transform.passes.write_allocations import ALIGN_KEY
from tests.schedule.steps import same_program


@T.prim_func
def rows(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
    R = T.alloc_buffer((4,))
    D = T.alloc_buffer((6, 4))
    for i in T.parallel(6):
        for j in range(4):
            with T.block("R"):
                vi, vj = T.axis.remap("SS", [i, j])
                R[vj] = A[vi, vj] + 1.0
        for j in range(4):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = R[3 - vj]
        for j in range(4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = D[vi, vj] * 2.0


def test_text():
    @T.prim_func
    def expected(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        D = T.alloc_buffer((6, 4))
        for i in T.parallel(6):
            R = T.decl_buffer((4,))
            for j in range(4):
                with T.block("R"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    R[vj] = A[vi, vj] + 1.0
            for j in range(4):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = R[3 - vj]
            for j in range(4):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = D[vi, vj] * 2.0

    same_program(privatise_buffers(rows), expected)  # rows of D do not meet: it stays where it is
    a, c = np.random.default_rng(0).random((6, 4), "float32"), np.zeros((6, 4), "float32")
    lw.build(rows)(a, c)
    np.testing.assert_array_equal(c, (a[:, ::-1] + 1) * 2)


def test_nothing_to_do():
    @T.prim_func
    def plain(A: T.Buffer((6,)), C: T.Buffer((6,))):
        B = T.alloc_buffer((6,))
        for i in T.parallel(6):
            B[i] = A[i]
            C[i] = B[i]

    assert privatise_buffers(plain) is plain


def test_an_alignment_goes_along():
    @T.prim_func
    def two_rows(A: T.Buffer((6, 2, 5)), C: T.Buffer((6, 2, 5))):
        R = T.alloc_buffer((2, 5))
        for i in T.parallel(6):
            for j, k in T.grid(2, 5):
                with T.block("R"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    R[vj, vk] = A[vi, vj, vk]
            for j, k in T.grid(2, 5):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    C[vi, vj, vk] = R[vj, vk]

    sch = tir.Schedule(two_rows)
    sch.storage_align("R", 0, 0, 8, 0)
    notes = []

    def look(node):
        if isinstance(node, Allocate):
            notes.append(node.annotations.get(ALIGN_KEY))

    tir.stmt_functor.post_order_visit(write_allocations(privatise_buffers(sch.mod["main"])).body, look)
    assert notes == [[[0, 8, 0]]]
