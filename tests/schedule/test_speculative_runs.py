"""Runs that a step adds must stay in bounds for every value of the parameters."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.primitives.loops.split import FactorsNotProved
from loopwright.script import from_source
from tests.schedule.steps import refused

HEAD = "from loopwright.script import tir as T\n\n@T.prim_func\n"
NOT_KNOWN = "would run more often, and that .* stays inside . is not known for all values of the parameters"


def test_a_guard_is_not_removed_where_a_parameter_says_how_far_a_loop_runs():
    sch = Schedule(from_source(f"""{HEAD}
def main(n: T.int32, D: T.Buffer(8, "int32")):
    for i in range(n):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            T.where(i < 7)
            D[v + 1] = 5
"""))
    refused(sch, NotSupported, NOT_KNOWN, "remove_guard", "D")


def test_a_tile_is_not_padded_where_a_parameter_says_how_far_a_loop_runs():
    sch = Schedule(from_source(f"""{HEAD}
def main(n: T.int32, D: T.Buffer(8, "int32")):
    for i in range(n):
        for j in range(i):
            with T.block("D"):
                vi, vj = T.axis.spatial(8, i), T.axis.spatial(8, j)
                D[vi - vj - 1] = vi
"""))
    refused(sch, NotSupported, NOT_KNOWN, "split", sch.get_loops("D")[1], [None, 2], tail="pad")


@pytest.mark.parametrize("condition", ["n > 0", "i < n"])
def test_a_tile_is_not_padded_under_a_condition_on_a_parameter(condition):
    sch = Schedule(from_source(f"""{HEAD}
def main(n: T.int32, A: T.Buffer((6, 6), "int32")):
    B = T.alloc_buffer((6, 6), "int32")
    for i in range(6):
        if {condition}:
            for j in range(6):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
"""))
    refused(sch, NotSupported, NOT_KNOWN, "split", sch.get_loops("B")[1], [None, 4], tail="pad")


def copied(dtype: str = "int32") -> Schedule:
    return Schedule(from_source(f"""{HEAD}
def main(a: T.handle, c: T.handle):
    n = T.{dtype}()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i in range(n):
        with T.block("C"):
            v = T.axis.spatial(n, i)
            C[v] = A[v] + 1
