"""db: what a database of tuning records holds: `loopwright db list`, `show`, `prune`, `merge`, `export`, `verify`, ….

Records of a program are told apart by machine, number of threads and state of the caches: figures are compared within
one such setting alone.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from loopwright.display.quantities import count_text, time_text
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import JsonObject
from loopwright.target import Target
from loopwright.tune.candidate import RULES, Candidate
from loopwright.tune.database import Database, DatabaseWarning, SqliteDatabase, Workload, export_json, import_json
from loopwright.tune.database.tuned import standing
from loopwright.tune.record import Record
from loopwright.tune.workload import key_of

_SHOWN: Final = 12  # characters of a key in a table
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class UnknownWorkload(LoopwrightError, LookupError):
    """A database was asked for a program by a key that none of its programs has, or that several begin with.

    For example:

        from loopwright.cli.db import find_workload
        from loopwright.tune.database import MemoryDatabase

        find_workload(MemoryDatabase(), "4f2a")
    """

    code = "LW0060"

    def __init__(self, key: str, found: Sequence[Workload]) -> None:
        several = ", ".join([f"{one.key} ({one.name})" for one in found[:4]])
        problem = f"the keys of several programs begin with {key!r}" if found else f"no program has the key {key!r}"
        hint = f"give more of it: {several}" if found else "loopwright db list shows the keys"
        super().__init__(problem, hint=hint, fields={"key": key, "candidates": [one.key for one in found]})


@dataclass(frozen=True)
class Setting:
    """The records of a program that can be compared with each other."""

    workload: Workload
    fingerprint: str
    threads: object
    cache: object
    records: tuple[Record, ...]

    @property
    def best(self) -> Record | None:
        """What a build takes: the winner of the last races, else the fastest."""
        good = sorted([one for one in self.records if one.seconds and not one.error], key=lambda one: one.median)
        return standing(good) if good else None

    @property
    def rule(self) -> Record | None:
        """The rule's own schedule, as it was measured in the search that found the best."""
        best = self.best
        own = [one for one in self.records if one.seconds and one.space == RULES and not one.choices]
        before = [one for one in own if best is not None and one.time <= best.time and not one.settings.get("final")]
        return max(before or own, key=lambda one: one.time, default=None)

    @property
    def speed_up(self) -> float | None:
        best, rule = self.best, self.rule
        if best is None or rule is None:
            return None
        return rule.median / best.median if best.choices or best.space != RULES else 1.0  # one schedule, measured twice

    @property
    def failures(self) -> int:
        return sum([bool(one.error) for one in self.records])

    def as_data(self) -> JsonObject:
        best, rule = self.best, self.rule
        return {
            "key": self.workload.key,
            "name": self.workload.name,
            "seconds": None if best is None else best.median,
            "rule_seconds": None if rule is None else rule.median,
            "speed_up": self.speed_up,
            "records": len(self.records),
            "failures": self.failures,
            "threads": self.threads,
            "cache": self.cache,
            "machine": self.records[-1].machine,
            "fingerprint": self.fingerprint,
        }


def find_workload(database: Database, key: str) -> Workload:
    """The program whose key begins so."""
    found = [workload for workload in database.workloads() if workload.key.startswith(key)]
    if len(found) != 1:
        raise UnknownWorkload(key, found)
    return found[0]


def settings_of(workloads: Iterable[Workload], records: Iterable[Record]) -> list[Setting]:
    """The records by program, machine and way of measuring, programs in their order."""
    grouped: dict[tuple[str, str, Any, Any], list[Record]] = {}
    for one in records:
        place = (one.key, one.fingerprint, one.settings.get("threads"), one.settings.get("cache"))
        grouped.setdefault(place, []).append(one)
    result = []
    for workload in workloads:
        own = [(place, group) for place, group in grouped.items() if place[0] == workload.key]
        result += [Setting(workload, *place[1:], tuple(group)) for place, group in own]
    return result


