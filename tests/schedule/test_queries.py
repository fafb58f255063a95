"""get_block, get_loops, get_child_blocks, get_producers, get_consumers, get_output_blocks."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.ir import Block, For, IRModule
from loopwright.schedule.errors import BadStepArgument, HandleGone, NoSuchBlock, WrongType
from loopwright.script import tir as T
from tests.schedule.steps import chain, check_replay, matmul, refused


def names(handles):
    return [handle.name for handle in handles]


def test_blocks_and_loops():
    func = chain()
    sch = tir.Schedule(func)
    block = sch.get_block("F")
    assert isinstance(sch.get(block), Block)
    assert names(sch.get_loops(block)) == ["m", "n", "l"]
    assert all(isinstance(sch.get(loop), For) for loop in sch.get_loops(block))
    assert names(sch.get_loops("E")) == ["m", "l"]
    assert sch.get_loops("root") == []
    assert names(sch.get_child_blocks(sch.get_block("root"))) == ["D", "E", "F"]
    assert names(sch.get_child_blocks(sch.get_loops("D")[1])) == ["D"]
    assert names(sch.get_producers("F")) == ["E"]
    assert names(sch.get_producers("D")) == []
    assert names(sch.get_consumers("D")) == ["E"]
    assert names(sch.get_consumers("F")) == []
    assert names(sch.get_output_blocks("root")) == ["F"]
    assert sch.mod["main"] is func
    check_replay(sch, func)


def test_nested_blocks():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0:4])
                T.writes(B[vi, 0:4])
                t = T.alloc_buffer((4,))
                for j in range(4):
                    with T.block("t"):
                        vj = T.axis.spatial(4, j)
                        t[vj] = A[vi, vj]
                for j in range(4):
                    with T.block("B"):
                        vj = T.axis.spatial(4, j)
                        B[vi, vj] = t[3 - vj]

    sch = tir.Schedule(func)
    assert names(sch.get_child_blocks(sch.get_block("root"))) == ["row"]
    assert names(sch.get_child_blocks(sch.get_block("row"))) == ["t", "B"]
    assert names(sch.get_loops("t")) == ["j"]
    assert names(sch.get_producers("B")) == ["t"]
    assert names(sch.get_output_blocks("row")) == ["B"]
    assert names(sch.get_output_blocks("root")) == ["row", "B"]


def test_names_that_are_not_there_or_there_twice():
    sch = tir.Schedule(matmul())
    refused(sch, NoSuchBlock, "no block is called 'X'; there are C, root", "get_block", "X")
    refused(sch, NoSuchBlock, "no block is called 'X'", "get_loops", "X")
    refused(sch, WrongType, "block must be a block's handle or name, got int", "get_loops", 3)

    @T.prim_func
    def twice(A: T.Buffer(4), B: T.Buffer(4)):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = B[vi] + 1.0

    refused(tir.Schedule(twice), NoSuchBlock, "2 blocks are called 'B'", "get_block", "B")


def test_the_root_has_no_producers():
    sch = tir.Schedule(matmul())
    refused(sch, Exception, "is in no block", "get_producers", "root")


def test_handles_that_are_gone():
    sch = tir.Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    sch.fuse(i, j)
    problem = r"loop i is no loop any more: it was fused into i_j_fused at test_queries\.py:"
    error = refused(sch, HandleGone, problem, "unroll", i)
    assert "get_loops" in str(error)


def test_several_functions():
    mod = IRModule({"first": matmul(), "second": chain()})
    sch = tir.Schedule(mod)
    assert sch.func_working_on is None
    refused(sch, BadStepArgument, "does not know which function to be working on", "get_block", "D")
    assert names(sch.get_loops(sch.get_block("C", "first"))) == ["i", "j", "k"]
    sch.work_on("second")
    assert sch.func_working_on.name == "second"
    sch.parallel(sch.get_loops("D")[0])
    assert sch.mod["first"] is mod["first"]
    assert sch.mod["second"] is not mod["second"]
    with pytest.raises(BadStepArgument, match="there is no function 'third'; there are first, second"):
        sch.work_on("third")
    again = tir.Schedule(mod)
    sch.trace.apply_to_schedule(again)
    assert again.trace.as_python() == sch.trace.as_python()
