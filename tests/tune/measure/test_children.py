"""Functions in children: results come back, and so does what became of those that crash, hang or eat memory."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from itertools import pairwise

import pytest

from loopwright.tune.measure.children import Crew, each_child, run_children
from loopwright.tune.measure.failure import KINDS, Failure
from loopwright.tune.measure.limits import Limits, can_fork, choose_cpus

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are forked on Linux")

FEW = Limits(seconds=20.0, memory=256 << 20)


def run(work, limits: Limits = FEW, stage: str = "build"):
    (result,) = run_children([work], limits, stage)
    return result


def test_results_come_back_in_order():
    works = [lambda _, number=number: {"number": number, "process": os.getpid()} for number in range(7)]
    results = run_children(works, FEW, "build", at_once=3)
    assert [result["number"] for result in results] == list(range(7))
    assert len({result["process"] for result in results} | {os.getpid()}) == 8


def test_large_results_come_back():
    assert run(lambda _: b"x" * 5_000_000) == b"x" * 5_000_000


def test_what_is_raised_is_a_failure():
    def fail(_):
        raise ValueError("it is broken\nin two lines")

    assert run(fail) == Failure("build error", "build: ValueError: it is broken", "it is broken\nin two lines")
    assert run(fail, stage="run").kind == "run error"
    assert run(lambda _: lambda: 0).kind == "build error"  # nothing that can be sent
    assert all(failure in KINDS for failure in ("build error", "run error", "signal", "crash", "memory"))


def test_a_crash_costs_one_child():
    def crash(_):
        ctypes.string_at(0)

    def leave(_):
        os.write(2, b"so long")
        os._exit(7)

    fine, crashed, left = run_children([lambda _: 1, crash, leave], FEW, "build", at_once=2)
    assert fine == 1
    assert (crashed.kind, crashed.message) == ("signal", "build: the process was killed by SIGSEGV")
    assert left == Failure("crash", "build: the process ended with status 7", "so long")


def test_a_child_that_hangs_is_killed():
    def hang(_):
        while True:
            pass

    begin = time.monotonic()
    hung, fine = run_children([hang, lambda _: "fine"], Limits(0.3), "build", at_once=2)
    assert hung == Failure("build timeout", "build: not finished within 0.3 s", "")
    assert fine == "fine" and time.monotonic() - begin < 15


def test_each_stage_has_its_time():
    def slow(report):
        report("load", 20.0)
        time.sleep(0.4)
        report("run", 0.2)
        time.sleep(30)

    assert run(slow, Limits(0.3)) == Failure("run timeout", "run: not finished within 0.2 s", "")


def test_a_child_that_eats_memory_is_stopped():
    def eat(_):
        kept = []
        while True:
            kept.append(bytearray(1 << 24))

    assert run(eat).kind == "memory"


def test_memory_that_llvm_does_not_get_is_a_matter_of_memory():
    def abort(_):
        os.write(2, b"LLVM ERROR: out of memory\nAllocation failed\n")
        os.abort()

    assert run(abort).kind == "memory"


def test_children_are_pinned():
    cpus = choose_cpus(1)
    assert run(lambda _: sorted(os.sched_getaffinity(0)), Limits(20.0, cpus=cpus)) == list(cpus)
    allowed = os.sched_getaffinity(0)
    assert set(choose_cpus(len(allowed) + 3)) == allowed
    assert {choose_cpus(1, turn)[0] for turn in range(len(allowed))} == allowed


def test_whoever_wants_no_more_results_ends_the_children(tmp_path):
    def wait(_):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(30)

    results = each_child([lambda _: 0, wait, wait], FEW, "build", at_once=3)
    assert next(results) == (0, 0)
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.01)
    results.close()
    for file in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.name), 0)


def test_a_large_result_that_waited_for_its_parent_is_heard():
    limits = Limits(0.4, 256 << 20)
    for _ in range(3):
        children = each_child([lambda _: b"x" * (1 << 20), lambda _: b"x" * (70 << 10)], limits, "build", 2)
        time.sleep(0.6)  # longer than a build may take; a pipe holds less than the results
        assert sorted([len(result) for _, result in children]) == [70 << 10, 1 << 20]


def test_a_crew_goes_on_while_one_of_its_groups_is_waited_for(tmp_path):
    def touch(name):
        return lambda _: (tmp_path / name).touch() or name

    def last(_):
        begin = time.monotonic()
        while not (tmp_path / "third").exists() and time.monotonic() - begin < 10:
            time.sleep(0.01)
        return (tmp_path / "third").exists()

    crew = Crew()
    others = each_child([touch("first"), touch("second"), touch("third")], FEW, "build", 1, crew)
    assert run_children([last], FEW, "load", crew=crew) == [True]
    assert list(others) == [(0, "first"), (1, "second"), (2, "third")]


def test_the_groups_of_a_crew_share_their_places():
    def running(_):
        time.sleep(0.05)
        return time.monotonic()

    crew = Crew()
    first = each_child([running] * 3, FEW, "build", 1, crew)
    second = each_child([running] * 2, FEW, "build", 1, crew)
    assert len(second.running) == 0
    ends = [end for _, end in first] + [end for _, end in second]
    assert ends == sorted(ends)
    assert all(later - earlier > 0.045 for earlier, later in pairwise(ends))


def test_who_wants_no_more_results_gives_its_places_to_others():
    crew = Crew()
    first = each_child([lambda _: time.sleep(60)] * 2, FEW, "build", 1, crew)
    second = each_child([lambda _: "fine"], FEW, "build", 1, crew)
    first.close()
    assert list(second) == [(0, "fine")]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
def test_a_crew_leaves_cpus_to_what_is_measured(tmp_path):
    def cpus_until(name):
        def work(_):
            (tmp_path / f"{name} began").touch()
            while not (tmp_path / name).exists():
                time.sleep(0.01)
            return os.sched_getaffinity(0)

        return work

    def measured(_):
        for name in ("first began", "second began"):
            while not (tmp_path / name).exists():
                (tmp_path / "first").touch() if "second" in name else None
                time.sleep(0.01)
        (tmp_path / "second").touch()
        time.sleep(0.1)
        return os.sched_getaffinity(0)

    every, crew = os.sched_getaffinity(0), Crew()
    mine = frozenset(choose_cpus(1))
    builds = each_child([cpus_until("first"), cpus_until("second")], FEW, "build", 1, crew)
    with crew.leaves(mine):
        assert run_children([measured], Limits(20.0, cpus=tuple(mine)), "load", crew=crew) == [mine]
    assert [cpus for _, cpus in builds] == [every - mine, every - mine]
    builds = each_child([cpus_until("third")], FEW, "build", 1, crew)
    with crew.leaves(mine):
        pass
    (tmp_path / "third").touch()
    assert list(builds) == [(0, every)]


def test_children_that_give_way():
    before = os.nice(0)
    assert run(lambda _: os.nice(0), Limits(20.0, nice=3)) == min(before + 3, 19)


def test_a_fork_of_the_parent_lets_children_be():
    children = each_child([lambda _: time.sleep(0.3) or "done"] * 2, FEW, "build", 2)
    process = os.fork()
    if process == 0:
        children.close()
        os._exit(0)
    os.waitpid(process, 0)
    assert [result for _, result in children] == ["done", "done"]


def test_children_die_with_their_parent(tmp_path):
    file = tmp_path / "process"

    def wait(_):
        file.write_text(str(os.getpid()))
        time.sleep(60)

    parent = os.fork()
    if parent == 0:
        try:
            run(wait, Limits(60.0))
        finally:
            os._exit(0)
    while not (file.exists() and file.read_text()):
        time.sleep(0.01)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    child, begin = int(file.read_text()), time.monotonic()
    while time.monotonic() - begin < 10 and _is_running(child):
        time.sleep(0.01)
    assert not _is_running(child)


def _is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_without_forks_it_all_happens_here(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    process, failed = run_children([lambda report: report("run", 1.0) or os.getpid(), lambda _: 1 / 0], FEW, "build")
    assert process == os.getpid()
    assert failed == Failure("build error", "build: ZeroDivisionError: division by zero", "division by zero")
