"""What a search reports: figures, differences in words, text."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import pytest

from loopwright import autosched
from loopwright.autosched.choices import Choices
from loopwright.tune import Budget, Session
from loopwright.tune.report import as_text, summary_of
from loopwright.tune.report.differences import plans_that_differ
from loopwright.tune.result import Tuned
from tests.tune.simulated import Simulated, gemm_task, quick_spaces


@functools.cache
def searched(failing: float = 0.2, trials: int = 30) -> Session:
    tasks = [gemm_task(49, weight=3.0), gemm_task(64), gemm_task(100)]
    session = Session(tasks, Simulated(failing), model="ridge", spaces=quick_spaces, round_size=4)
    return session.run(Budget(trials=trials))


def test_a_summary_has_what_the_session_found():
    session = searched()
    found = summary_of(session)
    assert (found.trials, found.speed_up, found.geomean) == (30, session.speed_up, session.geomean)
    assert found.before / found.after == pytest.approx(session.speed_up)
    assert sum(task.share for task in found.tasks) == pytest.approx(1.0)
    assert found.tasks[0].name == "49×96×200" and found.tasks[0].weight == 3.0
    for task in found.tasks:
        (search,) = [search for search in session.searches if search.task.key == task.key]
        assert len(task.curve) == task.trials == len(search.trials)
        assert task.curve[0] == (0, 1.0, 1.0)
        assert task.curve[-1][2] == pytest.approx(task.speed_up)
        assert task.flops == 2 * search.task.sizes[0] * 96 * 200 or task.flops > 0
        assert task.limit.best == pytest.approx(task.limit.rule * task.speed_up)
    failed = sum(trial.failure is not None for search in session.searches for trial in search.trials)
    assert sum(count for task in found.tasks for _, count, _ in task.failures) == failed > 0
    assert found.tasks[0].rate(found.tasks[0].seconds) > found.tasks[0].rate(found.tasks[0].rule_seconds)


def test_a_summary_is_plain_data():
    data = json.loads(json.dumps(summary_of(searched()).as_data(), allow_nan=False))
    assert data["threads"] == 1 and data["cache"] == "warm" and not data["interrupted"]
    assert data["tasks"][0]["failures"].keys() == {"signal"}
    assert data["tasks"][0]["differences"][0]["blocks"] == "C"


def test_a_task_that_cannot_be_measured_is_reported():
    class Failing(Simulated):
        def build_each(self, task, jobs):
            self.raced.append("")
            yield from super().build_each(task, jobs)

    session = Session([gemm_task()], Failing(failing=1.0), model="ridge", spaces=quick_spaces).run(Budget(trials=4))
    found = summary_of(session)
    json.dumps(found.as_data(), allow_nan=False)
    assert "not measured, 1 trial" in as_text(found)
    assert "nothing was measured" in as_text(found)
    assert "the process was killed by SIGSEGV" in as_text(found)


def test_the_text_says_what_each_task_gained():
    text = str(Tuned(searched(), None))
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[:3]] == [task.name for task in summary_of(searched()).tasks]
    assert all("× the rule (" in line or "the rule stands (" in line for line in lines[:3])
    assert "all together: 1." in lines[-1] and "30 trials in" in lines[-1]
    assert "and 2 tasks more" in as_text(summary_of(searched()), most=1)


def test_tasks_without_a_turn_are_counted():
    session = Session([gemm_task(49), gemm_task(64)], Simulated(), model="ridge", spaces=quick_spaces)
    session.run(Budget(trials=1))
    assert "1 task had no turn" in as_text(summary_of(session))


def test_plans_differ_choice_by_choice():
    task = gemm_task(49, 200, 96)
    rule = autosched.apply(task.mod, task.target)
    assert plans_that_differ(rule, rule) == []
    with Choices({"0.tiles": {"mr": 5, "vectors": 2, "packs": True}}):
        other = autosched.apply(task.mod, task.target)
    found = plans_that_differ(rule, other)
    assert found[0].blocks == "C"
    assert found[0].rule.startswith("tiles of 7 × 48: ") and found[0].best.startswith("tiles of 5 × 32: ")
    assert any(one.best.startswith("B packed in panels") for one in found)


def test_what_the_rule_chose_differs_in_nothing():
    session = Session([gemm_task()], Simulated(), model="ridge", spaces=quick_spaces).run(Budget(trials=1))
    (task,) = summary_of(session).tasks
    assert task.is_rule and task.differences == () and task.speed_up == 1.0


def test_decisions_are_named_by_their_fields():
    found = [one for task in summary_of(searched()).tasks for one in task.differences if one.blocks == "tiles"]
    assert found
    assert all("mr " in one.best or "vectors " in one.best or "slab " in one.best for one in found)


def test_notes_that_differ_in_figures_alone_are_one_line():
    found = summary_of(searched())
    first, second, third = (
        replace(task, notes=notes)
        for task, notes in zip(found.tasks, [("load 3.4", "hot"), ("load 7",), ("load 1",)], strict=True)
    )
    text = as_text(replace(found, tasks=(first, second, third)))
    assert f"note: {first.name}: load 3.4; likewise 2 more tasks\nnote: {first.name}: hot\n" in text
