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
    if step == "unroll":
        sch.unroll(sch.get_loops("C")[0])  # the bound is where it was
    else:
        problem = "and would be called elsewhere[^§]*bind what it gives to a name"
        refused(sch, NotProved, problem, step, sch.get_loops("C")[0])