"""))


def agrees(sch: Schedule, program: PrimFunc) -> None:
    for size in (0, 1, 4, 7):
        numbers = np.arange(size, dtype="int32")
        wanted, got = np.zeros_like(numbers), np.zeros_like(numbers)
        evaluate(program, numbers, wanted)
        evaluate(sch.mod["main"], numbers, got)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_memory_is_as_large_as_the_size_asks_for(dtype):
    """The greatest int32 divided by 3 would be room for 2 GB, whatever n is."""
    sch = copied(dtype)
    program = sch.mod["main"]
    sch.reindex_cache_write("C", 0, "global", lambda i: (i % 3, i // 3))
    room = "(3, (n + 2) // 3)" if dtype == "int32" else "(T.int64(3), (n + T.int64(2)) // T.int64(3))"
    assert f"C_global = T.alloc_buffer({room}" in sch.mod["main"].script()
    agrees(sch, program)


def test_a_stage_is_as_large_as_the_size_asks_for():
    sch = copied()
    program = sch.mod["main"]
    sch.split(sch.get_loops("C")[0], [3, None])
    sch.stage("C", sch.get_loops("C")[0], 0)
    assert "A_stage = T.decl_buffer(((n + 2) // 3,)" in sch.mod["main"].script()
    agrees(sch, program)


DIVIDED = f"""{HEAD}
def main(n: T.int32, m: T.int32, A: T.Buffer(8, "int32"), C: T.Buffer(8, "int32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.if_then_else(n > 0, A[v // n], -1)
"""


def test_a_stage_does_not_divide_where_the_load_was_not_evaluated():
    sch = Schedule(from_source(DIVIDED))
    sch.stage("C", sch.get_loops("C")[0], 0)
    assert "A_stage = T.decl_buffer((8,)" in sch.mod["main"].script()


def test_a_condition_that_may_have_no_value_is_refused():
    sch = Schedule(from_source(DIVIDED))
    loop = sch.get_loops("C")[0]
    with pytest.raises(BadStepArgument, match="the condition n % m == 0 has no value where n % m has none"):
        sch.specialize(loop, condition=lambda n, m: n % m == 0)
    with pytest.raises(BadStepArgument, match="has no value where 9 % i has none"):
        sch.add_guard("C", "lambda v: 9 % v < 3")
    sch.specialize(loop, condition="lambda n, m: m > 0 and n % m == 0")


def test_a_factor_that_may_have_no_value_is_refused():
    sch = Schedule(from_source(DIVIDED))
    with pytest.raises(FactorsNotProved, match=r"factor max\(n // m, 1\) has no value where n // m has none"):
        sch.split(sch.get_loops("C")[0], [None, "max(n // m, 1)"])
    sch.split(sch.get_loops("C")[0], [None, "max(n // 4, 1)"])


@pytest.mark.parametrize("condition", [lambda **axes: 1, lambda n: 1 // 0])
def test_a_condition_that_raises_is_told_as_one(condition):
    sch = Schedule(from_source(DIVIDED))
    with pytest.raises(BadStepArgument, match=r"the condition raises (TypeError|ZeroDivisionError): "):
        sch.specialize(sch.get_loops("C")[0], condition=condition)


def test_what_asserts_does_not_run_more_often():
    sch = Schedule(from_source(f"""{HEAD}
def main(A: T.Buffer(8, "int32"), C: T.Buffer(8, "int32")):
    D = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            T.where(i < 3)
            D[v] = A[v]
            assert A[v] < 5, "no"
    for i in range(3):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = D[v]
"""))
    refused(sch, NotSupported, "block 'D' asserts something: it may not run more often", "remove_guard", "D")


TOO_MANY = r"iterations of loop i may be more than 64 bits can count"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("factors", [[None, 2**63 - 1], [None, 2**62, 2], [None, "max(n, 1) * max(n, 1) * max(n, 1)"]])
def test_factors_that_64_bits_do_not_count_are_refused(dtype, factors):
    sch = Schedule(from_source(f"""{HEAD}
def main(n: T.{dtype}, A: T.Buffer(8, "int32")):
    for i in range(n):
        with T.block("A"):
            v = T.axis.spatial(T.{dtype}(8), i)
            A[v] = 1
"""))
    with pytest.raises(LoopwrightError, match=TOO_MANY + "|is more than 64 bits can count"):
        sch.split(sch.get_loops("A")[0], factors)
    with pytest.raises(LoopwrightError, match=TOO_MANY):
        sch.unroll_and_jam(sch.get_loops("A")[0], 2**63 - 1)
    sch.split(sch.get_loops("A")[0], [None, 2**30])


def test_an_axis_of_unknown_reach_keeps_its_guard():
    """Without the guard, v = m - i may be anything: no domain holds it."""
    sch = Schedule(from_source(f"""{HEAD}
def main(m: T.int32, A: T.Buffer(12, "int32")):
    for i in range(5):
        with T.block("A"):
            v = T.axis.spatial(12, m - i)
            T.where(i < 2)
            A[0] = v
"""))
    refused(sch, NotSupported, "how far axis v of block 'A' runs is not known", "remove_guard", "A")


def test_the_start_of_a_tile_runs_over_loops_that_may_have_no_iterations():
    """With m = -1 there is no j, and B[-1] is not started."""
    program = from_source(f"""{HEAD}
def main(m: T.int32, A: T.Buffer(12, "int32")):
    for i in range(3):
        B = T.decl_buffer((12,), "int32")
        for j, k in T.grid(T.min(m, 5), 4):
            with T.block("B"):
                v, w = T.axis.spatial(12, m), T.axis.reduce(12, k)
                with T.init():
                    B[v] = 5
                B[v] = B[v] + A[w]
""")
    sch = Schedule(program)
    sch.blockize(sch.get_loops("B")[1], preserve_unit_iters=False)
    for m in (-1, 0, 3):
        evaluate(sch.mod["main"], m, np.arange(12, dtype="int32"))


def test_a_copy_is_not_moved_out_of_a_loop_that_may_have_no_iterations():
    """For m = 2 there is no k, and no value of the copy's axis that stands for it."""
    sch = Schedule(from_source(f"""{HEAD}
def main(m: T.int32, B: T.Buffer(12, "int32"), C: T.Buffer(12, "int32")):
    D = T.alloc_buffer((12,), "int32")
    for i in range(3):
        for k in range(T.max(T.min(m, 5), 0) // 3):
            with T.block("D"):
                v, w = T.axis.spatial(12, i), T.axis.opaque(T.max(T.min(m, 5), 0) // 3, k)
                D[v] = B[v]
            with T.block("C"):
                v, w = T.axis.spatial(12, i), T.axis.opaque(T.max(T.min(m, 5), 0) // 3, k)
                C[v] = D[v]
        with T.block("last"):
            v = T.axis.spatial(12, i)
            C[v] = B[v]
"""))
    problem = "axis w of block 'C' may leave its domain, being 0, where the block did not run before"
    refused(sch, NotSupported, problem, "reverse_compute_at", "C", sch.get_loops("D")[0], index=1)


def test_a_guard_is_not_removed_from_a_division_by_0():
    sch = Schedule(from_source(f"""{HEAD}
def main(D: T.Buffer(8, "int32")):
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            T.where(i < 0)
            D[v] = T.FloorDiv(v, 0)
"""))
    refused(sch, NotSupported, "divides by 0, which may be 0 where it did not run", "remove_guard", "D")
