from __future__ import annotations

import os
import sys

import pytest

from loopwright.model import load_ahead
from loopwright.model.load_ahead import loading_ahead, run_ahead

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked on Linux alone")


@pytest.fixture(autouse=True)
def several(monkeypatch):
    """As on a machine with several processors, and nothing is left behind."""
    monkeypatch.setattr(load_ahead, "usual_processes", lambda: 2)
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


class Job:
    """The square of a number, where `load` has been called, and the process that finds it."""

    loaded = False

    def __init__(self, number):
        self.number = number

    def __call__(self):
        assert Job.loaded
        return self.number**2, os.getpid()


class Fails(Job):
    def __call__(self):
        raise LookupError("no such thing")


def load():
    Job.loaded = True


def same():
    return "as before"


def test_another_process_loads_and_does_the_jobs():
    with loading_ahead(load, same):
        found = dict(run_ahead([Job(k) for k in range(20)]))
        assert {number: square for number, (square, _) in found.items()} == {k: k * k for k in range(20)}
        assert os.getpid() not in {process for _, process in found.values()}
        assert not Job.loaded
        assert list(run_ahead([Job(1), Job(2)])) == []  # it is asked once


def test_nobody_is_asked_outside_for_one_job_or_where_one_process_is_to_work():
    assert list(run_ahead([Job(1), Job(2)])) == []
    with loading_ahead(load, same):
        assert list(run_ahead([Job(1)])) == []
        assert list(run_ahead([Job(1), Job(2)], processes=1)) == []


def test_a_process_that_knows_less_is_not_asked():
    state = ["before"]
    with loading_ahead(load, lambda: list(state)):
        state.append("after")
        assert list(run_ahead([Job(1), Job(2)])) == []


def dies():
    os._exit(3)


def fails():
    raise ImportError("not installed")


@pytest.mark.parametrize("loads", [dies, fails])
def test_one_that_dies_leaves_the_jobs_to_the_caller(loads):
    with loading_ahead(loads, same):
        assert list(run_ahead([Job(k) for k in range(5)])) == []


def test_jobs_that_fail_are_left_to_the_caller():
    with loading_ahead(load, same):
        assert {number for number, _ in run_ahead([Job(0), Job(1), Fails(2)])} <= {0, 1}


def test_jobs_that_cannot_be_sent_are_left_to_the_caller():
    with loading_ahead(load, same):
        assert list(run_ahead([lambda: 1, lambda: 2])) == []


def test_nobody_needs_it():
    with pytest.raises(KeyError, match="no model"), loading_ahead(load, same):
        raise KeyError("no model")
    with loading_ahead(load, same), loading_ahead(load, same):  # one is enough
        assert len(list(run_ahead([Job(1), Job(2)]))) == 2
