from __future__ import annotations

import ctypes
import statistics

import numpy as np
import pytest
from native_call import native, raising

from loopwright import nd
from loopwright.runtime import timing
from loopwright.runtime.call_errors import RankMismatch
from loopwright.runtime.devices import DeviceUnavailable
from loopwright.runtime.module import Module, NoEntryFunction
from loopwright.runtime.registry import register_func, remove_global_func
from loopwright.runtime.timing import BadTiming, BenchmarkResult, time_evaluator


def counting() -> tuple[list, object]:
    calls: list = []
    return calls, native(lambda values: calls.append([(v.type_index, v.value) for v in values]))


def test_number_and_repeat_count_calls_with_one_warm_up():
    calls, function = counting()
    result = time_evaluator(function, nd.cpu(0), number=3, repeat=4)(nd.empty((2,)))
    assert len(calls) == 1 + 3 * 4
    assert len(result.results) == 4
    assert all(seconds > 0 for seconds in result.results)


def test_the_native_loop_passes_the_same_arguments():
    calls, function = counting()
    time_evaluator(function, number=2)(nd.empty((2,)), np.zeros(3), -5, 2.5)
    assert len(calls) == 3
    kinds = [[kind for kind, _ in call] for call in calls]
    assert kinds == [[70, 70, 1, 3]] * 3
    assert ctypes.c_int64(calls[2][2][1]).value == -5
    assert calls[2][3] == calls[0][3]


def test_functions_and_arguments_of_python_are_timed_too():
    seen = []
    time_evaluator(lambda *a: seen.append(a), number=2)("text", None)
    assert seen == [("text", None)] * 3
    calls, function = counting()
    time_evaluator(function, number=2)("text")
    assert len(calls) == 3


def test_number_grows_until_a_repeat_is_long_enough():
    calls, function = counting()
    result = time_evaluator(function, number=1, repeat=2, min_repeat_ms=2)()
    assert len(calls) > 10
    assert len(result.results) == 2


def test_zero_times_end_the_growth(monkeypatch: pytest.MonkeyPatch):
    calls, function = counting()
    evaluator = time_evaluator(function, number=1, min_repeat_ms=5, limit_zero_time_iterations=3)
    asked = []
    assert evaluator._one_repeat(lambda n: asked.append(n) or 0, 1) == (0.0, asked[-1])
    assert len(asked) == 3


def test_preparation_runs_before_each_repeat():
    prepared = []
    _, function = counting()
    register_func("test.prepare", lambda *a: prepared.append(len(a)))
    try:
        time_evaluator(function, repeat=3, f_preproc="test.prepare", cache_flush_bytes=1000)(nd.empty((1,)))
    finally:
        remove_global_func("test.prepare")
    assert prepared == [1, 1, 1]


def test_a_bad_call_raises_its_own_error():
    with pytest.raises(RankMismatch, match="main: A has 1 axis"):
        time_evaluator(raising("RankMismatch", "main: A has 1 axis"))(1)


def test_a_call_that_fails_later_raises_its_own_error():
    calls = []
    late = raising("RankMismatch", "late")

    def body(_values: list) -> int:
        calls.append(1)
        return late() if len(calls) > 2 else 0

    with pytest.raises(RankMismatch, match="late"):
        time_evaluator(lambda: body([]), number=5)()


@pytest.mark.parametrize("option", ["number", "repeat", "repeats_to_cooldown"])
def test_options_are_checked(option: str):
    with pytest.raises(BadTiming, match=f"{option} is 0, and must be at least 1"):
        time_evaluator(len, **{option: 0})


def test_a_missing_device_is_refused():
    with pytest.raises(DeviceUnavailable, match="time_evaluator"):
        time_evaluator(len, nd.cuda(0))


def test_through_a_module():
    calls, function = counting()
    result = Module({"f": function}).time_evaluator("f", nd.cpu(0), number=2, repeat=2)()
    assert len(calls) == 5
    assert result.mean == statistics.fmean(result.results)


def test_the_summary():
    result = BenchmarkResult((0.001, 0.002, 0.006))
    assert (result.min, result.max, result.median) == (0.001, 0.006, 0.002)
    assert result.mean == pytest.approx(0.003)
    assert result.std == pytest.approx(np.std(result.results))
    assert "mean (ms)" in str(result)
    assert "3.0000" in str(result)


def test_a_module_times_its_entry_by_default():
    calls, function = counting()
    result = Module({"only": function}).time_evaluator(number=2, repeat=3)(nd.empty((2,)))
    assert len(calls) == 1 + 2 * 3
    assert len(result.results) == 3
    with pytest.raises(NoEntryFunction, match="it has first, second"):
        Module({"first": function, "second": function}).time_evaluator()


def test_cold_caches_by_the_name_that_scripts_know(monkeypatch):
    monkeypatch.setattr(timing, "_MORE_THAN_CACHES", 1024)
    evaluator = time_evaluator(lambda: None, number=1, f_preproc="cache_flush_cpu_non_first_arg")
    assert evaluator().mean >= 0
    with pytest.raises(ValueError, match=r"Cannot find global function mine\.nothing"):
        time_evaluator(print, f_preproc="mine.nothing")
