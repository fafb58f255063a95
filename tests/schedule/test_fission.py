"""fission: a loop over several statements becomes two."""

from __future__ import annotations

from loopwright import tir
from loopwright.schedule.errors import BadStepArgument, NotProved, NotSupported, WouldChangeValues
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, refused, same_program


@T.prim_func
def pair(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * 2.0


def test_fission():
    sch = tir.Schedule(pair)
    (i,) = sch.get_loops("B")
    first, second = sch.fission(i)

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0
        for i_1 in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i_1)
                C[vi] = B[vi] * 2.0

    check(sch, pair, expected)
    assert (first.name, second.name) == ("i", "i_1")
    assert first.var is i.var


def test_merge_takes_fission_back():
    sch = tir.Schedule(pair)
    sch.merge(*sch.fission(sch.get_loops("B")[0]))
    check(sch, pair, pair)


def test_fission_goes_through_the_loops_directly_inside():
    func = chain()
    sch = tir.Schedule(func)
    loop = sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    inner = sch.merge(sch.get_loops("D")[1], sch.get_loops("E")[1])
    sch.fission(loop)
    assert [handle.name for handle in sch.get_loops("E")] == ["m_m_1", "l_m_1"]
    assert [handle.name for handle in sch.get_loops("D")] == ["m_m", "l_m", "k"]
    assert inner.var in sch.view().index.loops
    same_program(sch.mod["main"], func)
    check(sch, func, func)


def test_fission_at_an_index():
    func = chain()
    sch = tir.Schedule(func)
    loop = sch.merge(*[sch.get_loops(name)[0] for name in "DEF"])
    first, second = sch.fission(loop, 2)
    assert [handle.name for handle in sch.get_child_blocks(first)] == ["D", "E"]
    assert [handle.name for handle in sch.get_child_blocks(second)] == ["F"]
    check(sch, func)


def test_fission_refuses_a_value_that_lives_for_one_iteration():
    @T.prim_func
    def func(A: T.Buffer(8), C: T.Buffer(8)):
        t = T.alloc_buffer((1,))
        for i in range(8):
            with T.block("t"):
                vi = T.axis.spatial(8, i)
                t[0] = A[vi] + 1.0
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = t[0] * 2.0

    sch = tir.Schedule(func)
    error = refused(sch, WouldChangeValues, "fission would change a value", "fission", sch.get_loops("t")[0])
    assert "t[0]" in error.why


def test_fission_refuses():
    sch = tir.Schedule(pair)
    (i,) = sch.get_loops("B")
    refused(sch, BadStepArgument, "index is 0, but loop i runs 2 statements", "fission", i, 0)
    refused(sch, BadStepArgument, "index is 2, but loop i runs 2 statements", "fission", i, 2)
    sch.fission(i)
    refused(sch, NotSupported, "loop i runs one statement", "fission", i)


def test_fission_refuses_a_value_that_one_block_started_and_another_changed():
    """Y copies what is in B each time: of two blocks that fill B, once what one of them wrote, later the other's."""

    @T.prim_func
    def counted(C: T.Buffer((2, 4))):
        B, Y = T.alloc_buffer((4,)), T.alloc_buffer((4,))
        for i in range(4):
            with T.block("start"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.float32(0)
        for a in range(2):
            for i in range(4):
                with T.block("Y"):
                    vi = T.axis.spatial(4, i)
                    Y[vi] = B[vi]
            for i in range(4):
                with T.block("more"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = B[vi] + T.float32(1)
            for i in range(4):
                with T.block("C"):
                    va, vi = T.axis.remap("SS", [a, i])
                    C[va, vi] = Y[vi]

    @T.prim_func
    def replaced(A: T.Buffer((4,)), C: T.Buffer((2, 4))):
        B, Y = T.alloc_buffer((4,)), T.alloc_buffer((4,))
        for i in range(4):
            with T.block("start"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.float32(0)
        for a in range(2):
            for i in range(4):
                with T.block("Y"):
                    vi = T.axis.spatial(4, i)
                    Y[vi] = B[vi]
            for i in range(4):
                with T.block("more"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi]
            for i in range(4):
                with T.block("C"):
                    va, vi = T.axis.remap("SS", [a, i])
                    C[va, vi] = Y[vi]

    for function in (counted, replaced):
        sch = tir.Schedule(function)
        refused(sch, NotProved, "could not be proved", "fission", sch.get_loops("C")[0], 2)
