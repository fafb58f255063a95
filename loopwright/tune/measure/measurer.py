"""Measurer: what a search asks to build and time candidates; whatever they do, it answers with data.

measurer = Measurer(target, threads=2, seed=0)
first, *others = measurer.build(task, jobs)
measurer.measure_alone(task, first)             seconds of the rule's own schedule
measurer.race(task, first, others[0])           interleaved, dropped as soon as it is known to be slower
measurer.finalists(task, [first, *best])        the best few once more, fresh
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

import numpy as np

from loopwright.autosched.machine import Machine
from loopwright.runtime import thread_pool
from loopwright.runtime.timing import timed_loop
from loopwright.schedule import Schedule
from loopwright.target import Target, describe
from loopwright.tune.measure.arguments import Arguments, given_arguments, make_arguments, require_room
from loopwright.tune.measure.as_written import least_seconds
from loopwright.tune.measure.builder import BuildJob, Built, build_here, build_jobs
from loopwright.tune.measure.children import Crew, Work, run_children
from loopwright.tune.measure.compare import Reference, reference
from loopwright.tune.measure.errors import BadMeasureOption, CannotMeasureHere, NothingToRace
from loopwright.tune.measure.failure import Failure
from loopwright.tune.measure.flush import STATES, l2_walk
from loopwright.tune.measure.limits import Limits, can_fork, choose_cpus
from loopwright.tune.measure.noise import Drift
from loopwright.tune.measure.race import medians
from loopwright.tune.measure.runner import Setting, Timed, finals, measure, race, run_once, together
from loopwright.tune.task import Task

_MOST_NOT_FINITE: Final = 0.01  # share of a result: with more, little is compared
_SAME_PROCESS: Final = "measured in the process of the search: a candidate that crashes would end it"
_MOST_HELD: Final = 1 << 30  # bytes of arguments and results of several tasks
_LONGER: Final = 4  # times the budget of a race in which each sample walks through memory
_FRESH: Final = 3  # processes that finalists are measured in, one after the other


@dataclass(frozen=True)
class Measured:
    """What was measured of a challenger; seconds are those of one call, one for each sample."""

    seconds: tuple[float, ...] = ()
    incumbent_seconds: tuple[float, ...] = ()
    ratio: float = 0.0  # how many times faster than the incumbent; and where that lies with confidence
    low: float = 0.0
    high: float = 0.0
    noise: float = 0.0  # how far from 1 the incumbent raced against itself may be
    verdict: str = ""  # "faster", "slower", "equal" or, when the budget was spent before that was known, "open"
    checked: bool = False  # its results are those of the reference
    failure: Failure | None = None
    note: str = ""  # load, drift, what the results were compared with

    @property
    def median(self) -> float:
        """Seconds of one call; infinite where it failed."""
        return median(self.seconds) if self.seconds else float("inf")

    @property
    def is_faster(self) -> bool:
        """Whether it is faster than the incumbent, and not by luck."""
        return self.failure is None and self.low > 1


@dataclass
class _TaskState:
    """What is known of a task that was measured before."""

    arguments: Arguments
    reference: Reference | None
    note: str = ""  # on the reference
    drifts: dict[str, Drift] = field(default_factory=dict)
    noise: dict[str, float] = field(default_factory=dict)  # of each incumbent, from its last long race
    waited: float = 0.0  # seconds, for a machine that had become slower

    @property
    def size(self) -> int:
        """Bytes of its arrays."""
        bounds = [] if self.reference is None else [*self.reference.values, *self.reference.allowed]
        return sum([array.nbytes for array in (*self.arguments.values, *bounds) if isinstance(array, np.ndarray)])


class Measurer:
    """Builds and times candidates of tasks for one target, in processes with limits."""

    def __init__(
        self,
        target: Target | str,
        threads: int | None = None,
        cache: str = "warm",
        timeout: float = 10.0,
        build_timeout: float = 30.0,
        memory: int = 4 << 30,
        seed: int = 0,
        processes: int | None = None,
        pin: bool = True,
        budget: float = 0.5,
        patience: float = 2.0,
        reference_timeout: float = 3.0,
        arguments: Callable[[Task], Sequence[Any]] | None = None,
    ) -> None:
        """`timeout` is for one run, `budget` the seconds of samples that a race may take, `memory` bytes of a process.

        `processes` build at once (by default as many as a parallel loop has threads). `patience` says how many seconds
        a task waits for a machine that has become slower, `reference_timeout` how many the program as written may run
        to give the reference (else the first candidate gives it). `cache` says what caches hold when a sample begins
        (`flush.py`). `arguments` gives the arguments of a task; by default
        they are drawn at random from `seed`.
        """
        self.target = target if isinstance(target, Target) else Target(target)
        _check("cache", cache, cache in STATES, 'it is "warm", "model" or "cold"')
        amounts = {"timeout": timeout, "build_timeout": build_timeout, "memory": memory, "budget": budget}
        for name, value in amounts.items():
            _check(name, value, value > 0, "give a number above 0")
        for name, count in {"threads": threads, "processes": processes}.items():
            _check(name, count, count is None or 1 <= count <= thread_pool.MAX_THREADS, "give a count from 1 to 1024")
        _require_here(self.target)
        self.threads = thread_pool.num_threads() if threads is None else threads
        self.processes = thread_pool.num_threads() if processes is None else processes
        self.cache, self.seed, self.patience = cache, seed, patience
        longer = _LONGER if cache == "cold" else 1
        walk = l2_walk(self.target, self.threads) if cache == "model" else None
        self._setting = Setting(self.target, self.threads, cache, longer * budget, timeout, walk)
        self._reference_setting = replace(self._setting, timeout=min(timeout, reference_timeout))
        self._build_limits = Limits(build_timeout, memory)
        # Where a CPU is left over beside those that are measured on, candidates are built there meanwhile.
        self._crew = Crew()
        self._has_spare_cpu = can_fork() and self.threads < len(os.sched_getaffinity(0))
        self._memory, self._pin, self._turn = memory, pin and can_fork(), 0
        self._given = arguments
        self._states: dict[str, _TaskState] = {}
        self._known: dict[str, set[str]] = {}  # digests of what was built, by task
        _load_before_forks(self.target)

    @property
    def settings(self) -> dict[str, Any]:
        """What a record says of how it was measured."""
        return {"threads": self.threads, "cache": self.cache}

    def build(self, task: Task, jobs: Sequence[BuildJob]) -> list[Built]:
        """What became of each job; a program that was built before has the failure "duplicate"."""
        results = [Built() for _ in jobs]
        for number, built in self.build_each(task, jobs):
            results[number] = built
        return results

    def build_each(self, task: Task, jobs: Sequence[BuildJob]) -> Generator[tuple[int, Built], None, None]:
        """The same, as they are finished; the first ones begin before they are asked for."""
        known = self._digests(task)
        done = build_jobs(jobs, self.target, self._build_limits, self.processes, frozenset(known), self._crew)
        return _without_twins(done, known)

    def measure_alone(self, task: Task, built: Built) -> Measured:
        """The seconds of one program, checked against the reference, and its noise: it is raced against itself."""
        _require_code(built)
        state = self._state(task, built)

        def work(report: Callable[[str, float], None]) -> Timed | Failure:
            return measure(report, self._setting, state.arguments, built, state.reference)

        (timed,) = self._run(work, "load")
        return self._measured(state, built, timed)

    def race(self, task: Task, incumbent: Built, challenger: Built) -> Measured:
        """The challenger, checked, in interleaved pairs with the incumbent until it is known who is faster."""
        _require_code(incumbent)
        _require_code(challenger)
        state = self._state(task, incumbent)
        result = self._race_once(state, incumbent, challenger)
        drift = state.drifts.get(incumbent.digest)
        if result.failure is None and drift is not None and drift.has_drifted:
            waited = self._wait_out(state, incumbent, drift)
            note = drift.note() or "the machine was slower for a while"
            if drift.has_drifted:
                drift.accept()  # waiting longer for each candidate would not help
            else:
                result = self._race_once(state, incumbent, challenger)
            note = f"{note} (waited {waited:.1f} s)"
            result = replace(result, note="; ".join(filter(None, [result.note, note])))
        return result

    def finalists(self, task: Task, built: Sequence[Built]) -> list[tuple[int, Measured]]:
        """The best few, measured afresh and interleaved, with their indices: the fastest first.

        Ratios are those to `built[0]`, the incumbent. All of them were raced before.
        """
        if not built:
            return []
        for one in built:
            _require_code(one)
        state = self._state(task, built[0])
        usual = self._usual(state, built[0])

        share = replace(self._setting, budget=self._setting.budget / _FRESH)

        def work(report: Callable[[str, float], None]) -> list[Timed]:
            return finals(report, share, state.arguments, built, usual)

        heats = [self._run(work, "load")[0] for _ in range(_FRESH)]
        if any([isinstance(heat, Failure) for heat in heats]):  # one of them: each by itself shows which
            results = [self.measure_alone(task, built[0])]
            results += [self.race(task, built[0], one) for one in built[1:]]
        else:
            results = [self._measured(state, built[0], together(timed)) for timed in zip(*heats, strict=True)]
        return sorted(enumerate(results), key=lambda result: -_standing(result[1]))

    def require_measurable(self, task: Task) -> None:
        """Refuse a task that no arguments can be made up for, or none that a process has room for."""
        if self._given is None:
            require_room(task, self._memory)

    # --- what they share ---

    def _race_once(self, state: _TaskState, incumbent: Built, challenger: Built) -> Measured:
        usual = self._usual(state, incumbent)

        def work(report: Callable[[str, float], None]) -> Timed | Failure:
            return race(report, self._setting, state.arguments, incumbent, challenger, usual, state.reference)

        (timed,) = self._run(work, "load")
        return self._measured(state, incumbent, timed)

    def _usual(self, state: _TaskState, incumbent: Built) -> float:
        """Seconds that a call of the incumbent takes, as far as that is known."""
        drift = state.drifts.get(incumbent.digest)
        return self._setting.timeout if drift is None else drift.best

    def _measured(self, state: _TaskState, incumbent: Built, timed: Timed | Failure) -> Measured:
        notes = [state.note, "" if can_fork() else _SAME_PROCESS]
        if isinstance(timed, Failure):
            return Measured(failure=timed, note="; ".join(filter(None, notes)))
        if timed.itself is not None:
            state.noise[incumbent.digest] = timed.itself.half_width
        before, _ = medians(timed.race)
        state.drifts.setdefault(incumbent.digest, Drift()).observe(before)
        if timed.load.is_disturbed:
            self._turn += 1  # other CPUs may be less busy
        ratio, low, high = timed.race.interval()
        return Measured(
            tuple(timed.race.challenger),
            tuple(timed.race.incumbent),
            ratio,
            low,
            high,
            state.noise.get(incumbent.digest, 0.0),
            timed.verdict,
            state.reference is not None,
            None,
            "; ".join(filter(None, [*notes, timed.load.note()])),
        )

    def _wait_out(self, state: _TaskState, built: Built, drift: Drift) -> float:
        """Wait while the machine is slower than it was, as long as there is patience; the seconds waited.

        Pairs are right on a slow machine, too: one that stays slow takes a task's patience once, not candidate by
        candidate.
        """
        start, pause, patience = time.monotonic(), 0.5, self.patience - state.waited
        short = replace(self._setting, budget=min(0.1, self._setting.budget))

        def work(report: Callable[[str, float], None]) -> Timed | Failure:
            return measure(report, short, state.arguments, built, None)

        while drift.has_drifted and time.monotonic() - start + pause <= patience:
            time.sleep(pause)
            pause *= 2
            (timed,) = self._run(work, "load")
            if isinstance(timed, Failure):
                break
            drift.observe(medians(timed.race)[0])
        waited = time.monotonic() - start
        state.waited += waited
        return waited

    def _run(self, work: Work, stage: str) -> list[Any]:
        cpus = choose_cpus(self.threads, self._turn * self.threads) if self._pin else None
        limits = Limits(self._setting.timeout, self._memory, cpus)
        if not self._has_spare_cpu:
            return run_children([work], limits, stage)
        with self._crew.leaves(cpus or ()):
            return run_children([work], limits, stage, crew=self._crew)

    def _digests(self, task: Task) -> set[str]:
        return self._known.setdefault(task.key, set())

    # --- what results are compared with ---

    def _state(self, task: Task, first: Built) -> _TaskState:
        """The arguments of a task and the results that are right."""
        state = self._states.pop(task.key, None)
        if state is None:
            state = self._prepared(task, first)
        self._states[task.key] = state  # the last one used comes last
        while len(self._states) > 1 and sum([one.size for one in self._states.values()]) > _MOST_HELD:
            del self._states[next(iter(self._states))]
        return state

    def _prepared(self, task: Task, first: Built) -> _TaskState:
        written = self._written(task)
        source, why = (first, written) if isinstance(written, str) else (written, "")
        self.require_measurable(task)
        arguments = make_arguments(task, self.seed) if self._given is None else given_arguments(task, self._given(task))
        outputs = self._outputs(source, arguments)
        if isinstance(outputs, Failure) and source is not first:
            source, why = first, f"the program as written was not run ({outputs.message})"
            outputs = self._outputs(source, arguments)
        if not isinstance(outputs, Failure) and self._given is None and not _is_finite(outputs):
            positive = make_arguments(task, self.seed, positive=True)
            again = self._outputs(source, positive)
            if not isinstance(again, Failure):
                arguments, outputs = positive, again
        _ = arguments.template  # made before any fork
        if isinstance(outputs, Failure):
            return _TaskState(arguments, None, f"results were not compared ({outputs})")
        absolute = self._outputs(first, arguments.absolute())
        known = reference(task.function, outputs, None if isinstance(absolute, Failure) else absolute)
        note = f"results were compared with those of the first candidate: {why}" if source is first else ""
        return _TaskState(arguments, known, note)

    def _written(self, task: Task) -> Built | str:
        """The program as it is written, built; or why not."""
        least, most = least_seconds(task.function, Machine.of(self.target)), self._reference_setting.timeout
        if least > most:
            return f"the program as written would run for {least:.2g} s at least, and may for {most:.2g}"
        ((_, built),) = build_jobs([BuildJob(lambda: task.mod)], self.target, self._build_limits, 1)
        return built if built.failure is None else f"the program as written was not built ({built.failure})"

    def _outputs(self, built: Built, arguments: Arguments) -> list[np.ndarray] | Failure:
        """The results of one run."""
        outputs: list[np.ndarray] | Failure
        (outputs,) = self._run(lambda report: run_once(report, self._reference_setting, built, arguments), "load")
        return outputs


def _without_twins(
    done: Generator[tuple[int, Built], None, None], known: set[str]
) -> Generator[tuple[int, Built], None, None]:
    """A program that was built at the same time as its twin is a duplicate, too; the others become known."""
    for number, built in done:
        if built.failure is None and built.digest in known:
            why = Failure("duplicate", "the scheduled program is one that was built before", built.digest)
            built = replace(built, failure=why, object_bytes=b"")
        elif built.failure is None:
            known.add(built.digest)
        yield number, built


def _is_finite(outputs: Sequence[np.ndarray]) -> bool:
    for output in outputs:
        if output.dtype.kind in "fV":
            numbers = output.astype(np.float64)
            if np.count_nonzero(~np.isfinite(numbers)) > _MOST_NOT_FINITE * numbers.size:
                return False
    return True


def _standing(measured: Measured) -> float:
    if measured.failure is not None:
        return -1.0
    return measured.ratio


def _require_code(built: Built) -> None:
    if built.failure is not None:
        raise NothingToRace(str(built.failure))
    if not built.object_bytes:
        raise NothingToRace("it has no object code")


def _check(option: str, given: object, is_fine: bool, hint: str) -> None:
    if not is_fine:
        raise BadMeasureOption(option, given, hint)


def _require_here(target: Target) -> None:
    from loopwright.codegen.llvm.load_object import CodeNotForHost, require_runnable

    if target.kind == "c":
        raise CannotMeasureHere(str(target), "it is C text for another compiler")
    try:
        require_runnable(describe(target))
    except CodeNotForHost as error:
        raise CannotMeasureHere(str(target), str(error.args[0])) from None


def _load_before_forks(target: Target) -> None:
    """What every child needs is loaded once, here: compiling, linking and calling a program does that."""
    from loopwright import te

    program = te.create_prim_func([te.compute((1,), lambda i: te.const(0.0, "float32"))])
    built = build_here(BuildJob(lambda: Schedule(program)), target)
    timed_loop(built.load(target).entry_func, (np.zeros(1, np.float32),))(1)
