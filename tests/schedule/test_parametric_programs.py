"""The random programs of scalar parameters: they mean something, differ, and what is wrong with them is seen."""

from __future__ import annotations

import pytest

from loopwright.ir import substitute
from loopwright.schedule import Schedule
from loopwright.schedule.errors import ScheduleError
from loopwright.script import tir as T
from tests.schedule.harness.parametric import VALUES, ParametricProgram, meant, parametric_program


def test_programs_mean_something_and_have_what_they_are_for():
    texts = [program.source.text(()) for program in map(parametric_program, range(40))]
    assert len(set(texts)) == len(texts)
    for part in ("T.where", "range(T.min(n", "T.axis.reduce", "1500000000", " // m", "* n"):
        assert any(part in text for text in texts), part
    assert all(3 <= len(meant(text)) <= len(VALUES) for text in texts)


def test_another_program_is_found_to_be_another():
    program = parametric_program(1)
    assert isinstance(program, ParametricProgram)
    assert program.wrong_after(program.function) is None
    scalar = program.function.params[-1]
    other = program.function.with_(body=substitute(program.function.body, {scalar: scalar + 1}))
    assert "n, m = " in str(program.wrong_after(other))


@pytest.mark.long
def test_a_flow_that_isl_crashed_on():
    @T.prim_func
    def sums(A: T.Buffer((12,), "int32"), B: T.Buffer((12, 12), "int32"), n: T.int32, m: T.int32):
        for i in range(T.min(m, 5)):
            C = T.decl_buffer((12,), "int32")
            for j in range(T.min(T.max(n - i, 0), 5)):
                for _k in range(T.min(n - j - j, 5)):
                    with T.block("B"):
                        v0 = T.axis.spatial(12, i % 2)
                        v1 = T.axis.reduce(12, m - j)
                        T.reads(A[0:12])
                        T.writes(B[v0, 0])
                        with T.init():
                            B[v0, 0] = A[v0]
                        B[v0, 0] = B[v0, 0] + A[0]
            for j in range(T.min(T.max(n - i, 0), 5)):
                for k in range(T.min(n - j - j, 5)):
                    with T.block("C"):
                        v0 = T.axis.spatial(12, 0)
                        v1 = T.axis.opaque(12, j % 2)
                        v2 = T.axis.spatial(12, k)
                        T.reads(B[0:12, 0:12])
                        T.writes(C[v0])
                        C[v0] = B[v0, 0] + B[v0 + v2, v0 + v2]

    sch = Schedule(sums)
    try:
        sch.read_at(sch.get_loops("B")[0], "C", 0, "global")
    except ScheduleError as error:
        assert "read_at" in str(error)
