"""report: what a run of a model took, call by call, as a table, as CSV and as JSON, in the words of scripts for TVM.

The times are those of `model/profile.py`, which the report of a model also gives as they are.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from loopwright.model.profile import Allocation, LaunchTime, Profile

# The unit of a column, as JSON names it; all others are texts.
_UNITS: Final = {"Duration (us)": "microseconds", "Percent": "percent", "Count": "count"}

Row = Mapping[str, Any]


@dataclass
class Report:
    """The calls of a run, in order; what each device took in all; and how the run was made."""

    calls: Sequence[Row]
    device_metrics: Mapping[str, Row]
    configuration: Mapping[str, Any] = field(default_factory=dict)

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """The calls as a table: the slowest first, calls of one name together, with a line of sums below."""
        rows = _together(self.calls) if aggregate else [dict(row) for row in self.calls]
        if sort:
            rows.sort(key=lambda row: -row["Duration (us)"])
        columns = list(dict.fromkeys([name for row in rows for name in row]))
        if col_sums:
            sums = {name: sum([row.get(name, 0) for row in rows]) for name in columns if name in _UNITS}
            rows += [{"Name": "----------"}, {"Name": "Sum", **sums}]
            rows += [{"Name": "Total", "Device": device, **total} for device, total in self.device_metrics.items()]
        cells = [columns, *[[_shown(row.get(name, "")) for name in columns] for row in rows]]
        widths = [max([len(line[k]) for line in cells]) for k in range(len(columns))]
        lines = ["  ".join([text.ljust(width) for text, width in zip(line, widths, strict=True)]) for line in cells]
        return "\n".join([*lines, "", "Configuration", "-------------", *_pairs(self.configuration)])

    def csv(self) -> str:
        """The calls as comma-separated values, columns by name."""
        columns = list(dict.fromkeys([name for row in self.calls for name in row]))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.calls)
        return text.getvalue()

    def json(self) -> str:
        """All of it as JSON, every figure with its unit."""
        return json.dumps(
            {
                "calls": [_with_units(row) for row in self.calls],
                "device_metrics": {device: _with_units(row) for device, row in self.device_metrics.items()},
                "configuration": _with_units(self.configuration),
            }
        )

    @classmethod
    def from_json(cls, s: str) -> Report:
        """What `json` wrote."""
        held = json.loads(s)
        devices = {device: _without_units(row) for device, row in held["device_metrics"].items()}
        return Report([_without_units(row) for row in held["calls"]], devices, _without_units(held["configuration"]))

    def __str__(self) -> str:
        return self.table()


class ModelReport(Report):
    """The report of a run of a model, with the profile that it was made from."""

    def __init__(
        self, calls: Sequence[Row], device_metrics: Mapping[str, Row], configuration: Row, profile: Profile
    ) -> None:
        super().__init__(calls, device_metrics, configuration)
        self.profile = profile

    @property
    def rows(self) -> tuple[LaunchTime, ...]:
        """The launches, in the order of the program."""
        return self.profile.rows

    @property
    def values(self) -> Mapping[str, np.ndarray]:
        """The values in between, by name."""
        return self.profile.values

    @property
    def seconds(self) -> float:
        """What all kernels of one run took together."""
        return self.profile.seconds


def report_of(profile: Profile, executor: str) -> ModelReport:
    """What was measured of a model, as a report; one of the virtual machine counts memory that the run was given."""
    given = profile.allocations if executor == "VM" else ()
    whole = sum([row.seconds * row.calls for row in profile.rows]) + sum([one.seconds for one in given]) or 1.0
    calls: list[Row] = [
        {
            "Name": _instruction(one),
            "Duration (us)": one.seconds * 1e6,
            "Percent": 100 * one.seconds / whole,
            "Device": "cpu0",
            "Count": 1,
        }
        for one in given
    ]
    calls += [
        {
            "Name": row.launch.func.name,
            "Duration (us)": row.seconds * row.calls * 1e6,
            "Percent": 100 * row.seconds * row.calls / whole,
            "Device": "cpu0",
            "Count": row.calls,
            "Operators": " ".join(row.operators),
            "Hash": row.kernel.symbol.rpartition("_")[2],  # of all that the kernel's code depends on
        }
        for row in profile.rows
    ]
    total = {"Duration (us)": whole * 1e6, "Percent": 100.0, "Count": 1}
    return ModelReport(calls, {"cpu0": total}, {"Executor": executor}, profile)


def _instruction(made: Allocation) -> str:
    """What a virtual machine calls it: a tensor's shape is written into the program, or found in a register."""
    if made.value is None:
        return "AllocStorage"
    return "AllocTensor" if all([isinstance(size, int) for size in made.value.shape]) else "AllocTensorReg"


def _together(calls: Sequence[Row]) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for call in calls:
        row = rows.setdefault((call["Name"], call.get("Device", "")), {**call, **dict.fromkeys(_UNITS, 0)})
        for name in _UNITS:
            row[name] += call.get(name, 0)
    return list(rows.values())


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _pairs(configuration: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {value}" for name, value in configuration.items()]


def _with_units(row: Row) -> dict[str, dict[str, Any]]:
    return {name: {_UNITS.get(name, "string"): value} for name, value in row.items()}


def _without_units(row: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: next(iter(value.values())) for name, value in row.items()}
