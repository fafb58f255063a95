"""What a block evaluates only where the value that it updates says so."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.errors import WouldChangeValues
from loopwright.schedule.rewrite.combiners import MalformedReduction
from loopwright.script import from_source
from tests.schedule.steps import refused

PROGRAM = """
from loopwright.script import tir as T

@T.prim_func
def main(I: T.Buffer(1, "int32"), A: T.Buffer(4, "int32"), C: T.Buffer(1, "bool")):
    for p, q in T.grid(2, 2):
        with T.block("C"):
            vp, vq = T.axis.remap("RR", [p, q])
            with T.init():
                C[0] = T.bool({start})
            C[0] = {update}
"""
MAY_FAIL = ["A[I[0]] > 0", "4 // A[vp] > 1", "A[vp * 2 + vq + 1] > 0", "T.if_then_else(vp == 0, vq == 0, A[I[0]] > 0)"]


@pytest.mark.parametrize("operation", ["and", "or"])
@pytest.mark.parametrize("operand", MAY_FAIL)
def test_an_operand_that_may_fail_is_evaluated_where_it_was(operation, operand):
    """While C[0] is true, `C[0] and x` evaluates x: in another order it would be evaluated for other iterations."""
    source = PROGRAM.format(start=operation == "and", update=f"C[0] {operation} ({operand})")
    sch = Schedule(from_source(source))
    p, q = sch.get_loops("C")
    refused(sch, WouldChangeValues, "reorder would change a value", "reorder", q, p)
    refused(sch, MalformedReduction, "only where C so far says so", "rfactor", p, 0)


def agrees(sch: Schedule, program: PrimFunc) -> None:
    for values in ([1, 2, 3, 4], [1, 0, 3, 4], [0, 0, 0, 0]):
        wanted, got = np.zeros(1, "bool"), np.zeros(1, "bool")
        evaluate(program, np.zeros(1, "int32"), np.array(values, "int32"), wanted)
        evaluate(sch.mod["main"], np.zeros(1, "int32"), np.array(values, "int32"), got)
        assert got == wanted


@pytest.mark.parametrize(
    "update", ["C[0] and A[vp * 2 + vq] > 0", "C[0] or A[vp] // 4 > 0", "A[vp + vq * 2] > 0 and C[0]"]
)
def test_an_operand_that_cannot_fail_may_be_evaluated_anywhere(update):
    program = from_source(PROGRAM.format(start="and" in update, update=update))
    sch = Schedule(program)
    p, q = sch.get_loops("C")
    sch.reorder(q, p)
    agrees(sch, program)
    sch = Schedule(program)
    sch.rfactor(sch.get_loops("C")[0], 0)
    agrees(sch, program)


def test_what_was_evaluated_before_the_question_is_evaluated_all_the_same():
    """A maximum by hand: the value that is stored under the condition is part of the condition."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(I: T.Buffer(4, "int32"), A: T.Buffer(4, "int32"), C: T.Buffer(1, "int32")):
    for p, q in T.grid(2, 2):
        with T.block("C"):
            vp, vq = T.axis.remap("RR", [p, q])
            with T.init():
                C[0] = 0
            C[0] = T.if_then_else(A[I[vp * 2 + vq]] > C[0], A[I[vp * 2 + vq]], C[0])
""")
    sch = Schedule(program)
    p, q = sch.get_loops("C")
    sch.reorder(q, p)
