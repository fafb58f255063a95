"""Database: what a store of workloads, records and learned cost models can do.

    database = open_database("tune.db")                  or a URL: postgresql://host/tuning
    database.add_workload(task)
    database.add(Record(task.key, task.fingerprint, trace, seconds))
    database.best(task.key, task.fingerprint)            the fastest record, or None

    with database:                                       the current one inside: `current_database()`
        ...

Records are a set: one that is there already is not stored twice, so that merging and importing may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from loopwright.ir import IRModule
from loopwright.tune.record import Record
from loopwright.tune.task import Task


@dataclass(frozen=True)
class Workload:
    """A program that records are of; its variables and buffers are its own."""

    key: str  # of the tasks that tune it
    name: str
    mod: IRModule
    created: float  # seconds since 1970


class DatabaseWarning(UserWarning):
    """A row or a line is damaged and was skipped."""


class Database(Protocol):
    """Where tuning keeps what it measured. Usable from many threads; most also from many processes."""

    def add_workload(self, task: Task | Workload) -> None:
        """Keep the program under its key; one that is there stays as it is."""

    def workloads(self) -> list[Workload]:
        """All programs, oldest first."""

    def workload(self, key: str) -> Workload | None:
        """The program with that key."""

    def add(self, record: Record) -> None:
        """Store a record, which is durable when this returns."""

    def add_all(self, records: Iterable[Record]) -> int:
        """Store all or none of them; how many were not there yet."""

    def best(self, key: str, fingerprint: str, threads: int | None = None, cache: str | None = None) -> Record | None:
        """The record with the lowest median, of those measured with so many threads and with that cache state."""

    def top(
        self, key: str, fingerprint: str, count: int, threads: int | None = None, cache: str | None = None
    ) -> list[Record]:
        """The `count` best records, fastest first; failures are not among them."""

    def finals(self, key: str, fingerprint: str, threads: int | None = None, cache: str | None = None) -> list[Record]:
        """Of these, who stood at the end of a search, after the last races; in the order they came."""

    def records(
        self, key: str | None = None, fingerprint: str | None = None, limit: int | None = None, failed: bool = True
    ) -> list[Record]:
        """The records of a workload and of a CPU in the order they came; with `limit`, the newest ones."""

    def similar(
        self, fingerprint: str, key: str = "", count: int = 1, threads: int | None = None, cache: str | None = None
    ) -> list[Record]:
        """The `count` best records of every workload other than `key` on that CPU, to be adapted."""

    def save_model(self, name: str, fingerprint: str, data: bytes) -> None:
        """Keep a learned cost model, in place of the one of that name and CPU."""

    def load_model(self, name: str, fingerprint: str) -> bytes | None:
        """What `save_model` kept."""

    def models(self) -> list[tuple[str, str]]:
        """Name and fingerprint of every cost model."""

    def prune(self, keep: int = 16) -> int:
        """Drop failures, and all but the `keep` best records of every workload, CPU and setting; how many went.

        What a build takes and what it is compared with stay too: who won the newest last races, and the rule's own.
        """

    def merge(self, other: Database) -> int:
        """Take in what another database has; how many records were new."""

    def close(self) -> None:
        """End its use; what is stored stays."""

    def __enter__(self) -> Self:
        """Make it the current database."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Go back to the database that was current before; this one stays open."""
