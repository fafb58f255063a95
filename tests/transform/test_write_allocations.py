"""write_allocations: a block's buffers become allocations around its body."""

from __future__ import annotations

import pytest

from loopwright.ir import Allocate, BlockRealize, DeclBuffer
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import write_allocations
from loopwright.transform.errors import BadAnnotation
from tests.transform.before_after import check, same_results, unchanged


def test_buffers_of_the_root_block():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        B = T.alloc_buffer((4, 8))
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)

    after = write_allocations(before)
    root = after.body
    assert isinstance(root, BlockRealize) and root.block.alloc_buffers == ()
    allocate = root.block.body
    assert isinstance(allocate, Allocate) and [int(extent) for extent in allocate.extents] == [4, 8]
    assert isinstance(allocate.body, DeclBuffer) and allocate.body.buffer is before.body.block.alloc_buffers[0]
    assert write_allocations(after) is after
    same_results(before, after)


def test_buffers_of_an_inner_block_are_allocated_there():
    @T.prim_func
    def before(A: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                B = T.alloc_buffer((1,), scope="local")
                B[0] = A[vi] + T.float32(1)
                C[vi] = B[0]

    @T.prim_func
    def after(A: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi])
                T.writes(C[vi])
                B = T.decl_buffer((1,), scope="local")
                B[0] = A[vi] + T.float32(1)
                C[vi] = B[0]

    check(write_allocations, before, after)


def test_strided_buffers_get_room_for_their_last_element():
    @T.prim_func
    def before(C: T.Buffer((2, 3))):
        B = T.alloc_buffer((2, 3), strides=(4, 1))
        for i, j in T.grid(2, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(1)
                C[vi, vj] = B[vi, vj]

    after = write_allocations(before)
    assert [int(extent) for extent in after.body.block.body.extents] == [7]
    same_results(before, after)


def test_without_buffers_nothing_changes():
    @T.prim_func
    def func(A: T.Buffer((4,))):
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(0)

    unchanged(write_allocations, func)


@pytest.mark.parametrize("asked", ["[[0, 0, 8]]", "[[1, 0, 8, 0]]", "[[0, 2, 8, 0]]", "[[0, 0, 0, 0]]", "7", '["a"]'])
def test_alignment_that_is_none(asked):
    program = from_source(f"""
@T.prim_func
def main(C: T.Buffer((4,))):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            T.block_attr({{"buffer_dim_align": {asked}}})
            B[vi] = 1.0
""")
    with pytest.raises(BadAnnotation, match="the annotation buffer_dim_align is"):
        write_allocations(program)
