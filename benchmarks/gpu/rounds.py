"""Times of several contenders, interleaved: every round runs a burst of each, and medians over rounds count.

What the device needs, not the host: each burst is queued behind a kernel that waits, so that the GPU never waits for
Python. Cases of at most half the L2 cache run back to back between two events, over up to four copies of their tensors.
Larger ones find the cache full of other, clean lines: before each call twice the cache is read, outside the events.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Protocol

import torch
from contenders import Call

ROUNDS = 7
_WAIT = 2_000_000  # cycles of the kernel that a burst is queued behind, about a millisecond
_BURST = 1.5e-3  # seconds, for what is not too slow


class Clock(Protocol):
    l2_bytes: int

    def burst(self, call: Call, copies: int, number: int, is_cold: bool) -> float:
        """Seconds of one call, of so many."""
        ...


class GpuClock:
    def __init__(self) -> None:
        self.l2_bytes: int = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or 50 << 20
        self.other = torch.zeros(2 * self.l2_bytes // 4, device="cuda")

    def burst(self, call: Call, copies: int, number: int, is_cold: bool) -> float:
        torch.cuda._sleep(_WAIT)
        pairs = []
        if is_cold:
            for k in range(number):
                self.other.sum()
                start = self._event()
                call(k % copies)
                pairs.append((start, self._event()))
        else:
            start = self._event()
            for k in range(number):
                call(k % copies)
            pairs.append((start, self._event()))
        torch.cuda.synchronize()
        each = [start.elapsed_time(end) * 1e-3 for start, end in pairs]
        return statistics.median(each) if is_cold else each[0] / number

    def _event(self) -> torch.cuda.Event:
        result = torch.cuda.Event(enable_timing=True)
        result.record()
        return result


class HostClock:
    """For trials without a GPU."""

    l2_bytes = 1 << 20

    def burst(self, call: Call, copies: int, number: int, is_cold: bool) -> float:
        start = time.perf_counter()
        for k in range(number):
            call(k % copies)
        return (time.perf_counter() - start) / number


def interleaved(calls: Mapping[str, Call], copies: int, is_cold: bool, clock: Clock, rounds: int) -> dict[str, float]:
    """The median seconds of a call of each contender."""
    numbers = {}
    for name, call in calls.items():
        guess = min([clock.burst(call, copies, 2, is_cold) for _ in range(2)])
        numbers[name] = max(3, min(20 if is_cold else 40, round(_BURST / max(guess, 1e-6))))
    names, times = list(calls), {name: [] for name in calls}  # type: tuple[list[str], dict[str, list[float]]]
    for k in range(rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            times[name].append(clock.burst(calls[name], copies, numbers[name], is_cold))
    return {name: statistics.median(some) for name, some in times.items()}
