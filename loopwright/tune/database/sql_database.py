"""SqlDatabase: workloads, records and models in tables; SQLite and PostgreSQL differ in how they are reached alone.

A subclass says how to read and how to write in one transaction. The statements keep to what both understand.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from loopwright.ir import save_json
from loopwright.runtime.errors import LoopwrightError, user_stack_level
from loopwright.tune.database.current import enter, leave
from loopwright.tune.database.interface import Database, DatabaseWarning, Workload
from loopwright.tune.database.rows import Row, read_record, read_workload, record_row, short_digest
from loopwright.tune.record import Record, is_final
from loopwright.tune.task import Task

T = TypeVar("T")

VERSION: Final = 1  # of the tables

# The types are filled in by the database at hand.
TABLES: Final = (
    """CREATE TABLE loopwright_workloads (
        key {text} PRIMARY KEY, name {text} NOT NULL, module {text} NOT NULL, created {real} NOT NULL)""",
    """CREATE TABLE loopwright_records (
        id {serial} PRIMARY KEY, digest {text} NOT NULL UNIQUE, workload {text} NOT NULL, cpu {text} NOT NULL,
        threads {integer}, cache {text}, seconds {real}, body {text} NOT NULL)""",
    "CREATE INDEX loopwright_records_best ON loopwright_records (cpu, workload, seconds)",
    """CREATE TABLE loopwright_models (
        name {text} NOT NULL, cpu {text} NOT NULL, fingerprint {text} NOT NULL, data {blob} NOT NULL,
        PRIMARY KEY (name, cpu))""",
)

_SETTING: Final = "cpu, workload, threads, cache"
_RANKED: Final = """SELECT id, digest, body, seconds,
    ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY seconds, id) AS place
    FROM loopwright_records WHERE seconds IS NOT NULL"""


_WORKLOADS: Final = "SELECT key, name, module, created FROM loopwright_workloads"

# How the bodies of some records look; they are written with sorted keys, and without spaces.
_FINAL: Final = '%"final":true%'
_RULE: Final = '%"choices":[],%"space":"rules"%'


class Execute(Protocol):
    """Runs a statement inside a transaction."""

    def __call__(self, statement: str, **values: object) -> Sequence[Sequence[Any]]: ...


class SqlDatabase(Database):
    """What databases of tables share."""

    where: str  # the file or the URL, for messages

    def _read(self, statement: str, **values: object) -> Sequence[Sequence[Any]]:
        """The rows that a query gives."""
        raise NotImplementedError

    def _write(self, work: Callable[[Execute], T]) -> T:
        """Do some work in one transaction, which is durable when this returns; done again after a collision."""
        raise NotImplementedError

    # --- workloads ------------------------------------------------------------------------------------------------

    def add_workload(self, task: Task | Workload) -> None:
        created = task.created if isinstance(task, Workload) else time.time()
        found = self._read(f"{_WORKLOADS} WHERE key = :key", key=task.key)
        if found and _is_readable(found[0]):
            return
        values = {"key": task.key, "name": task.name, "module": save_json(task.mod), "created": created}

        def work(execute: Execute) -> None:
            known = execute(f"{_WORKLOADS} WHERE key = :key", key=task.key)
            if known and not _is_readable(known[0]):  # its records are whole: they are of this program
                execute("DELETE FROM loopwright_workloads WHERE key = :key", key=task.key)
            if not known or not _is_readable(known[0]):
                execute("INSERT INTO loopwright_workloads VALUES (:key, :name, :module, :created)", **values)

        self._write(work)

    def workloads(self) -> list[Workload]:
        return self._workloads("ORDER BY created, key")

    def workload(self, key: str) -> Workload | None:
        found = self._workloads("WHERE key = :key", key=key)
        return found[0] if found else None

    def _workloads(self, clause: str, **values: object) -> list[Workload]:
        result = []
        for row in self._read(f"{_WORKLOADS} {clause}", **values):
            try:
                result.append(read_workload(*row))
            except (ValueError, LoopwrightError) as error:
                self._warn(f"workload {row[0]}", error)
        return result

    # --- records --------------------------------------------------------------------------------------------------

    def add(self, record: Record) -> None:
        self.add_all([record])

    def add_all(self, records: Iterable[Record]) -> int:
        rows = [record_row(record) for record in records]  # all of them are good before any is stored

        def work(execute: Execute) -> int:
            return sum([_insert(execute, row) for row in rows])

        return self._write(work) if rows else 0

    def best(self, key: str, fingerprint: str, threads: int | None = None, cache: str | None = None) -> Record | None:
        found = self.top(key, fingerprint, 1, threads, cache)
        return found[0] if found else None

    def top(
        self, key: str, fingerprint: str, count: int, threads: int | None = None, cache: str | None = None
    ) -> list[Record]:
        where, values = _conditions(workload=key, cpu=short_digest(fingerprint), threads=threads, cache=cache)
        statement = f"""SELECT id, digest, body FROM loopwright_records
            WHERE {where} AND seconds IS NOT NULL ORDER BY seconds, id LIMIT :count OFFSET :start"""
        result: list[Record] = []
        start = 0
        while len(result) < count:  # again only where rows are damaged
            wanted = count - len(result)
            rows = self._read(statement, count=wanted, start=start, **values)
            result += self._readable(rows)
            start += len(rows)
            if len(rows) < wanted:
                break
        return result

    def finals(self, key: str, fingerprint: str, threads: int | None = None, cache: str | None = None) -> list[Record]:
        where, values = _conditions(workload=key, cpu=short_digest(fingerprint), threads=threads, cache=cache)
        statement = f"""SELECT id, digest, body FROM loopwright_records
            WHERE {where} AND seconds IS NOT NULL AND body LIKE :mark ORDER BY id"""
        return [one for one in self._readable(self._read(statement, mark=_FINAL, **values)) if is_final(one)]

    def records(
        self, key: str | None = None, fingerprint: str | None = None, limit: int | None = None, failed: bool = True
    ) -> list[Record]:
        cpu = None if fingerprint is None else short_digest(fingerprint)
        where, values = _conditions(workload=key, cpu=cpu)
        statement = f"SELECT id, digest, body FROM loopwright_records WHERE {where}"
        if not failed:
            statement += " AND seconds IS NOT NULL"
        if limit is None:
            return self._readable(self._read(f"{statement} ORDER BY id", **values))
        rows = self._read(f"{statement} ORDER BY id DESC LIMIT :count", count=max(limit, 0), **values)
        return self._readable(rows[::-1])

    def similar(
        self, fingerprint: str, key: str = "", count: int = 1, threads: int | None = None, cache: str | None = None
    ) -> list[Record]:
        where, values = _conditions(cpu=short_digest(fingerprint), threads=threads, cache=cache)
        ranked = f"{_RANKED.format(partition='workload')} AND {where} AND workload <> :key"
        rows = self._read(
            f"SELECT id, digest, body FROM ({ranked}) ranked WHERE place <= :count ORDER BY seconds, id",
            key=key,
            count=count,
            **values,
        )
        return self._readable(rows)

    def _readable(self, rows: Sequence[Sequence[Any]]) -> list[Record]:
        result = []
        for number, digest, body in rows:
            try:
                result.append(read_record(body, digest))
            except ValueError as error:
                self._warn(f"record {number}", error)
        return result

    def _warn(self, row: str, error: Exception) -> None:
        why = str(error).partition("\n")[0]
        message = f"the database {self.where}: {row} is damaged and is skipped: {why}"
        warnings.warn(message, DatabaseWarning, stacklevel=user_stack_level())

    # --- cost models ----------------------------------------------------------------------------------------------

    def save_model(self, name: str, fingerprint: str, data: bytes) -> None:
        values = {"name": name, "cpu": short_digest(fingerprint)}

        def work(execute: Execute) -> None:
            execute("DELETE FROM loopwright_models WHERE name = :name AND cpu = :cpu", **values)
            execute(
                "INSERT INTO loopwright_models VALUES (:name, :cpu, :fingerprint, :data)",
                fingerprint=fingerprint,
                data=bytes(data),
                **values,
            )

        self._write(work)

    def load_model(self, name: str, fingerprint: str) -> bytes | None:
        statement = "SELECT data FROM loopwright_models WHERE name = :name AND cpu = :cpu"
        rows = self._read(statement, name=name, cpu=short_digest(fingerprint))
        return bytes(rows[0][0]) if rows else None

    def models(self) -> list[tuple[str, str]]:
        rows = self._read("SELECT name, fingerprint FROM loopwright_models ORDER BY name, cpu")
        return [(name, fingerprint) for name, fingerprint in rows]

    # --- all of it ------------------------------------------------------------------------------------------------

    def prune(self, keep: int = 16) -> int:
        def work(execute: Execute) -> int:
            best = f"SELECT id FROM ({_RANKED.format(partition=_SETTING)}) ranked WHERE place <= :keep"
            clause, values = f"id NOT IN ({best})", dict[str, object](keep=keep)
            if keep > 0:
                # What a build takes, and what it is compared with.
                rules = "SELECT MAX(id) FROM loopwright_records WHERE seconds IS NOT NULL AND body LIKE :rule"
                finals = ", ".join(["0", *[str(number) for number in self._newest_finals(execute)]])
                clause += (
                    f" AND id NOT IN ({rules} AND body NOT LIKE :final GROUP BY {_SETTING}) AND id NOT IN ({finals})"
                )
                values |= {"rule": _RULE, "final": _FINAL}
            count = execute(f"SELECT COUNT(*) FROM loopwright_records WHERE {clause}", **values)[0][0]
            execute(f"DELETE FROM loopwright_records WHERE {clause}", **values)
            return int(count)

        return self._write(work)

    def _newest_finals(self, execute: Execute) -> list[int]:
        """The rows that won the newest last races of each program and setting."""
        statement = f"""SELECT id, digest, body, {_SETTING} FROM loopwright_records
            WHERE seconds IS NOT NULL AND body LIKE :final"""
        newest: dict[tuple[object, ...], tuple[float, int]] = {}
        for number, digest, body, *setting in execute(statement, final=_FINAL):
            for record in self._readable([(number, digest, body)]):
                if is_final(record):
                    newest[*setting,] = max(newest.get((*setting,), (record.time, number)), (record.time, number))
        return [number for _, number in newest.values()]

    def merge(self, other: Database) -> int:
        for workload in other.workloads():
            self.add_workload(workload)
        count = self.add_all(other.records())
        for name, fingerprint in other.models():
            data = other.load_model(name, fingerprint)
            if data is not None and self.load_model(name, fingerprint) is None:
                self.save_model(name, fingerprint, data)
        return count

    def __enter__(self) -> Self:
        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where!r})"


def _is_readable(row: Sequence[Any]) -> bool:
    """Whether a row of a workload holds a program."""
    try:
        read_workload(*row)
    except (ValueError, LoopwrightError):
        return False
    return True


def _insert(execute: Execute, row: Row) -> bool:
    """Store a row; False where it is there already."""
    if execute("SELECT 1 FROM loopwright_records WHERE digest = :digest", digest=row.digest):
        return False
    execute(
        """INSERT INTO loopwright_records (digest, workload, cpu, threads, cache, seconds, body)
        VALUES (:digest, :workload, :cpu, :threads, :cache, :seconds, :body)""",
        **row._asdict(),
    )
    return True


def _conditions(**wanted: object) -> tuple[str, dict[str, object]]:
    """The condition that columns have these values, None standing for any; and the values."""
    values = {name: value for name, value in wanted.items() if value is not None}
    return " AND ".join([f"{name} = :{name}" for name in values]) or "1 = 1", values
