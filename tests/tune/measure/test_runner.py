"""What a race runs, and how often: calls that take long are few."""

from __future__ import annotations

import pytest

from loopwright.target import Target
from loopwright.tune.measure import runner


class Call:
    """Arguments that nobody looks at."""

    values, outputs = (), ()

    def fresh(self):
        return self

    def damage(self):
        return None


def race(monkeypatch, usual: float, incumbent: float, *challenger: float):
    """The verdict on programs that take as many seconds, the last of them from then on, and who was called.

    `usual` is what a call of the incumbent took before.
    """
    calls: list[str] = []

    class Contender(runner._Contender):
        def __init__(self, built, call, setting, flush):
            self.name, self.left = built, list(challenger) if built == "challenger" else [incumbent]
            self.calls, self.flush, self.call_seconds, self.loops = 1, None, 0.0, []

        def load(self):
            """There is nothing to load."""

        def warm_up(self):
            """One call is a sample."""

        def sample(self, copy):
            calls.append(self.name)
            return self.left.pop(0) if len(self.left) > 1 else self.left[0]

        def first_call(self):
            self.call_seconds = self.sample(0)
            return self.call_seconds

    monkeypatch.setattr(runner, "_Contender", Contender)
    monkeypatch.setattr(runner, "_settled", lambda *_: None)
    setting = runner.Setting(Target("llvm"), 1, "warm", budget=0.5, timeout=10.0)
    timed = runner.race(lambda *_: None, setting, Call(), "incumbent", "challenger", usual, None)
    return timed.verdict, "".join([name[0] for name in calls])


@pytest.mark.parametrize("seconds", [0.115, 0.2])
def test_a_first_run_that_is_far_behind_needs_one_call_of_the_incumbent(monkeypatch, seconds):
    assert race(monkeypatch, 0.1, 0.1, seconds) == ("slower", "ci")


def test_on_a_machine_that_is_slower_now_that_call_is_one_of_a_pair(monkeypatch):
    verdict, calls = race(monkeypatch, 0.1, 0.12, 0.13, 0.1)
    assert calls.startswith("cicci") and calls.count("i") + 1 == calls.count("c")
    assert verdict == "faster"


def test_calls_that_take_little_of_the_budget_have_a_pair_of_their_own(monkeypatch):
    verdict, calls = race(monkeypatch, 0.03, 0.03, 0.036)
    assert calls.startswith("ciccici") and verdict == "slower"


def test_a_challenger_that_is_faster_is_raced_in_turn(monkeypatch):
    verdict, calls = race(monkeypatch, 0.1, 0.1, 0.08)
    assert calls.startswith("cicci") and verdict == "faster"
