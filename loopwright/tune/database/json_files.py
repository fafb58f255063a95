"""json_files: the two files in which meta_schedule keeps records, read and written.

    database_workload.json         ["16045690981402826360", "<base64 of the module's JSON>"]
    database_tuning_record.json    [0, [trace, [seconds, …], target, [["TENSOR", dtype, shape], …]]]

The number is the line of the workload. What these files have no place for (noise, machine, settings) is not written;
so that the fastest record there is the one that builds take here, those that lost the last races are written as no
faster than who won them. Records that are read count as measured on as many threads as their target has cores. A
failure is one measurement of 1e10 seconds. Programs are in the form of `ir.save_json`: those that the peer itself wrote
are in a form of its own, and are skipped with a warning.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, Final, TypeVar

from loopwright.ir import IRModule, PrimFunc, load_json, save_json
from loopwright.runtime.errors import LoopwrightError, user_stack_level
from loopwright.runtime.json_text import read_json
from loopwright.runtime.together import CannotWrite, write_text
from loopwright.target import Target, describe
from loopwright.tune.database.errors import MissingJsonFile
from loopwright.tune.database.interface import Database, DatabaseWarning, Workload
from loopwright.tune.database.rows import is_trace, record_row
from loopwright.tune.record import Record, is_final
from loopwright.tune.task import Task, fingerprint

T = TypeVar("T")

WORKLOADS: Final = "database_workload.json"
RECORDS: Final = "database_tuning_record.json"
FAILED: Final = 1e9  # seconds: whatever takes longer stands for a failure
_FAILURE: Final = 1e10
_MOST_WARNINGS: Final = 5  # of a file


def export_json(database: Database, work_dir: str | Path, target: Target) -> int:
    """Write the workloads, and the records of that target's CPU, into two files of a folder; how many records."""
    workloads = database.workloads()
    lines, count = [], 0
    for index, workload in enumerate(workloads):
        infos = arguments(workload.mod)
        records = database.records(workload.key, fingerprint(target))
        for record in _in_order(records):
            lines.append(record_line(index, record, target, infos))
            count += 1
    folder = Path(work_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(folder, error.strerror or str(error)) from error
    write_text(folder / WORKLOADS, _text([workload_line(workload) for workload in workloads]))
    write_text(folder / RECORDS, _text(lines))
    return count


def import_json(database: Database, work_dir: str | Path) -> int:
    """Take in the workloads and records of a folder; how many records were new. Damaged lines are skipped."""
    folder = Path(work_dir)
    modules = dict(_lines(folder / WORKLOADS, read_workload_line))
    tasks: dict[tuple[int, str], Task] = {}

    def read(line: Any) -> Record:
        index, data, target = read_record_line(line)
        if index not in modules:
            raise ValueError(f"there is no workload on line {index + 1}")
        known = (index, json.dumps(target, sort_keys=True))
        if known not in tasks:
            tasks[known] = Task(_name(modules[index]), modules[index], Target(target))
        task = tasks[known]
        record = Record(task.key, task.fingerprint, settings=likely_settings(task, data["trace"]), **data)
        record_row(record)  # or it cannot be stored
        return record

    records = [record for _, record in _lines(folder / RECORDS, read)]
    target = Target("llvm")  # a workload's key is the same for all
    for mod in modules.values():
        database.add_workload(Task(_name(mod), mod, target))
    return database.add_all(records)


def likely_settings(task: Task, trace: Any) -> dict[str, Any]:
    """How a record was measured that does not say it, and what builds ask of it."""
    return {"threads": describe(task.target).num_cores, "winograd": largest_winograd(trace)}


def largest_winograd(trace: Any) -> int:
    """The largest tile of convolutions that the steps compute by winograd, which rounds differently; 0 without any."""
    steps = trace[0] if is_trace(trace) and trace else ()
    tiles = [attributes[0] for kind, _, attributes, _ in steps if kind == "Winograd" and attributes]
    return max([tile for tile in tiles if isinstance(tile, int)], default=0)


def _in_order(records: Sequence[Record]) -> Iterator[Record]:
    """The records, of which none is faster than the one that won the newest last races."""
    finals = [record for record in records if is_final(record) and record.seconds and not record.error]
    if not finals:
        yield from records
        return
    winner = max(finals, key=lambda record: record.time)
    for record in records:
        if record is winner or not record.seconds or record.error:
            yield record
            continue
        scale = max(1.0, winner.median * (1 + 1e-6) / min(mean(record.seconds), record.median))
        yield replace(record, seconds=tuple([one * scale for one in record.seconds]))


# --- lines ------------------------------------------------------------------------------------------------------------


def workload_line(workload: Workload | Task) -> str:
    """A workload as a line of the first file."""
    module = base64.b64encode(save_json(workload.mod).encode()).decode()
    return json.dumps([str(int(workload.key, 16)), module])  # the peer writes its hashes as decimal numbers


def record_line(index: int, record: Record, target: Target, infos: Sequence[object]) -> str:
    """A record as a line of the second file; `infos` are the `arguments` of its workload, which is on line `index`."""
    is_good = record.seconds and not record.error
    seconds = list(record.seconds) if is_good else [_FAILURE]
    return json.dumps([index, [record.trace, seconds, target.export(), list(infos)]])


def read_workload_line(line: Any) -> IRModule:
    """The module of a line of the first file; ValueError where it holds none."""
    _, encoded = line
    text = base64.b64decode(encoded, validate=True).decode()
    if '"tvm_version"' in text:
        raise ValueError("its program is in the peer's own form")
    mod = load_json(text)
    functions = list(mod.functions_items()) if isinstance(mod, IRModule) else []
    if len(functions) != 1 or not isinstance(functions[0][1], PrimFunc):
        raise ValueError("it is no module with one function")
    return mod


def read_record_line(line: Any) -> tuple[int, dict[str, Any], Any]:
    """Line of the workload, fields of the record and target of a line of the second file."""
    index, (trace, seconds, target, *_) = line
    if not isinstance(index, int) or isinstance(index, bool) or not isinstance(target, (dict, str)):
        raise ValueError("it is no record: [workload, [trace, seconds, target, arguments]]")
    measured = tuple(seconds or ())
    if not measured or all([one >= FAILED for one in measured]):
        return index, {"trace": trace, "error": "it failed where it was measured"}, target
    return index, {"trace": trace, "seconds": measured}, target


def arguments(mod: IRModule) -> list[list[object]]:
    """What the function of a module takes: ["TENSOR", dtype, shape] of each buffer."""
    ((_, function),) = mod.functions_items()
    buffers = [function.buffer_map[param] for param in function.params if param in function.buffer_map]
    return [["TENSOR", str(buffer.dtype), [_size(size) for size in buffer.shape]] for buffer in buffers]


def _size(size: object) -> int | str:
    try:
        return int(size)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return str(size)


def _name(mod: IRModule) -> str:
    ((name, _),) = mod.functions_items()
    return name


# --- files ------------------------------------------------------------------------------------------------------------


def _lines(path: Path, read: Callable[[Any], T]) -> Iterator[tuple[int, T]]:
    """What the lines hold, each with its index; those that cannot be read are skipped with a warning."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise MissingJsonFile(path, error.strerror or str(error)) from None
    damaged = 0
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            value = read(read_json(line))
        except (ValueError, TypeError, KeyError, LoopwrightError) as error:
            damaged += 1
            if damaged <= _MOST_WARNINGS:
                why = (error.problem if isinstance(error, LoopwrightError) else str(error)).partition("\n")[0]
                _warn(f"{path}: line {index + 1} is damaged and is skipped: {why}")
        else:
            yield index, value
    if damaged > _MOST_WARNINGS:
        _warn(f"{path}: {damaged - _MOST_WARNINGS} more lines are damaged and are skipped")


def _warn(message: str) -> None:
    warnings.warn(message, DatabaseWarning, stacklevel=user_stack_level())


def _text(lines: Sequence[str]) -> str:
    return "".join([f"{line}\n" for line in lines])
