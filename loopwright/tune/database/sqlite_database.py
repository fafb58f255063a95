"""SqliteDatabase: one file, which many processes read and write; MemoryDatabase: the same without a file.

A process has one connection, shared by its threads under a lock: writers would queue for the file's own lock anyway. It
is closed before a fork and opened again when it is next used, on both sides: SQLite believes that a connection which a
child inherits still holds the parent's locks, and would delete the write-ahead log that the child writes to.

The journal is a write-ahead log, synchronised at each commit: a process that is killed loses nothing that it was told
is stored, nor does a machine that loses power.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from loopwright.tune.database.errors import (
    ClosedDatabase,
    DamagedDatabase,
    DatabaseBusy,
    DatabaseError,
    DatabaseFull,
    DatabaseUnavailable,
    ForeignDatabase,
    NewerDatabase,
    ReadOnlyDatabase,
)
from loopwright.tune.database.sql_database import TABLES, VERSION, Execute, SqlDatabase

T = TypeVar("T")

_APPLICATION: Final = 0x4C575442  # "LWTB", in the header of our files
_TYPES: Final = {"text": "TEXT", "real": "REAL", "integer": "INTEGER", "serial": "INTEGER", "blob": "BLOB"}
_RETRY: Final = 0.01  # seconds between attempts at what SQLite does not wait for by itself


class SqliteDatabase(SqlDatabase):
    """The tuning records of a file."""

    def __init__(self, path: str | Path, *, read_only: bool = False, timeout: float = 30.0) -> None:
        self.where = str(path)
        self.path = _usable(path)
        self.timeout = timeout
        self._why_read_only = "it was opened with read_only=True" if read_only else ""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None  # of the file that the connection is to
        self._is_closed = False
        with self._using():
            pass  # what is wrong with the file is said here
        _databases.add(self)

    @property
    def is_read_only(self) -> bool:
        """Whether records can be read only."""
        return bool(self._why_read_only)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._disconnect()

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file as a whole; nothing, usually. Reads all of it."""
        try:
            found = [str(row[0]) for row in self._read("PRAGMA integrity_check")]
        except DamagedDatabase as error:
            return [error.problem]
        return [] if found == ["ok"] else found

    # --- statements -----------------------------------------------------------------------------------------------

    def _read(self, statement: str, **values: object) -> Sequence[Sequence[Any]]:
        with self._using() as connection:
            return connection.execute(statement, values).fetchall()

    def _write(self, work: Callable[[Execute], T]) -> T:
        with self._using() as connection:
            if self._why_read_only:
                raise ReadOnlyDatabase(self.where, self._why_read_only)
            with _transaction(connection):
                return work(lambda statement, **values: connection.execute(statement, values).fetchall())

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; what SQLite says is wrong becomes an error of ours."""
        with self._lock:
            if self._is_closed:
                raise ClosedDatabase(self.where)
            try:
                if self._connection is not None and _file_id(self.path) != self._file_id:
                    self._disconnect()  # the file was removed or replaced: what is written to it would be lost
                if self._connection is None:
                    self._connection = self._connect()
                    self._file_id = _file_id(self.path)
                yield self._connection
            except sqlite3.Error as error:
                self._disconnect()  # what is left of it is not worth asking; the next use opens it again
                raise self._explained(error) from error

    # --- opening --------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_dir():
            raise DatabaseUnavailable(self.where, "it is a folder", hint=f"name a file in it: {self.path / 'tune.db'}")
        if not self.path.parent.is_dir():
            hint = f"make the folder first: mkdir -p {self.path.parent}"
            raise DatabaseUnavailable(self.where, f"there is no folder {self.path.parent}", hint)
        if self.path.exists():
            if not os.access(self.path, os.R_OK):
                raise DatabaseUnavailable(self.where, "there is no permission to read it")
            if not self._why_read_only and not os.access(self.path, os.W_OK):
                self._why_read_only = "there is no permission to write to the file"
            if not self._why_read_only and not os.access(self.path.parent, os.W_OK):
                self._why_read_only = f"there is no permission to write to its folder {self.path.parent}"
        elif self._why_read_only:
            raise DatabaseUnavailable(self.where, "there is no such file")
        return self._connect_to_read() if self._why_read_only else self._connect_to_write()

    def _connect_to_write(self) -> sqlite3.Connection:
        connection = self._file("mode=rwc")
        try:
            if self._is_new(connection):
                self._create(connection)
            self._check(connection)
            self._use_log(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_to_read(self) -> sqlite3.Connection:
        connection = self._file("mode=ro")
        try:
            self._check(connection)
        except sqlite3.OperationalError:
            connection.close()
            if _size(f"{self.path}-wal"):
                raise  # records may be in the log alone
            # A log cannot be read without its index, which cannot be made here. There is no log: the file is all.
            connection = self._file("immutable=1&mode=ro")
            self._check(connection)
        return connection

    def _file(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?{mode}",
            timeout=self.timeout,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        is_marked = _pragma(connection, "user_version") or _pragma(connection, "application_id")
        return not is_marked and not connection.execute("SELECT 1 FROM sqlite_master").fetchall()

    def _create(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection):
            if self._is_new(connection):  # nobody else was faster
                for statement in TABLES:
                    connection.execute(statement.format(**_TYPES))
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")

    def _check(self, connection: sqlite3.Connection) -> None:
        version = _pragma(connection, "user_version")
        if _pragma(connection, "application_id") != _APPLICATION:
            raise ForeignDatabase(self.where)
        if version > VERSION:
            raise NewerDatabase(self.where, version, VERSION)

    def _use_log(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        end = time.monotonic() + self.timeout
        while True:  # SQLite does not wait here for another process that does the same
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return  # some file systems cannot: there a journal does, and readers wait for writers
            except sqlite3.OperationalError as error:
                if _kind(error) not in ("BUSY", "LOCKED") or time.monotonic() > end:
                    raise
            time.sleep(_RETRY)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _explained(self, error: sqlite3.Error) -> DatabaseError:
        kind, text = _kind(error), str(error)
        if kind in ("BUSY", "LOCKED"):
            return DatabaseBusy(self.where, self.timeout)
        if kind in ("FULL", "IOERR", "NOLFS"):
            return DatabaseFull(self.where, text)
        if kind == "READONLY":
            return ReadOnlyDatabase(self.where, text)
        if kind in ("CANTOPEN", "PERM", "AUTH", "NOMEM"):
            return DatabaseUnavailable(self.where, text)
        return DamagedDatabase(self.where, text)


def _usable(path: str | Path) -> Path:
    """The path from the root, of which the system can at least be asked."""
    try:
        found = Path(path).expanduser().absolute()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(found)
    except (ValueError, OSError, RuntimeError) as error:
        raise DatabaseUnavailable(f"{str(path)[:80]!r}", getattr(error, "strerror", None) or str(error)) from None
    return found


class MemoryDatabase(SqliteDatabase):
    """Records that end with the process; a fork goes on with a copy of its own."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._create(connection)
        return connection

    def _disconnect(self) -> None:
        if self._is_closed:  # an error is no reason to forget everything
            super()._disconnect()

    def __repr__(self) -> str:
        return "MemoryDatabase()"


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is done inside is stored, or nothing. The writer's lock is taken first, so that it is never upgraded."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends some by itself
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _kind(error: sqlite3.Error) -> str:
    """SQLite's primary code: BUSY of SQLITE_BUSY_SNAPSHOT."""
    return getattr(error, "sqlite_errorname", "SQLITE_").removeprefix("SQLITE_").partition("_")[0]


def _file_id(path: Path) -> tuple[int, int] | None:
    """What tells a file from another that has its name now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


# --- forks --------------------------------------------------------------------------------------------------------

_databases: Final[weakref.WeakSet[SqliteDatabase]] = weakref.WeakSet()
_held: Final[list[SqliteDatabase]] = []  # by the thread that forks


def _before_fork() -> None:
    for database in list(_databases):
        database._lock.acquire()
        _held.append(database)
        database._disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
