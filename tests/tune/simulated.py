"""A measurer that measures nothing: seconds follow from the decisions, so that a search can be tested by itself."""

from __future__ import annotations

import functools
import json
import zlib

from loopwright import te
from loopwright.ir import IRModule
from loopwright.target import Target
from loopwright.tune import Candidate, RuleSpace, Task
from loopwright.tune.measure import Built, Failure, Measured

TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1")


@functools.cache
def gemm_task(m: int = 49, n: int = 200, k: int = 96, weight: float = 1.0, target: Target = TARGET) -> Task:
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return Task(f"{m}×{k}×{n}", IRModule({"main": te.create_prim_func([A, B, C])}), target, weight)


class _Steps:
    """Stands for a schedule: nobody builds it, and its trace tells candidates apart."""

    def __init__(self, candidate: Candidate) -> None:
        self.trace = self
        self.candidate = candidate

    def as_json(self):
        return [[["GetBlock", [], [repr(self.candidate.choices), "main"], ["b0"]]], []]


class QuickSpace(RuleSpace):
    """The decisions of the rules, of which no schedules are made."""

    def schedule(self, candidate):
        return _Steps(candidate)


def quick_spaces(task: Task) -> list[RuleSpace]:
    return [_quick_space(task.key, task)]


@functools.cache
def _quick_space(key: str, task: Task) -> RuleSpace:
    return QuickSpace(task)


class Simulated:
    """Candidates take from 0.7 to 1.3 ms, as their text says; some fail."""

    settings = {"threads": 1, "cache": "warm"}

    def __init__(self, failing: float = 0.1, luck: float = 0.0) -> None:
        self.failing, self.luck = failing, luck
        self.raced: list[str] = []

    def require_measurable(self, task): ...

    def build(self, task, jobs):
        return [built for _, built in self.build_each(task, jobs)]

    def build_each(self, task, jobs):
        for number, job in enumerate(jobs):
            sch = job.make()
            trace = sch.trace.as_json()
            digest = f"{zlib.crc32(json.dumps(trace).encode()):08x}"
            fails = int(digest, 16) % 1000 < 1000 * self.failing and self.raced
            failure = Failure("signal", "run: the process was killed by SIGSEGV") if fails else None
            yield number, Built(b"" if fails else digest.encode(), "", False, trace, digest, {"schedule": 0.1}, failure)

    def seconds(self, built) -> float:
        return 1e-3 * (0.7 + int(built.digest, 16) % 600 / 1000)

    def measure_alone(self, task, built):
        self.raced.append(built.digest)
        took = self.seconds(built)
        return Measured((took,) * 5, (took,) * 5, 1.0, 0.99, 1.01, 0.01, "open", True)

    def race(self, task, incumbent, challenger):
        self.raced.append(challenger.digest)
        before, took = self.seconds(incumbent), self.seconds(challenger)
        ratio = before / took
        return Measured((took,) * 5, (before,) * 5, ratio, ratio * 0.99, ratio * 1.01, 0.01, "open", True)
