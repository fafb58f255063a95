"""JSONDatabase: the two files in which meta_schedule keeps records, one line for each; new lines are added at the end.

A line that cannot be read is skipped with a warning; so are programs in the form that the peer itself writes.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from pathlib import Path

from loopwright.ir import IRModule
from loopwright.meta_schedule.database.database import folder_paths
from loopwright.meta_schedule.database.memory_database import MemoryDatabase
from loopwright.meta_schedule.database.record import TuningRecord, Workload
from loopwright.meta_schedule.modules import as_module
from loopwright.runtime.errors import LoopwrightError, user_stack_level
from loopwright.runtime.json_text import read_json
from loopwright.runtime.together import CannotWrite
from loopwright.tune.database.errors import DatabaseFull, MissingJsonFile
from loopwright.tune.database.interface import DatabaseWarning


class JSONDatabase(MemoryDatabase):
    """Reads both files when it is made, and adds to them."""

    def __init__(
        self,
        path_workload: str | os.PathLike[str] | None = None,
        path_tuning_record: str | os.PathLike[str] | None = None,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        usual = folder_paths(None if work_dir is None else Path(work_dir))
        self.path_workload = str(path_workload or usual[0])
        self.path_tuning_record = str(path_tuning_record or usual[1])
        self._lines: list[Workload | None] = []
        for path in (self.path_workload, self.path_tuning_record):
            if not os.path.exists(path):
                if not allow_missing:
                    raise MissingJsonFile(Path(path), "there is no such file")
                _make(Path(path))
        self._read()

    def commit_workload(self, mod: IRModule) -> Workload:
        mod = as_module(mod)
        known = self.find_workload(mod)
        if known is not None:
            return known
        workload = self.add_workload(Workload(mod, self.equality.hash(mod)))
        number = _append(self.path_workload, workload.as_json())
        self._lines += [None] * (number - len(self._lines))  # lines of other processes
        self._lines.append(workload)
        return workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        super().commit_tuning_record(record)
        workload = self.commit_workload(record.workload.mod)
        line = next(number for number, one in enumerate(self._lines) if one is workload)
        _append(self.path_tuning_record, [line, record.as_json()])

    def _read(self) -> None:
        for number, text in enumerate(_texts(self.path_workload)):
            try:
                workload = Workload.from_json(read_json(text))
                workload.shash = self.equality.hash(workload.mod)
            except (ValueError, TypeError, KeyError, LoopwrightError) as error:
                _warn(self.path_workload, number, error)
                self._lines.append(None)
            else:
                self._lines.append(self.add_workload(workload))
        for number, text in enumerate(_texts(self.path_tuning_record)):
            try:
                line, data = read_json(text)
                known = self._lines[line]
                if known is None:
                    raise ValueError(f"the workload on line {line + 1} could not be read")
                self.records.append(TuningRecord.from_json(data, known))
            except (ValueError, TypeError, KeyError, IndexError, LoopwrightError) as error:
                _warn(self.path_tuning_record, number, error)


def _texts(path: str) -> list[bytes]:
    return _filled(Path(path).read_bytes())


def _filled(text: bytes) -> list[bytes]:
    return [line for line in text.split(b"\n") if line.strip()]


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise CannotWrite(path, error.strerror or str(error)) from error


def _append(path: str, data: object) -> int:
    """A line at the end, whole or not at all, and in one write, so that two processes do not mix theirs; its number."""
    line = json.dumps(data).encode() + b"\n"
    try:
        with open(path, "a+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # somebody was killed while writing: the rest of that line is lost
                    line = b"\n" + line
            if file.write(line) != len(line):
                file.truncate(size)
                raise DatabaseFull(path, os.strerror(errno.ENOSPC))
            before = file.tell() - len(line)
            file.seek(0)
            return len(_filled(file.read(before)))
    except DatabaseFull:
        raise
    except OSError as error:
        raise DatabaseFull(path, error.strerror or str(error)) from error


def _warn(path: str, number: int, error: Exception) -> None:
    problem = error.problem if isinstance(error, LoopwrightError) else str(error)
    why = problem.partition("\n")[0]
    message = f"{path}: line {number + 1} is damaged and is skipped: {why}"
    warnings.warn(message, DatabaseWarning, stacklevel=user_stack_level())
