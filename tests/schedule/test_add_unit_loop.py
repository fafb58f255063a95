"""add_unit_loop: a loop of one iteration."""

from __future__ import annotations

from loopwright import tir
from loopwright.schedule.errors import NotSupported
from loopwright.script import tir as T
from tests.schedule.steps import check, refused


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


def test_above_a_block():
    sch = tir.Schedule(copy)
    unit = sch.add_unit_loop(sch.get_block("B"))

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for i, _u in T.grid(8, 1):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)
    assert unit.name == "u"


def test_above_a_loop():
    sch = tir.Schedule(copy)
    sch.add_unit_loop(sch.get_loops("B")[0])

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for _u, i in T.grid(1, 8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)


def test_above_a_block_without_loops():
    @T.prim_func
    def func(A: T.Buffer(()), B: T.Buffer(())):
        with T.block("root"):
            with T.block("B"):
                B[()] = A[()] + 1.0

    sch = tir.Schedule(func)
    sch.add_unit_loop(sch.get_block("B"))
    assert [loop.name for loop in sch.get_loops("B")] == ["u"]
    check(sch, func)


def test_refuses_the_root():
    sch = tir.Schedule(copy)
    root = sch.get_block("root")
    refused(sch, NotSupported, "block 'root' is the root: no loop can stand around it", "add_unit_loop", root)
