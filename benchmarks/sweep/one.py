"""One case looked at: its times, compile time and error, and on demand what scheduled it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from rich.console import Console

from benchmarks.bench.table import duration
from benchmarks.sweep import contenders
from benchmarks.sweep.case import KERNEL, Case
from benchmarks.sweep.child import warm_up
from benchmarks.sweep.families import case_of
from benchmarks.sweep.row import row_of


def show_one(
    seed: int, index: int, threads: int, budget: float, profile: bool, ours: str | None, console: Console
) -> int:
    """Measure the case in this process; 1 unless it is right."""
    warnings.simplefilter("ignore")
    case = case_of(seed, index)
    if ours is not None:
        case = replace(case, ours=ours)
    warm_up()
    row = row_of(case, threads, budget)
    console.print(f"case {index} of seed {seed}: {case.family}, ours is a {case.ours}\n{case.name}", markup=False)
    for key in ("status", "message", "trace", "compile_seconds", "compile_cpu", "error_share", "skipped"):
        if row.get(key):
            console.print(f"{key}: {row[key]}", markup=False)
    if row["status"] == "ok":
        console.print(f"ratio {row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f}) to {row['fastest']}")
        for name, seconds in sorted({**row["rough"], **row["seconds"]}.items(), key=lambda one: one[1]):
            console.print(f"  {name:12} {duration(seconds)}")
    if profile:
        print(_profile(case))
    return 0 if row["status"] in ("ok", "alone") else 1


def _profile(case: Case) -> Any:
    """What decided the schedule of a kernel; how long each layer of a model takes."""
    if case.ours == KERNEL:
        from loopwright import autosched

        lines = []
        for decision in autosched.apply(contenders.tensors(case)).decisions:
            lines.append(f"{', '.join(decision.blocks)}: {decision.rule}")
            lines += [f"    {choice.what} ({choice.why})" for choice in decision.choices]
        return "\n".join(lines)
    arrays = case.arrays()
    given = [x for x, one in zip(arrays, case.inputs) if not one.constant]
    return contenders.compiled(case, arrays).profile(*given)