def listing(database: Database, as_json: bool) -> str:
    """One line for each program and setting."""
    found = settings_of(database.workloads(), database.records())
    if as_json:
        return json.dumps([setting.as_data() for setting in found], indent=2)
    if not found:
        return "there are no records yet"
    rows = [("key", "program", "best", "speed-up", "records", "threads", "caches", "machine")]
    for setting in found:
        row = setting.as_data()
        rows.append(
            (
                row["key"][:_SHOWN],
                row["name"],
                "–" if row["seconds"] is None else time_text(row["seconds"]),
                "–" if row["speed_up"] is None else f"{row['speed_up']:.2f} ×",
                f"{row['records']} ({row['failures']} failed)" if row["failures"] else str(row["records"]),
                str(row["threads"] or "–"),
                str(row["cache"] or "–"),
                row["machine"],
            )
        )
    return _table(rows)


def page(database: Database, key: str, as_json: bool) -> str:
    """The records of a program, the fastest first, and the trace of the best."""
    workload = find_workload(database, key)
    found = settings_of([workload], database.records(workload.key))
    if as_json:
        settings = [
            {**setting.as_data(), "all": [_row(one) for one in setting.records], "trace": _trace(setting)}
            for setting in found
        ]
        facts = {"key": workload.key, "name": workload.name, "created": workload.created}
        return json.dumps({**facts, "program": workload.mod.script(), "settings": settings}, indent=2)
    lines = [f"{workload.name}  {workload.key}", "", workload.mod.script().rstrip()]
    for setting in found:
        lines += ["", *_setting_lines(setting)]
    return "\n".join(lines)


def _setting_lines(setting: Setting) -> list[str]:
    best, rule = setting.best, setting.rule
    threads = count_text(setting.threads, "thread") if isinstance(setting.threads, int) else "threads not known"
    lines = [f"{setting.records[-1].machine}, {threads}, caches {setting.cache or 'not known'}"]
    rows = [("time", "speed-up", "noise", "measured", "decisions, or why it failed")]
    for one in sorted(setting.records, key=lambda one: (bool(one.error), one.median, one.time)):
        seconds = time_text(one.median) if isfinite(one.median) else "–"
        speed = f"{rule.median / one.median:.2f} ×" if rule is not None and isfinite(one.median) else "–"
        when = _date(one.time)
        what = one.error.partition("\n")[0] or _decisions(one)
        what += " (final)" if one.settings.get("final") else ""
        rows.append((seconds, speed, f"{one.noise:.1%}", when, what))
    lines.append(_table(rows))
    if best is not None and best.trace:
        lines += ["", "trace of the best", *[f"  {line}" for line in trace_lines(best.trace)]]
    return lines


