"""Random schedules of random programs keep every value; `benchmarks/fuzz_schedules.py` runs more."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import tir
from loopwright.schedule.primitives.compute.rfactor import NotCommutative
from loopwright.script import tir as T
from tests.campaign import programs
from tests.schedule.harness.fuzz import STEPS, fuzz
from tests.schedule.harness.legality import compares_by_numbers, numbers_of, terms_of, truth_about
from tests.schedule.harness.programs import Program, random_sketch

PROGRAMS = programs(20, 240)
CHUNK = 10  # programs a test, so that two workers share the time evenly
NATIVE_EVERY = 4  # building takes longer than all the rest


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_schedules_keep_every_value(first):
    found = fuzz(range(first, first + CHUNK), NATIVE_EVERY)
    if found.failing:
        pytest.fail("\n\n".join([failing.report() for failing in found.failing[:3]]))
    assert found.steps >= CHUNK * STEPS * 3 // 4, "too many steps were refused: the schedules are too short"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_sketches_get_smaller(seed):
    sketch = random_sketch(seed)
    program = Program(sketch, (3, 5, 2))
    assert program.function.script() == Program(random_sketch(seed), (3, 5, 2)).function.script()
    for smaller in program.smaller():
        assert smaller.function.body is not None  # it parses, so it is well formed
        assert smaller != program


@T.prim_func
def best(A: T.Buffer((3,), "int8"), P: T.Buffer((1,), "int32"), V: T.Buffer((1,), "int8")):
    for i, ko, ki in T.grid(1, 2, 2):
        with T.block("best"):
            vi = T.axis.spatial(1, i)
            vk = T.axis.reduce(3, ko * 2 + ki)
            T.where(ko * 2 + ki < 3)
            with T.init():
                P[vi] = -1
                V[vi] = T.int8(-128)
            place: T.int32 = T.Select(V[vi] >= A[vk], P[vi], vk)
            value: T.int8 = T.Select(V[vi] >= A[vk], V[vi], A[vk])
            P[vi] = place
            V[vi] = value


@pytest.mark.parametrize("values", [(1, 5, 5), (5, 5, 5), (-128, -128, -128), (1, 2, 3), (3, 2, 1)])
def test_of_equal_values_the_first_stays_the_one(values):
    sch = tir.Schedule(best)
    _, ko, ki = sch.get_loops("best")
    with pytest.raises(NotCommutative, match="the reduction 'best' is not commutative"):
        sch.rfactor(ki, 0)  # ki = 0 meets place 2 before ki = 1 meets place 1
    sch.rfactor(ko, 0)
    arguments = [np.array(values, "int8"), np.zeros(1, "int32"), np.zeros(1, "int8")]
    before, after = numbers_of(best, arguments), numbers_of(sch.view().function, arguments)
    assert before[2] == after[2] == max(values)
    assert before[1] == after[1] == (-1 if max(values) == -128 else values.index(max(values)))


@T.prim_func
def index_beyond_64_bits_in_a_branch(A: T.Buffer((2,), "int32"), B: T.Buffer((2,), "int32")):
    for i in range(2):
        B[i] = T.if_then_else(
            A[i] < A[i], A[T.Cast("int32", T.Mul(T.int64(8589934592), T.int64(8589934592)) % T.int64(2))], A[i]
        )


def test_a_program_has_numbers_where_a_branch_never_taken_has_no_term():
    assert terms_of(index_beyond_64_bits_in_a_branch) is None
    given = np.array([3, 5], "int32")
    results = numbers_of(index_beyond_64_bits_in_a_branch, [given, np.zeros(2, "int32")])
    np.testing.assert_array_equal(results[1], given)


@T.prim_func
def uses_the_greatest_of_nothing(A: T.Buffer((0,), "uint8"), C: T.Buffer((1,), "uint8")):
    B = T.alloc_buffer((1,), "uint8")
    for i, ko, ki in T.grid(1, 0, 1):
        with T.block("greatest"):
            vi = T.axis.spatial(1, i)
            vk = T.axis.reduce(0, ko + ki)
            with T.init():
                B[vi] = T.uint8(3)
            B[vi] = T.max(B[vi], A[vk])
    for i in range(1):
        with T.block("use"):
            vi = T.axis.spatial(1, i)
            C[vi] = B[vi] * B[vi]


def test_a_reduction_of_nothing_is_compared_by_numbers():
    sch = tir.Schedule(uses_the_greatest_of_nothing)
    sch.rfactor(sch.get_loops("greatest")[2], 0)
    assert not truth_about(uses_the_greatest_of_nothing, sch.mod["main"]).is_right
    assert compares_by_numbers(uses_the_greatest_of_nothing)
    results = numbers_of(sch.mod["main"], [np.zeros(0, "uint8"), np.zeros(1, "uint8")])
    np.testing.assert_array_equal(results[1], [9])
