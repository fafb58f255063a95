from __future__ import annotations

import os
import sys
import time

import pytest

from loopwright.model import workers
from loopwright.model.workers import beside, in_parallel

forks = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked on Linux alone")


@pytest.mark.parametrize("processes", [1, 3])
def test_every_job_is_done_once(processes):
    jobs = [lambda k=k: k * k for k in range(50)]
    found = list(in_parallel(jobs, processes))
    assert sorted(found) == [(k, k * k) for k in range(50)]
    assert list(in_parallel([], processes)) == []


@forks
def test_jobs_run_in_other_processes_and_large_results_arrive():
    jobs = [lambda: (os.getpid(), bytes(3_000_000)) for _ in range(4)]
    found = [result for _, result in in_parallel(jobs, 2)]
    assert os.getpid() not in {process for process, _ in found}
    assert {len(data) for _, data in found} == {3_000_000}


def fails():
    raise LookupError("no such thing")


@forks
def test_an_error_is_raised_here_and_no_worker_is_left():
    with pytest.raises(LookupError, match="no such thing"):
        list(in_parallel([lambda: 1, fails, lambda: 3], 2))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@forks
def test_the_jobs_of_a_worker_that_died_are_done_here():
    here = os.getpid()

    def job(k):
        if os.getpid() != here:
            os._exit(3)
        return k

    assert sorted(in_parallel([lambda k=k: job(k) for k in range(5)], 2)) == [(k, k) for k in range(5)]


@forks
def test_results_that_nobody_wants_end_the_workers(monkeypatch):
    started: list[int] = []
    start = workers._start

    def noted(*given):
        worker = start(*given)
        started.append(worker.process)
        return worker

    monkeypatch.setattr(workers, "_start", noted)
    found = in_parallel([lambda k=k: k for k in range(20)], 2)
    next(found)
    found.close()
    assert len(started) == 2
    for process in started:
        with pytest.raises(ChildProcessError):  # it has ended, and was waited for
            os.waitpid(process, os.WNOHANG)


def test_one_job_beside_what_this_process_does():
    here = os.getpid()
    with beside(lambda: (os.getpid(), bytes(3_000_000))) as result:
        process, data = result()
        assert result() == (process, data) and len(data) == 3_000_000
    assert (process != here) is sys.platform.startswith("linux")


def test_the_error_of_a_job_beside_is_raised_where_its_result_is_wanted():
    def fails():
        raise ValueError("no such thing")

    with beside(fails) as result, pytest.raises(ValueError, match="no such thing"):
        result()


@forks
def test_a_job_beside_that_nobody_waits_for_ends():
    started = time.monotonic()
    with beside(lambda: time.sleep(60)):
        pass
    assert time.monotonic() - started < 30
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
