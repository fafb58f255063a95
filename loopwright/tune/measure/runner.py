"""runner: what the process that runs candidates does: load, run once, compare, time interleaved samples.

It is a fork that lives for one race, so whatever a candidate does to its memory is gone with it. `report` says before
each stage how long it may take; beyond that the parent kills it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from loopwright.runtime import thread_pool
from loopwright.runtime.timing import timed_loop
from loopwright.target import Target
from loopwright.tune.measure.arguments import Arguments, Call
from loopwright.tune.measure.builder import Built
from loopwright.tune.measure.children import Report
from loopwright.tune.measure.compare import Reference
from loopwright.tune.measure.failure import Failure
from loopwright.tune.measure.flush import Flush, flush_all, flush_l2
from loopwright.tune.measure.noise import Load, LoadMeter
from loopwright.tune.measure.race import COPIES, Interval, Race, against_itself, copy_of

if TYPE_CHECKING:
    from loopwright.codegen.llvm.native_module import CompiledModule
    from loopwright.runtime.ffi import PackedFunction

_SAMPLE: Final = 3e-4  # seconds that a sample lasts at least
_LONG_SAMPLE: Final = 3e-3  # that of a contender which is slower than another
_LONG_CALL: Final = 0.02  # of which there is one in a sample
_MOST_CALLS: Final = 1 << 20
_MUCH_SLOWER: Final = 1.4  # times the incumbent: one pair with the first run, of long calls, is enough
_SLOWER_IF_LONG: Final = 1.11  # the same where a pair takes a large share of the budget
_SLOWEST: Final = 20.0  # times the incumbent: what takes longer is not waited for
_LEAST: Final = 5  # samples where nobody is dropped


@dataclass(frozen=True)
class Setting:
    """How candidates are run."""

    target: Target
    threads: int
    cache: str  # one of flush.STATES
    budget: float  # seconds of samples
    timeout: float  # seconds of a first run
    walk: Built | None = None  # what flushes L2, where that is wanted


@dataclass(frozen=True)
class Timed:
    """What a race or a measurement saw: samples as seconds of one call."""

    race: Race
    verdict: str
    itself: Interval | None  # the incumbent against itself; None where there are too few samples
    load: Load
    first_run: float = 0.0  # seconds of the challenger's


class _Contender:
    """One loaded program, called on arguments that all contenders share.

    It is loaded several times, and samples are taken of all copies: where code lies in memory may matter by some
    percent, now and then by twenty.
    """

    def __init__(self, built: Built, call: Call, setting: Setting, flush: Flush | None) -> None:
        self.built, self.call, self.target = built, call, setting.target
        self.modules: list[CompiledModule] = []
        self.loops: list[Callable[[int], int]] = []
        self.load()
        self.calls, self.call_seconds = 1, 0.0
        self.flush = flush
        self.clock = time.thread_time_ns if setting.threads == 1 else None
        self.first_outputs: list[bytes] = []

    @property
    def function(self) -> PackedFunction:
        return self.modules[0].entry_func

    def load(self) -> None:
        """Load one more copy."""
        self.modules.append(self.built.load(self.target))
        self.loops.append(timed_loop(self.modules[-1].entry_func, self.call.values))

    def warm_up(self) -> None:
        """Settle how many calls make a sample, where caches need not be cold."""
        loop, self.calls = self.loops[0], 1
        if not self.call_seconds:
            self.call_seconds = loop(1) / 1e9
        # A first call meets pages that are not mapped yet, and seems to last long: it only counts where it really does.
        while self.flush is None and self.call_seconds < _LONG_CALL:
            seconds = max(loop(self.calls), 1) / 1e9
            self.call_seconds = seconds / self.calls
            if seconds >= _SAMPLE or self.calls >= _MOST_CALLS:
                break
            wanted = _SAMPLE / self.call_seconds * 1.05
            self.calls = min(_MOST_CALLS, max(self.calls + 1, math.ceil(min(wanted, self.calls * 64))))
        spare = int(_LONG_CALL / max(self.call_seconds, 1e-9))
        self.loops = self.loops[: 1 + spare]  # a long run does not depend on where its code lies
        for loop in self.loops[1:]:
            loop(1)

    def sample(self, copy: int) -> float:
        """Seconds of one call: of the processor, where one thread does all the work, else of the clock."""
        if self.flush is not None:
            self.flush()
        return self._seconds(self.loops[copy % len(self.loops)], self.calls) / self.calls

    def first_call(self) -> float:
        """The same of the first call, whatever is in the caches."""
        self.call_seconds = self._seconds(self.loops[0], 1)
        return self.call_seconds

    def _seconds(self, loop: Callable[[int], int], calls: int) -> float:
        if self.clock is None:
            return max(loop(calls) / 1e9, 1e-9)
        start = self.clock()
        loop(calls)
        return max((self.clock() - start) / 1e9, 1e-9)


def race(
    report: Report,
    setting: Setting,
    arguments: Arguments,
    incumbent: Built,
    challenger: Built,
    usual: float,
    reference: Reference | None,
) -> Timed | Failure:
    """The challenger checked and raced; `usual` is what a call of the incumbent is known to take."""
    _set_up(setting)
    patience = min(setting.timeout, max(1.0, _SLOWEST * usual))
    call = arguments.fresh()
    flush = _flush(setting)
    report("load", setting.timeout)
    contender = _Contender(challenger, call, setting, flush)
    first_run, failure = _checked(report, contender, call, reference, patience)
    if failure is not None:
        return failure
    report("time", setting.timeout + 4 * setting.budget + 16 * patience)
    first = _Contender(incumbent, call, setting, flush)
    result, meter = Race(setting.budget), LoadMeter()
    _load_in_turn([first, contender])
    if _LONG_CALL <= usual < setting.timeout:  # what a long call pays the first time is nothing beside it
        first.call_seconds = usual
        behind = _SLOWER_IF_LONG if result.is_long(2 * usual) else _MUCH_SLOWER
        if contender.call_seconds > behind * usual and setting.cache == "warm":
            sample = first.sample(0)
            if contender.call_seconds > behind * sample:
                result.add(sample, contender.call_seconds)
                return Timed(result, "slower", None, meter.read(), first_run)
            result.add(sample, contender.sample(0))
    _warm_up([first, contender])
    while (verdict := result.verdict()) is None:
        (one_of_first, one_of_other), spent = _round([first, contender], len(result.challenger))
        result.add(one_of_first, one_of_other, spent)
    load = meter.read()
    # One more long run is only for who may win.
    may_win = verdict != "slower" and (usual < _LONG_CALL or result.interval().low > 1)
    failure = _settled(report, contender, call, arguments, patience) if may_win else None
    if failure is not None:
        return failure
    return Timed(result, verdict, against_itself(result.incumbent), load, first_run)


def measure(
    report: Report, setting: Setting, arguments: Arguments, built: Built, reference: Reference | None
) -> Timed | Failure:
    """One program checked and timed: as challenger and incumbent it is raced against itself."""
    _set_up(setting)
    call, flush = arguments.fresh(), _flush(setting)
    report("load", setting.timeout)
    first = _Contender(built, call, setting, flush)
    first_run, failure = _checked(report, first, call, reference, setting.timeout)
    if failure is not None:
        return failure
    patience = max(1.0, 4 * first_run)
    report("time", setting.timeout + 4 * setting.budget + 16 * patience)
    twin = _Contender(built, call, setting, flush)
    _load_in_turn([first, twin])
    _warm_up([first, twin])
    result, meter = Race(setting.budget), LoadMeter()
    while len(result.challenger) < _LEAST or not result.is_over:
        (one, other), spent = _round([first, twin], len(result.challenger))
        result.add(one, other, spent)
    load = meter.read()
    failure = _settled(report, first, call, arguments, patience)
    if failure is not None:
        return failure
    return Timed(result, "open", result.interval(), load, first_run)


def finals(
    report: Report, setting: Setting, arguments: Arguments, builts: Sequence[Built], usual: float
) -> list[Timed]:
    """All of them interleaved, without dropping any: each as a challenger of the first, which is raced against itself.

    They were checked when they were raced.
    """
    _set_up(setting)
    call, flush = arguments.fresh(), _flush(setting)
    budget = setting.budget * len(builts)
    report("load", setting.timeout)
    contenders = [_Contender(built, call, setting, flush) for built in (builts[0], *builts)]
    report("time", setting.timeout + 4 * budget + 16 * len(contenders) * max(1.0, _SLOWEST * usual))
    _load_in_turn(contenders)
    _warm_up(contenders)
    races, meter = [Race(budget) for _ in builts], LoadMeter()
    while len(races[0].challenger) < _LEAST or not races[0].is_over:
        (first, *others), spent = _round(contenders, len(races[0].challenger))
        for result, seconds in zip(races, others, strict=True):
            result.add(first, seconds, spent)
    load, itself = meter.read(), races[0].interval()
    return [Timed(result, "open", itself, load) for result in races]


def together(heats: Sequence[Timed]) -> Timed:
    """What several processes saw of one challenger."""
    whole = Race(sum([heat.race.budget for heat in heats]))
    for heat in heats:
        for incumbent, challenger in zip(heat.race.incumbent, heat.race.challenger, strict=True):
            whole.add(incumbent, challenger)
    busiest = max([heat.load for heat in heats], key=lambda load: load.waited + load.stolen)
    itself = [heat.itself for heat in heats if heat.itself is not None]
    return Timed(whole, "open", max(itself, key=lambda one: one.half_width, default=None), busiest)


def run_once(report: Report, setting: Setting, built: Built, arguments: Arguments) -> list[np.ndarray] | Failure:
    """The outputs of one run."""
    _set_up(setting)
    report("load", setting.timeout)
    call, function = arguments.fresh(), built.load(setting.target).entry_func
    report("run", setting.timeout)
    timed_loop(function, call.values)(1)
    damage = call.damage()
    if damage is not None:
        return Failure("out of bounds", f"run: {damage}")
    report("send", 60 + setting.timeout)
    return [np.array(output) for output in call.outputs]


def _load_in_turn(contenders: Sequence[_Contender]) -> None:
    """The other copies of each, in the one order and in the other: what is loaded early lies better, now and then."""
    for number in range(1, COPIES):
        for one in contenders if number % 2 else reversed(contenders):
            one.load()


def _warm_up(contenders: Sequence[_Contender]) -> None:
    """Samples of all are of as many calls: the first one of a sample costs more. Only what is much slower has fewer."""
    for one in contenders:
        one.warm_up()
    calls = max([one.calls for one in contenders])
    for one in contenders:
        if one.call_seconds:
            one.calls = min(calls, max(one.calls, math.ceil(_LONG_SAMPLE / one.call_seconds)))


def _round(contenders: Sequence[_Contender], number: int) -> tuple[list[float], float]:
    """A sample of each, beginning with another one each time, in the one direction and in the other.

    All samples of a round are of one copy.
    """
    count, begin = len(contenders), perf_counter()
    order = [(number // 2 + k) % count for k in range(count)]
    seconds = [0.0] * count
    for position in order if number % 2 == 0 else reversed(order):
        seconds[position] = contenders[position].sample(copy_of(number))
    return seconds, perf_counter() - begin


def _checked(
    report: Report, contender: _Contender, call: Call, reference: Reference | None, patience: float
) -> tuple[float, Failure | None]:
    """What the first run takes, and what is wrong with its results."""
    report("run", patience)
    begin = perf_counter()
    contender.first_call()
    seconds = perf_counter() - begin
    report("compare", 60 + patience)
    contender.first_outputs = [output.tobytes() for output in call.outputs]
    damage = call.damage()
    if damage is not None:
        return seconds, Failure("out of bounds", f"run: {damage}")
    problem = None if reference is None else reference.difference(call.outputs)
    return seconds, None if problem is None else Failure("wrong result", problem)


def _settled(
    report: Report, contender: _Contender, call: Call, arguments: Arguments, patience: float
) -> Failure | None:
    """After many runs: is the memory around arrays untouched, and does a run give the bits of the first?"""
    damage = call.damage()
    if damage is not None:
        return Failure("out of bounds", f"run: {damage}")
    report("run again", 60 + patience)
    again = arguments.fresh()
    timed_loop(contender.function, again.values)(1)
    same = [output.tobytes() for output in again.outputs] == contender.first_outputs
    return None if same else Failure("not deterministic", "two runs on the same inputs differ")


def _set_up(setting: Setting) -> None:
    thread_pool.set_num_threads(setting.threads)


def _flush(setting: Setting) -> Flush | None:
    """What is done before each sample, where the caches are not to be as the last call left them."""
    if setting.cache == "cold":
        return flush_all(setting.target)
    return None if setting.walk is None else flush_l2(setting.walk, setting.target, setting.threads)
