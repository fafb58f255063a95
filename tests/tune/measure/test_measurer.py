"""Candidates built and raced; those that are broken cost themselves alone, and the run goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loopwright.runtime import thread_pool
from loopwright.schedule import Schedule
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.tune.measure import (
    BadMeasureOption,
    BuildJob,
    Built,
    Failure,
    Measurer,
    NothingToRace,
)
from loopwright.tune.measure.limits import can_fork
from tests.tune.measure import programs
from tests.tune.measure.programs import add_one, job, split_by, task_of

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are forked on Linux")

BROKEN = {
    "garbage": ("wrong result", r"element \[0\] is 2\.1.*, expected 1\.1.* \(64 of 64 are wrong\)"),
    "unwritten": ("wrong result", r"element \[63\] is .* \(1 of 64 are wrong\)"),
    "segfault": ("signal", "run: the process was killed by SIGSEGV"),
    "hang": ("run timeout", "run: not finished within 1 s"),
    "leave": ("crash", "run: the process ended with status 3"),
    "past_the_end": ("out of bounds", "run: memory behind argument 2 was written"),
    "writes_its_input": ("out of bounds", "run: argument 1, which is only read, was written"),
    "changes": ("not deterministic", "two runs on the same inputs differ"),
}


@pytest.fixture(scope="module")
def measurer() -> Measurer:
    return Measurer(Target("llvm"), threads=1, timeout=1.0, build_timeout=20.0, budget=0.02, processes=2)


@pytest.fixture(scope="module")
def first(measurer: Measurer) -> Built:
    (built,) = measurer.build(task_of(add_one), [split_by(4)])
    return built


def test_a_candidate_is_built_with_its_trace(first):
    assert first.failure is None and first.digest and first.total_seconds > 0
    assert [step[0] for step in first.trace_json[0]] == ["GetBlock", "GetLoops", "Split"]
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    first.load(Target("llvm"))(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_what_cannot_be_built_says_why(measurer):
    def refuse():
        sch = programs.split_by(4).make()
        sch.compute_inline(sch.get_block("B"))
        return sch

    def refuse_quietly():
        sch = Schedule(add_one, error_render_level="none")
        sch.compute_inline("B")

    task = task_of(add_one, "another name")
    refused, raised, quiet = measurer.build(task, [BuildJob(refuse), BuildJob(lambda: 1 / 0), BuildJob(refuse_quietly)])
    assert quiet.failure.message == refused.failure.message
    assert refused.failure.kind == "refused" and "compute_inline" in refused.failure.message
    assert raised.failure == Failure("build error", "build: ZeroDivisionError: division by zero", "division by zero")


def test_duplicates_are_known_by_their_programs():
    measurer = Measurer("llvm", processes=1)
    task = task_of(add_one)
    kinds = [built.failure and built.failure.kind for built in measurer.build(task, [split_by(4), split_by(8)])]
    assert kinds == [None, None]
    again, together, fresh = measurer.build(task, [split_by(4), split_by(16), split_by(16)])
    assert (again.failure.kind, again.object_bytes) == ("duplicate", b"")
    assert (together.failure, fresh.failure.kind) == (None, "duplicate")


def test_the_incumbent_is_measured_alone(measurer, first):
    measured = measurer.measure_alone(task_of(add_one), first)
    assert measured.failure is None and measured.checked
    assert 0 < measured.median < 1 and measured.noise > 0 and len(measured.seconds) >= 3
    assert measured.low <= measured.ratio <= measured.high


def test_a_race_is_told_in_pairs(measurer, first):
    (slow,) = measurer.build(task_of(add_one), [job(slowly)])
    measured = measurer.race(task_of(add_one), first, slow)
    assert (measured.verdict, measured.failure, measured.checked) == ("slower", None, True)
    assert measured.ratio < 0.9 and not measured.is_faster
    assert len(measured.seconds) == len(measured.incumbent_seconds) < 40
    other = measurer.race(task_of(add_one), slow, first)
    assert other.verdict == "faster" and other.is_faster and other.low > 1


@T.prim_func
def slowly(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for _again in range(20_000):
        for i in range(64):
            B[i] = A[i] + T.float32(1)
        T.evaluate(T.call_extern("int32", "rand"))


def test_of_long_calls_one_pair_with_the_first_run_is_enough():
    def counted(times):
        @T.prim_func
        def counts(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
            for _again in range(times):
                for i in range(64):
                    B[i] = A[i] + T.float32(1)
                T.evaluate(T.call_extern("int32", "rand"))

        return counts

    measurer, task = Measurer(Target("llvm"), threads=1, timeout=5.0, budget=0.02), task_of(add_one)
    long, longer = measurer.build(task, [job(counted(2_000_000)), job(counted(8_000_000))])
    alone = measurer.measure_alone(task, long)
    assert alone.failure is None and alone.median > 0.02  # else the machine is faster than this test thought
    measured = measurer.race(task, long, longer)
    assert (measured.verdict, measured.checked, len(measured.seconds)) == ("slower", True, 1)
    assert 0.1 < measured.ratio < 1 / 1.4


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_candidate_costs_itself_alone(name, measurer, first):
    kind, message = BROKEN[name]
    # What is slower than the incumbent is not run again; so this one is slow.
    slow, built = Measurer("llvm").build(task_of(add_one), [job(slowly), job(getattr(programs, name))])
    measured = measurer.race(task_of(add_one), slow, built)
    assert measured.failure.kind == kind
    assert measured.failure == Failure(kind, measured.failure.message, measured.failure.detail)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(measured.failure.message)
    assert measured.median == math.inf and not measured.is_faster
    assert measurer.race(task_of(add_one), first, first).failure is None


def test_finalists_are_ordered(measurer, first):
    (slow,) = Measurer("llvm").build(task_of(add_one), [job(slowly)])
    order = measurer.finalists(task_of(add_one), [slow, first])
    assert [index for index, _ in order] == [1, 0]
    assert order[0][1].low > 1 and order[0][1].noise > 0
    assert measurer.finalists(task_of(add_one), []) == []


def test_a_finalist_that_fails_stands_last(measurer, first):
    (crash,) = Measurer("llvm").build(task_of(add_one), [job(programs.segfault)])
    order = measurer.finalists(task_of(add_one), [first, crash])
    assert [(index, measured.failure is None) for index, measured in order] == [(0, True), (1, False)]


def test_caches_are_cold_where_that_is_asked_for(first):
    cold = Measurer("llvm", threads=1, cache="cold", budget=0.01)
    assert cold.settings == {"threads": 1, "cache": "cold"}
    measured = cold.race(task_of(add_one), first, first)
    assert measured.failure is None and measured.checked


def test_the_first_candidate_is_the_reference_where_the_program_itself_takes_too_long(first):
    @T.prim_func
    def forever(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        B[0] = A[0]
        T.evaluate(T.call_extern("int32", "pause"))

    measured = Measurer("llvm", reference_timeout=0.2, budget=0.02).measure_alone(task_of(forever), first)
    assert measured.checked and measured.failure is None
    assert "compared with those of the first candidate" in measured.note and "within 0.2 s" in measured.note


def test_arguments_may_be_given(first):
    seen = []

    def arguments(task):
        seen.append(task.name)
        return [np.full(64, 3, "float32"), np.zeros(64, "float32")]

    measurer = Measurer("llvm", budget=0.02, arguments=arguments)
    assert measurer.measure_alone(task_of(add_one, "mine"), first).checked
    assert measurer.measure_alone(task_of(add_one, "mine"), first).checked
    assert seen == ["mine"]


def test_logarithms_are_compared_on_positive_numbers():
    @T.prim_func
    def logarithm(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = T.log(A[i])

    @T.prim_func
    def wrong(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = T.log(A[i] if A[i] < T.float32(0) else A[i] * T.float32(2))

    measurer, task = Measurer("llvm", budget=0.02), task_of(logarithm)
    right, other = measurer.build(task, [job(logarithm), job(wrong)])
    assert measurer.measure_alone(task, right).checked
    assert measurer.race(task, right, other).failure.kind == "wrong result"


def test_what_makes_no_sense_is_refused():
    with pytest.raises(BadMeasureOption, match="cache is 'tepid'"):
        Measurer("llvm", cache="tepid")
    with pytest.raises(BadMeasureOption, match="threads is 0"):
        Measurer("llvm", threads=0)
    with pytest.raises(BadMeasureOption, match="budget is -1"):
        Measurer("llvm", budget=-1)
    with pytest.raises(NothingToRace, match="refused: no"):
        Measurer("llvm").measure_alone(task_of(add_one), Built(failure=Failure("refused", "no")))


def test_the_threads_of_this_process_stay_as_they_are(measurer, first):
    before = thread_pool.num_threads()
    Measurer("llvm", threads=1, budget=0.02).measure_alone(task_of(add_one), first)
    assert thread_pool.num_threads() == before
