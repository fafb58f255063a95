"""Schedules that are known stand before the rules, are proved again, and give way where they do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.choices import Choices
from loopwright.autosched.known import Known, known_schedules, using
from loopwright.ir import IRModule, structural_equal
from loopwright.schedule import Schedule

TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def scaled(rows: int = 40, name: str = "B"):
    A = te.placeholder((rows, 30), name="A")
    B = te.compute((rows, 30), lambda i, j: A[i, j] * 2.0, name=name)
    return te.create_prim_func([A, B])


class Source:
    """Knows one thing, of every function."""

    def __init__(self, known: Known | None) -> None:
        self.known, self.asked = known, []

    def find(self, function, target, winograd):
        self.asked.append((function, target, winograd))
        return self.known

    def key(self, function, target, winograd, count=1):
        return "" if self.known is None else str(hash(str(self.known)))


def trace_by_hand(func):
    sch = Schedule(func)
    i, j = sch.get_loops("B")
    sch.parallel(i)
    sch.vectorize(sch.split(j, [None, 10])[1])
    return sch


def test_a_trace_takes_the_place_of_the_rules():
    func = scaled()
    wanted = trace_by_hand(func)
    source = Source(Known("found by hand", trace=wanted.trace.as_json()))
    with using(source):
        plan = autosched.apply(func, TARGET)
    assert structural_equal(plan.mod["main"], wanted.mod["main"])
    assert plan.schedule.is_proved
    assert plan.explain() == "B: known schedule\n  found by hand: proved again here"
    assert known_schedules() is None
    assert len(source.asked) == 1


DAMAGED = ([], [[["GetBlock", [], ["Z", "main"], ["b0"]]], []], [[["Nonsense", [], [], []]], []])


@pytest.mark.parametrize("trace", DAMAGED)
def test_a_trace_that_does_not_fit_gives_way_to_the_rules(trace):
    with using(Source(Known("damaged", trace=trace))):
        plan = autosched.apply(scaled(), TARGET)
    assert structural_equal(plan.mod, autosched.apply(scaled(), TARGET).mod)
    assert "a known schedule was refused" in plan.explain()


def test_a_trace_that_would_change_values_is_refused():
    A = te.placeholder((9,), name="A")
    B = te.compute((9,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((9,), lambda i: B[8 - i], name="C")
    func = te.create_prim_func([A, C])
    fuse_both = [
        [
            ["GetBlock", [], ["B", "main"], ["b0"]],
            ["GetBlock", [], ["C", "main"], ["b1"]],
            ["GetLoops", ["b1"], [], ["l2"]],
            ["ComputeAt", ["b0", "l2"], [False, -1], []],
            ["GetLoops", ["b0"], [], ["l3"]],
            ["Reorder", ["l3", "l3"], [], []],
        ],
        [],
    ]
    with using(Source(Known("wrong", trace=fuse_both))):
        plan = autosched.apply(func, TARGET)
    assert "a known schedule was refused" in plan.explain()
    assert plan.schedule.is_proved


def test_decisions_are_taken_by_the_rules():
    A, B = te.placeholder((30, 20), name="A"), te.placeholder((20, 64), name="B")
    k = te.reduce_axis((0, 20), name="k")
    func = te.create_prim_func([A, B, te.compute((30, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")])
    with Choices() as usual:
        autosched.apply(func, TARGET)
    other = {"0.tiles": {**usual.decisions["0.tiles"], "mr": 3}}
    with Choices(other):
        wanted = autosched.apply(func, TARGET)
    with using(Source(Known("found", decisions=other))):
        assert structural_equal(autosched.apply(func, TARGET).mod, wanted.mod)


def test_each_function_is_asked_about():
    source = Source(None)
    with using(source):
        autosched.apply(IRModule({"f": scaled(), "g": scaled(8)}), TARGET)
    assert len(source.asked) == 2


def test_what_is_known_is_part_of_the_key_of_a_build(monkeypatch, tmp_path):
    from tests.compile_caching import switch_on

    switch_on(monkeypatch, tmp_path)
    func = scaled(16)
    plain = lw.build(func, autosched=True)
    with using(Source(Known("found by hand", trace=trace_by_hand(func).trace.as_json()))):
        tuned = lw.build(func, autosched=True)
    assert tuned.get_source("ll") != plain.get_source("ll")
    a, b = np.ones((16, 30), "float32"), np.empty((16, 30), "float32")
    tuned(a, b)
    assert (b == 2).all()