def _date(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "–"
    except (ValueError, OverflowError, OSError):
        return "–"


def _decisions(record: Record) -> str:
    """What was decided, as the space has it."""
    if record.space != RULES:
        return record.space or "–"
    candidate = Candidate(record.space, record.choices)
    if not candidate.is_readable:
        return "choices that this version cannot read"
    decisions = candidate.decisions
    parts = [
        f"{key.partition('.')[2]} " + " ".join([f"{name}={_plain(value)}" for name, value in fields.items()])
        for key, fields in decisions.items()
    ]
    return "; ".join(parts) or "the rule's own choice"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def trace_lines(trace: Sequence[Any]) -> list[str]:
    """The steps of a trace as it was recorded, a line each; what is no step stands as it is."""
    steps = trace[0] if trace and isinstance(trace[0], list) else []
    decided = trace[1] if len(trace) > 1 and isinstance(trace[1], list) else []
    decisions = {one[0]: one[1] for one in decided if isinstance(one, list) and len(one) == 2}
    return [_step(step, decisions.get(number)) for number, step in enumerate(steps)]


def _step(step: Any, decision: object) -> str:
    if not (isinstance(step, list) and len(step) == 4 and all([isinstance(part, list) for part in step[1:]])):
        return json.dumps(step)
    kind, inputs, attributes, outputs = step
    name = _WORD.sub("_", str(kind)).lower()
    given = [one if isinstance(one, str) else json.dumps(one) for one in inputs]
    given += [json.dumps(one) for one in attributes]
    given += [] if decision is None else [f"decision={json.dumps(decision)}"]
    results = f"{', '.join([str(one) for one in outputs])} = " if outputs else ""
    return f"{results}{name}({', '.join(given)})"


def _trace(setting: Setting) -> object:
    best = setting.best
    return None if best is None else best.trace


def _row(record: Record) -> JsonObject:
    return {
        "seconds": list(record.seconds),
        "median": record.median if isfinite(record.median) else None,
        "error": record.error or None,
        "space": record.space,
        "choices": list(record.choices),
        "noise": record.noise,
        "time": record.time,
        "seed": record.seed,
        "final": bool(record.settings.get("final")),
        "versions": record.versions,
    }


# --- what changes it --------------------------------------------------------------------------------------------------


def prune(database: Database, keep: int, as_json: bool) -> str:
    """Drop failures and all but the best records of each program and setting."""
    count = database.prune(keep)
    return json.dumps({"removed": count}, indent=2) if as_json else f"removed {count_text(count, 'record')}"


def merge(database: Database, others: Sequence[Database], as_json: bool) -> str:
    """Take in what other databases have."""
    count = sum([database.merge(other) for other in others])
    return _added(count, as_json)


def export(database: Database, folder: str, target: str, as_json: bool) -> str:
    """Write meta_schedule's two files."""
    chosen = Target(target)
    count = export_json(database, folder, chosen)
    if as_json:
        return json.dumps({"records": count, "folder": folder, "target": str(chosen)}, indent=2)
    return f"wrote {count_text(count, 'record')} to {folder}"


def take_in(database: Database, folder: str, as_json: bool) -> str:
    """Read meta_schedule's two files."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DatabaseWarning)
        count = import_json(database, folder)
    messages = [str(one.message) for one in caught if issubclass(one.category, DatabaseWarning)]
    if as_json:
        return json.dumps({"added": count, "warnings": messages}, indent=2)
    return "\n".join([_added(count, False), *[f"warning: {message}" for message in messages]])


def _added(count: int, as_json: bool) -> str:
    return json.dumps({"added": count}, indent=2) if as_json else f"added {count_text(count, 'record')}"


def verify(database: Database, as_json: bool) -> tuple[str, bool]:
    """Read everything; the text, and whether something is damaged."""
    problems = [f"file: {one}" for one in database.check()] if isinstance(database, SqliteDatabase) else []
    workloads: list[Workload] = []
    records: list[Record] = []
    if not problems:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DatabaseWarning)
            workloads, records = database.workloads(), database.records()
        problems += [str(one.message) for one in caught if issubclass(one.category, DatabaseWarning)]
        problems += _inconsistent(workloads, records)
    facts = {"workloads": len(workloads), "records": len(records), "damaged": problems}
    if as_json:
        return json.dumps(facts, indent=2), bool(problems)
    read = f"{count_text(len(workloads), 'program')} and {count_text(len(records), 'record')} read"
    return "\n".join([f"{read}, {len(problems)} damaged", *problems]), bool(problems)


def _inconsistent(workloads: Sequence[Workload], records: Sequence[Record]) -> list[str]:
    """Programs that are not those of their keys, and records of no program."""
    result = []
    for workload in workloads:
        functions = [function for _, function in workload.mod.functions_items()]
        key = key_of(functions[0]) if len(functions) == 1 else ""
        if key != workload.key:
            result.append(f"workload {workload.key}: its program has the key {key or '(none)'}")
    known = {workload.key for workload in workloads}
    lost = dict.fromkeys([record.key for record in records if record.key not in known])
    return result + [f"records of workload {key}: there is no program of that key" for key in lost]


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([text.ljust(width) for text, width in zip(row, widths, strict=True)]) for row in rows]
    return "\n".join([line.rstrip() for line in lines])
