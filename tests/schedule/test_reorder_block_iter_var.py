"""reorder_block_iter_var: the axes of a block in another order."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.primitives.compute.reorder_block_iter_var import NotAPermutation
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


def test_axes_and_bindings_move_together():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    sch.reorder_block_iter_var("C", [2, 0, 1])

    @T.prim_func
    def expected(A: T.Buffer((6, 4)), B: T.Buffer((4, 5)), C: T.Buffer((6, 5))):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(6, 5, 4):
            with T.block("C"):
                vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    check(sch, before, expected)


def test_a_handle_follows_its_block():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    block = sch.get_block("C")
    for _ in range(3):  # after three turns everything is where it was
        sch.reorder_block_iter_var(block, [2, 0, 1])
        assert sch.get(block).name_hint == "C"
        sch.split(sch.get_loops(block)[0], [None, 2])
    assert [axis.var.name for axis in sch.get(block).iter_vars] == ["v_i", "v_j", "v_k"]
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    check(sch, before)
    sch.undo()
    assert sch.get(block).init is not None


@pytest.mark.parametrize("order", [[0, 1], [0, 0, 1], [0, 1, 3], [0, 1, 2, 3], [], ["a", 0, 1], [True, 0, 2]])
def test_an_order_names_each_axis_once(order):
    sch = tir.Schedule(matmul())
    refused(sch, NotAPermutation, "is no order of the 3 axes of block 'C'", "reorder_block_iter_var", "C", order)
