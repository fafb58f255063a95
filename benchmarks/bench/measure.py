"""Timing contenders side by side: interleaved samples, in an order that changes, until the budget is used up.

A sample is as many calls as take a millisecond, or one. Each is preceded by an untimed call of the same contender
(unless a call is long), so that everyone starts from its own caches and awake threads rather than from its neighbour's.
"""

from __future__ import annotations

import functools
import gc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter, sleep

from benchmarks.bench.case import Run

LONG_CALL = 0.02  # seconds: from here on a call's own first microseconds do not show


@dataclass(frozen=True)
class Effort:
    """How much measuring a row is worth."""

    budget: float = 2.0  # seconds for all contenders together
    sample: float = 1e-3  # seconds a sample should take at least
    least: int = 5  # rounds that are run in any case
    most: int = 101
    clock: Callable[[], float] = perf_counter  # process_time, for one thread on a machine that others use too
    pause: float = 0.0  # seconds before a sample, in which the threads of the contender before it fall asleep


@dataclass(frozen=True)
class Samples:
    """Seconds per call, one figure a round, and how many calls each figure is the mean of."""

    seconds: list[float]
    calls: int


def measure(contenders: Mapping[str, Run], effort: Effort) -> dict[str, Samples]:
    """The samples of each contender; entry k of every list is from round k."""
    names = list(contenders)
    take = {name: _sampler(run, effort.clock) for name, run in contenders.items()}
    calls: dict[str, int] = {}
    warm: dict[str, bool] = {}
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for name in names:
            estimate = _estimate(contenders[name], take[name], effort)
            calls[name] = max(1, math.ceil(effort.sample / max(estimate, 1e-9)))
            warm[name] = estimate < LONG_CALL
        seconds: dict[str, list[float]] = {name: [] for name in names}
        start = perf_counter()
        for done in range(effort.most):
            spent = perf_counter() - start
            # The next round costs about as much as those before it.
            if done >= effort.least and spent * (done + 1) / done > effort.budget:
                break
            for name in _order(names, done):
                if effort.pause:
                    sleep(effort.pause)
                seconds[name].append(take[name](calls[name], warm[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: Samples(seconds[name], calls[name]) for name in names}


def _order(names: list[str], done: int) -> list[str]:
    """Balanced for what a contender leaves to the next: over some rounds, everyone is directly after everyone else, and
    in every place, equally often (Williams' design: 2 n rounds for an odd number n of contenders, n for an even one).

    Rounds that only turn in a circle would have each one always after the same neighbour: a kernel after a single
    thread's long call was up to a fifth slower than after one that had kept all cores awake.
    """
    count = len(names)
    zigzag = [(step + 1) // 2 if step % 2 else -(step // 2) for step in range(count)]  # 0, 1, -1, 2, -2 …
    order = [names[(place + done) % count] for place in zigzag]
    return order[::-1] if count % 2 and (done // count) % 2 else order


def _sampler(run: Run, clock: Callable[[], float]) -> Callable[[int, bool], float]:
    """What takes a sample: a contender in another process takes its own, so that talking to it is not timed."""
    own: Callable[[int, bool], float] | None = getattr(run, "sample", None)
    return own if own is not None else functools.partial(sample, run, clock=clock)


def _estimate(run: Run, take: Callable[[int, bool], float], effort: Effort) -> float:
    """Seconds per call, from as many calls as make up a sample; the first calls warm up."""
    run()
    calls = 1
    while True:
        taken = take(calls, False)
        if taken * calls >= effort.sample / 2 or calls >= 1 << 16:
            return taken
        calls *= 4


def sample(run: Run, calls: int, warm: bool, clock: Callable[[], float] = perf_counter) -> float:
    """Seconds per call, over that many of them; `warm` makes one more beforehand."""
    if warm:
        run()
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls
