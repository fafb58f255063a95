"""A search: begins with the rule, never ends below it, spends its budget where there is something to gain, resumes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import groupby
from math import inf

import numpy as np
import pytest

from loopwright import autosched, te
from loopwright.autosched.choices import Choices
from loopwright.ir import IRModule, structural_equal
from loopwright.tune import Budget, Session, Task, open_database
from loopwright.tune.errors import NoTasks, NothingToSpend, UnknownName
from loopwright.tune.measure import Failure, Measured
from loopwright.tune.scheduler import ByGain, RoundRobin, Standing
from loopwright.tune.session import default_spaces
from tests.tune.simulated import TARGET, Simulated, gemm_task, quick_spaces


def searched(tasks=None, measurer=None, trials=24, **options):
    made = Session(tasks or [gemm_task()], measurer or Simulated(), model="ridge", spaces=quick_spaces, **options)
    return made.run(Budget(trials=trials))


def test_the_first_trial_is_the_rule():
    session = searched(trials=1)
    (search,) = session.searches
    (trial,) = search.trials
    assert trial.candidate.choices == ()
    assert trial.is_best
    assert search.speed_up == 1.0


def test_the_best_candidate_is_found_and_can_be_made_again():
    session = searched()
    (search,) = session.searches
    measured = [trial for trial in search.trials if trial.seconds < inf]
    assert len(search.trials) == 24
    assert search.seconds == pytest.approx(min(trial.seconds for trial in measured), rel=0.02)  # the noise is 1 %
    assert search.speed_up > 1
    with Choices(search.incumbent.candidate.decisions):
        plan = autosched.apply(search.task.mod, search.task.target)
    assert structural_equal(plan.mod, search.spaces[0].plan_of(search.incumbent.candidate).mod)


def test_the_same_seed_makes_the_same_choices():
    first, second = ([trial.candidate for trial in searched(seed=3).searches[0].trials] for _ in range(2))
    assert first == second
    assert first != [trial.candidate for trial in searched(seed=4).searches[0].trials]


def test_candidates_that_fail_are_recorded_and_cost_one_trial(tmp_path):
    database = open_database(tmp_path / "d.db")
    session = searched(measurer=Simulated(failing=0.5), database=database)
    (search,) = session.searches
    failed = [trial for trial in search.trials if trial.failure is not None]
    assert failed
    assert len(search.trials) == 24
    records = database.records(search.task.key, search.task.fingerprint)
    assert sum("SIGSEGV" in record.error for record in records) == len(failed)


class Fading(Simulated):
    """What won loses the race at the end."""

    def race(self, task, incumbent, challenger):
        if incumbent.digest == self.raced[0] and self.raced.count(challenger.digest) == 2:
            return Measured((1e-3,) * 5, (1e-3,) * 5, 0.98, 0.97, 0.99, 0.01, "slower", True)
        return super().race(task, incumbent, challenger)


def test_a_winner_that_loses_the_last_race_is_not_kept(tmp_path):
    database = open_database(tmp_path / "d.db")
    session = searched(measurer=Fading(), database=database)
    (search,) = session.searches
    assert search.final.ratio == 0.98
    assert search.speed_up == 1.0
    with database:
        plan = autosched.apply(search.task.mod, search.task.target)
    assert [decision.rule for decision in plan.decisions] == ["packed GEMM"]
    assert structural_equal(plan.mod, autosched.apply(search.task.mod, search.task.target).mod)


def test_a_build_takes_what_the_database_knows(tmp_path):
    database = open_database(tmp_path / "d.db")
    task = searched(database=database).searches[0].task
    plain = autosched.apply(task.mod, task.target)
    with database:
        plan = autosched.apply(task.mod, task.target)
        near = autosched.apply(gemm_task(52, 208, 96).mod, task.target)
    assert not structural_equal(plan.mod, plain.mod)
    assert plan.schedule.is_proved
    assert near.schedule.is_proved
    assert structural_equal(autosched.apply(task.mod, task.target).mod, plain.mod)


def test_a_second_search_begins_with_what_the_first_found(tmp_path):
    database = open_database(tmp_path / "d.db")
    first = searched(database=database).searches[0]
    again = searched(database=database, trials=2, seed=9).searches[0]
    assert again.trials[1].candidate == first.incumbent.candidate
    assert again.speed_up == pytest.approx(first.speed_up, rel=0.02)
    assert len(Session([gemm_task()], Simulated(), database=database).experience.rows) > 20


def test_an_interrupted_search_keeps_what_it_has(tmp_path):
    class Impatient:
        def begin(self, session): ...
        def end(self, session): ...
        def trial(self, session, search, trial):
            if trial.number == 5:
                raise KeyboardInterrupt

    database = open_database(tmp_path / "d.db")
    session = searched(database=database, observers=[Impatient()])
    assert session.is_interrupted
    assert len(session.searches[0].trials) == 6
    assert database.best(session.tasks[0].key, session.tasks[0].fingerprint) is not None


def test_what_was_begun_for_a_round_that_does_not_come_may_be_proposed_again():
    search = searched(trials=3, round_size=2).searches[0]
    known = len(search._seen_of(search.spaces[0]).seconds)
    search.round(2, next_count=2)
    assert search._ahead is not None
    builds = search._ahead.builds
    assert len(search._seen_of(search.spaces[0]).seconds) == known + 4
    search.finish()
    assert search._ahead is None and next(builds, None) is None
    assert len(search._seen_of(search.spaces[0]).seconds) == known + 2


def test_another_space_has_its_turn_after_some_trials():
    def both(task):
        (space,) = quick_spaces(task)
        other = copy(space)
        other.name = "others"
        return [space, other]

    session = Session([gemm_task()], Simulated(failing=0.0), model="ridge", spaces=both).run(Budget(trials=64))
    names = [trial.candidate.space for trial in session.searches[0].trials]
    assert set(names[:16]) == {"rules"}
    assert "others" in names[16:32]


def test_sketches_are_searched_where_a_rule_is_far_from_the_roofline():
    A, k = te.placeholder((1000, 1000), name="A"), te.reduce_axis((0, 1000), name="k")
    sums = te.create_prim_func([A, te.compute((1000,), lambda i: te.sum(A[i, k], axis=k), name="B")])
    assert [space.name for space in default_spaces(gemm_task(33, 250, 65))] == ["rules", "sketches"]
    assert [space.name for space in default_spaces(Task("sums", IRModule({"main": sums}), TARGET))] == ["rules"]


class Repeating(Simulated):
    """Every second candidate is a program that was built before."""

    def build_each(self, task, jobs):
        for number, built in super().build_each(task, jobs):
            same = number % 2 == 1
            yield number, replace(built, failure=Failure("duplicate", "built before")) if same else built


def test_duplicates_are_no_trials_of_the_budget():
    (search,) = searched(measurer=Repeating(failing=0.0), trials=20).searches
    assert search.spent == 20
    assert sum(trial.is_duplicate for trial in search.trials) >= 8


class Same(Simulated):
    """After the first, nothing but programs that were built before."""

    def build_each(self, task, jobs):
        for number, built in super().build_each(task, jobs):
            yield number, replace(built, failure=Failure("duplicate", "built before")) if self.raced else built


def test_a_search_that_finds_nothing_but_duplicates_ends():
    (search,) = searched(measurer=Same(), trials=1000).searches
    assert search.is_done
    assert search.spent == 1
    assert len(search.trials) < 100


class Logged(Simulated):
    """Notes what is done, in order; builds begin when they are asked for."""

    def __init__(self):
        super().__init__(failing=0.0)
        self.log = []

    def build_each(self, task, jobs):
        self.log.append(f"build {len(jobs)}")
        return super().build_each(task, jobs)

    def measure_alone(self, task, built):
        self.log.append("alone")
        return super().measure_alone(task, built)

    def race(self, task, incumbent, challenger):
        if challenger.digest not in self.raced:  # not once more, since it won
            self.log.append("race")
        return super().race(task, incumbent, challenger)


def test_the_next_round_is_built_while_the_last_candidates_of_one_are_raced():
    measurer = Logged()
    searched(measurer=measurer, trials=20)
    log = [len(list(run)) if entry == "race" else entry for entry, run in groupby(measurer.log)]
    assert log == ["build 1", "build 8", "alone", 4, "build 8", 8, "build 3", 7]


class Slow(Simulated):
    """On a clock of its own, a candidate takes 2 seconds to be built, and 3 to race."""

    def __init__(self, monkeypatch):
        super().__init__(failing=0.0)
        self.clock = 0.0
        monkeypatch.setattr("time.monotonic", lambda: self.clock)

    def build_each(self, task, jobs):
        for number, built in super().build_each(task, jobs):
            self.clock += 2.0
            yield number, built

    def race(self, task, incumbent, challenger):
        self.clock += 3.0
        return super().race(task, incumbent, challenger)


@pytest.mark.parametrize("seconds", [30, 60])
def test_a_search_ends_within_its_seconds(monkeypatch, seconds):
    measurer = Slow(monkeypatch)
    session = Session([gemm_task()], measurer, model="prior", spaces=quick_spaces).run(Budget(minutes=seconds / 60))
    assert session.searches[0].final is not None  # the last race was run
    assert seconds - 20 <= measurer.clock <= seconds


class Lucky(Simulated):
    """Every candidate wins its first race, and loses the second."""

    def race(self, task, incumbent, challenger):
        ratio = 1.0 if challenger.digest in self.raced else 1.2
        self.raced.append(challenger.digest)
        return Measured((1e-3,) * 5, (1e-3,) * 5, ratio, ratio - 0.01, ratio + 0.01, 0.005, "faster", True)


def test_one_lucky_race_is_not_enough():
    (search,) = searched(measurer=Lucky(failing=0.0)).searches
    assert search.speed_up == 1.0
    assert [trial.number for trial in search.trials if trial.is_best] == [0]


def test_several_tasks_share_the_budget():
    session = searched([gemm_task(49), gemm_task(64), gemm_task(100, weight=5.0)], trials=60)
    counts = [len(search.trials) for search in session.searches]
    assert sum(counts) == 60
    assert session.searches[0].task.weight == 5.0  # the one that runs most often begins
    assert session.speed_up > 1
    assert session.geomean > 1
    limited = Session([gemm_task(49), gemm_task(64)], Simulated(), model="prior", spaces=quick_spaces)
    limited.run(Budget(trials=60, trials_per_task=10))
    assert [len(search.trials) for search in limited.searches] == [10, 10]


def test_schedulers():
    def standing(**changes):
        usual = {"weight": 1.0, "seconds": 1.0, "roofline": 0.8, "gain": 0.0, "trials": 8, "is_done": False}
        return Standing(**{**usual, **changes})

    assert ByGain().next([standing(), standing(roofline=0.2)]) == 1
    assert ByGain().next([standing(), standing(weight=9.0)]) == 1
    assert ByGain().next([standing(), standing(gain=0.5)]) == 1
    unseen = {"trials": 0, "seconds": inf}
    assert ByGain().next([standing(work=10.0), standing(work=20.0, **unseen)]) == 1
    assert ByGain().next([standing(work=1000.0), standing(work=10.0, **unseen)]) == 0
    assert ByGain().next([standing(work=10.0, **unseen), standing(work=20.0, **unseen)]) == 1
    assert ByGain().next([standing(seconds=inf), standing(work=0.1, **unseen)]) == 1
    assert ByGain().next([standing(is_done=True)]) is None
    assert RoundRobin().next([standing(), standing(trials=3)]) == 1
    assert RoundRobin().next([]) is None


def test_bad_input():
    with pytest.raises(NoTasks, match="the list of tasks is empty"):
        Session([], Simulated())
    for budget in (Budget(), Budget(trials=0), Budget(minutes=-1.0), Budget(minutes=float("nan"))):
        with pytest.raises(NothingToSpend):
            Session([gemm_task()], Simulated()).run(budget)
    with pytest.raises(UnknownName, match="there is no task scheduler 'fair'"):
        Session([gemm_task()], Simulated(), scheduler="fair")
    with pytest.raises(NothingToSpend, match="a round of 0 candidates"):
        Session([gemm_task()], Simulated(), round_size=0)


def test_random_numbers_of_one_task_do_not_depend_on_others():
    alone = searched([gemm_task(64)], trials=16)
    beside = searched([gemm_task(64), gemm_task(49)], trials=48, scheduler="round-robin")
    assert np.isclose(alone.searches[0].rule_seconds, beside.searches[0].rule_seconds)
