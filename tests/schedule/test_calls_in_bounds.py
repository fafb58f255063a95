"""Bounds, bindings and conditions that call something with an effect stay where they are."""

from __future__ import annotations

import pytest

from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotProved
from loopwright.script import from_source
from tests.schedule.steps import refused


def test_a_guard_that_calls_is_not_copied():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(3, "int32"), C: T.Buffer(2, "int32")):
    for i, k in T.grid(2, 3):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            T.where(T.call_packed("tick", i) < 9)
            with T.init():
                C[v] = 0
            C[v] = C[v] + A[r]
""")
    sch = Schedule(program)
    problem = "'tick' is called in a bound, a binding or a condition"
    refused(sch, NotProved, problem, "rfactor", sch.get_loops("C")[1], 0)


@pytest.mark.parametrize("step", ["blockize", "unroll"])
def test_a_bound_that_calls_is_not_copied(step):
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(C: T.Buffer(6, "int32")):
    for i in range(T.call_packed("tick", 4)):
        with T.block("C"):
            v = T.axis.spatial(6, i)
            C[v] = v
""")
    sch = Schedule(program)
    getattr(sch, step)(sch.get_loops("C")[0])  # the bound is where it was, and nowhere else
    assert sch.mod.script().count("tick") == 1


STEPS = {
    "split": lambda sch: sch.split(sch.get_loops("B")[1], [2, None]),
    "fuse": lambda sch: sch.fuse(*sch.get_loops("B")),
    "reorder": lambda sch: sch.reorder(*sch.get_loops("B")[::-1]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_replay_moves_no_guard_that_calls(step):
    """The steps are right where the guard is arithmetic, and are replayed where it calls."""

    def guarded(condition):
        return from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where({condition})
            B[vi, vj] = A[vi, vj]
""")

    plain, calling = Schedule(guarded("i < 3")), Schedule(guarded('T.call_packed("tick", i) > 0'))
    STEPS[step](plain)
    with pytest.raises(NotProved, match="'tick' is called in a bound, a binding or a condition"):
        plain.trace.apply_to_schedule(calling, remove_postproc=False)
