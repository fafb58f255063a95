"""`runtime.profiling`: reports of runs (`contrib/debugger/report.py`), and what a single function took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

from loopwright.contrib.debugger.report import Report, report_of
from loopwright.runtime.errors import NotBuilt

__all__ = ["DeviceWrapper", "MetricCollector", "PAPIMetricCollector", "Report", "profile_function", "report_of"]


class MetricCollector:
    """What measures something else than time; there are none here yet."""


class PAPIMetricCollector(MetricCollector):
    """The counters of the processor; not built."""

    def __init__(self, metric_names: object = None) -> None:
        raise NotBuilt("profiling by the processor's counters (PAPI)", "time is measured without it")


@dataclass(frozen=True)
class DeviceWrapper:
    """A device, for those who ask for one to hold."""

    device: object


def profile_function(
    mod: Any,
    dev: object,
    collectors: Sequence[MetricCollector] = (),
    func_name: str | None = None,
    warmup_iters: int = 10,
) -> Callable[..., dict[str, Any]]:
    """A function that runs one of the module's functions and says what it took."""
    function = mod[func_name or mod.entry_name]

    def measured(*args: object) -> dict[str, Any]:
        for _ in range(warmup_iters):
            function(*args)
        times = []
        for _ in range(5):
            begin = perf_counter_ns()
            function(*args)
            times.append((perf_counter_ns() - begin) / 1e3)
        return {"Duration (us)": median(times)}

    return measured
