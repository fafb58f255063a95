"""Workload and TuningRecord: a program that was tuned, and one measurement of a schedule of it.

A record keeps its trace as data where it was read from a file; it is proved when somebody applies it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from loopwright.ir import IRModule, load_json, save_json, structural_hash
from loopwright.meta_schedule.arg_info import ArgInfo
from loopwright.meta_schedule.candidate import MeasureCandidate
from loopwright.meta_schedule.derived import Part
from loopwright.schedule import Schedule, Trace
from loopwright.target import Target
from loopwright.tune.database.json_files import FAILED

NO_TIME: Final = 1e10  # seconds that stand for none


class Seconds(float):
    """A measured time, which scripts also read as `.value`."""

    @property
    def value(self) -> float:
        return float(self)


class Workload(Part):
    """A program; `shash` is what equal ones share."""

    def __init__(self, mod: IRModule, shash: int | None = None) -> None:
        self.mod = mod
        self.shash = structural_hash(mod) if shash is None else int(shash)

    def as_json(self) -> list[str]:
        """[hash, base64 of the module's JSON]."""
        return [str(self.shash), base64.b64encode(save_json(self.mod).encode()).decode()]

    @staticmethod
    def from_json(data: Any) -> Workload:
        """What `as_json` made."""
        shash, encoded = json.loads(data) if isinstance(data, str) else data
        text = base64.b64decode(encoded, validate=True).decode()
        if '"tvm_version"' in text:
            raise ValueError("its program is in the peer's own form")
        mod = load_json(text)
        if not isinstance(mod, IRModule):
            raise ValueError("it holds no module")
        return Workload(mod, int(shash))


class TuningRecord(Part):
    """A trace of a workload's schedule, and the seconds it took; none where it was not measured."""

    def __init__(
        self,
        trace: Trace | list[Any],
        workload: Workload,
        run_secs: Sequence[float] | None = None,
        target: Target | None = None,
        args_info: Sequence[ArgInfo] | None = None,
    ) -> None:
        self._trace = trace if isinstance(trace, Trace) else None
        self._data = None if isinstance(trace, Trace) else trace
        self.workload = workload
        self.run_secs = None if run_secs is None else [Seconds(getattr(one, "value", one)) for one in run_secs]
        self.target = target
        self.args_info = None if args_info is None else list(args_info)

    @property
    def trace(self) -> Trace:
        """The steps; those read from a file are done once to have them as a Trace."""
        if self._trace is None:
            assert self._data is not None
            sch = Schedule(self.workload.mod, error_render_level="none")
            Trace.apply_json_to_schedule(self._data, sch)
            self._trace = sch.trace
        return self._trace

    @property
    def trace_json(self) -> list[Any]:
        """The steps as plain data."""
        return self._data if self._data is not None else self.trace.as_json()

    @property
    def mean(self) -> float:
        """Seconds on average; `NO_TIME` where there are none."""
        return sum(self.run_secs) / len(self.run_secs) if self.run_secs else NO_TIME

    @property
    def is_valid(self) -> bool:
        """Whether it was measured; times beyond all reason stand for failures."""
        return bool(self.run_secs) and self.mean < NO_TIME and min(self.run_secs or [Seconds(NO_TIME)]) < FAILED

    def schedule(self) -> Schedule:
        """The schedule, proved."""
        sch = Schedule(self.workload.mod)
        if self._data is not None:
            Trace.apply_json_to_schedule(self._data, sch)
        else:
            self.trace.apply_to_schedule(sch, remove_postproc=False)
        return sch

    def as_measure_candidate(self) -> MeasureCandidate:
        """The schedule with its arguments, to be measured again."""
        return MeasureCandidate(self.schedule(), self.args_info or ArgInfo.from_entry_func(self.workload.mod))

    def as_json(self) -> list[Any]:
        """[trace, seconds, target, arguments]."""
        seconds = None if self.run_secs is None else [float(one) if isfinite(one) else NO_TIME for one in self.run_secs]
        target = None if self.target is None else self.target.export()
        infos = None if self.args_info is None else [info.as_json() for info in self.args_info]
        return [self.trace_json, seconds, target, infos]

    @staticmethod
    def from_json(data: Any, workload: Workload) -> TuningRecord:
        """What `as_json` made."""
        trace, seconds, target, infos = json.loads(data) if isinstance(data, str) else data
        return TuningRecord(
            trace,
            workload,
            seconds,
            None if target is None else Target(target),
            None if infos is None else [ArgInfo.from_json(info) for info in infos],
        )
