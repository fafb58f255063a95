"""SqlAlchemyDatabase: records on a server, such as PostgreSQL, reached through SQLAlchemy.

PostgreSQL's writers wait for each other, as those of a SQLite file do: two that store the same records in different
orders would block each other for ever. On other servers they meet in the tables' unique keys, and the one that comes
later tries again and finds what it wanted to store.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import sqlalchemy
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from loopwright.tune.database.errors import (
    ClosedDatabase,
    DatabaseBusy,
    DatabaseError,
    DatabaseFull,
    DatabaseUnavailable,
    NewerDatabase,
    ReadOnlyDatabase,
)
from loopwright.tune.database.sql_database import TABLES, VERSION, Execute, SqlDatabase

T = TypeVar("T")

_ATTEMPTS: Final = 8
_WRITERS: Final = 762453001  # PostgreSQL's advisory lock that a writer takes
# What a driver calls the error, by the first characters of SQLSTATE.
_COLLISIONS: Final = ("23505", "40001", "40P01", "42P07", "42710")
_FULL: Final = ("53100", "54", "58030")
_READ_ONLY: Final = ("25006", "42501")
_LOCKED: Final = ("55P03", "57014")


class SqlAlchemyDatabase(SqlDatabase):
    """The tuning records of a server."""

    def __init__(self, url: str | URL, *, read_only: bool = False, timeout: float = 30.0) -> None:
        self.where = re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", str(url))  # no message shows a password
        try:
            self.url = _with_driver(make_url(url))
            self.where = self.url.render_as_string(hide_password=True)
            self._engine = sqlalchemy.create_engine(self.url, pool_pre_ping=True, **_waiting(self.url, timeout))
        except (ArgumentError, NoSuchModuleError, ValueError) as error:
            raise DatabaseUnavailable(self.where, str(error), "a URL is written postgresql://user@host/name") from None
        except ImportError as error:
            hint = 'install the driver: pip install "loopwright[tune]" has that of PostgreSQL'
            raise DatabaseUnavailable(self.where, str(error), hint) from None
        self.timeout = timeout
        self._is_read_only = read_only
        self._is_closed = False
        self._prepare()
        _databases.add(self)

    def close(self) -> None:
        self._is_closed = True
        self._engine.dispose()

    def _read(self, statement: str, **values: object) -> Sequence[Sequence[Any]]:
        with self._explained():
            return self._attempt(lambda execute: execute(statement, **values))

    def _write(self, work: Callable[[Execute], T]) -> T:
        if self._is_read_only and not self._is_closed:
            raise ReadOnlyDatabase(self.where, "it was opened with read_only=True")
        with self._explained():
            return self._attempt(lambda execute: self._alone(execute, work))

    def _alone(self, execute: Execute, work: Callable[[Execute], T]) -> T:
        """Do it while no other writer does anything, where the server has a lock for that."""
        if self._is_postgres:
            execute("SELECT set_config('lock_timeout', :wait, true)", wait=f"{max(1, round(self.timeout * 1000))}ms")
            execute("SELECT pg_advisory_xact_lock(:number)", number=_WRITERS)
        return work(execute)

    @property
    def _is_postgres(self) -> bool:
        return bool(self._engine.dialect.name == "postgresql")

    def _attempt(self, work: Callable[[Execute], T]) -> T:
        """Do it in a transaction; again where another process came first, or where the connection was lost.

        A record is stored once however often it is added, so that it does no harm where the loss hid a success.
        """
        for attempt in range(_ATTEMPTS):
            try:
                with self._engine.begin() as connection:

                    def execute(statement: str, **values: object) -> Sequence[Sequence[Any]]:
                        result = connection.execute(sqlalchemy.text(statement), values)
                        return result.fetchall() if result.returns_rows else []

                    return work(execute)
            except DBAPIError as error:
                is_worth_it = error.connection_invalidated or _state(error).startswith(_COLLISIONS)
                if not is_worth_it or attempt == _ATTEMPTS - 1:
                    raise
            time.sleep(random.random() * 0.01 * 2**attempt)  # two that collided do not meet again
        raise AssertionError("the last attempt returns or raises")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """What the driver says is wrong becomes an error of ours."""
        if self._is_closed:
            raise ClosedDatabase(self.where)
        try:
            yield
        except DBAPIError as error:
            raise self._error(error) from error
        except SQLAlchemyError as error:
            raise DatabaseUnavailable(self.where, _first_line(error)) from error

    def _error(self, error: DBAPIError) -> DatabaseError:
        state, text = _state(error), _first_line(error.orig or error)
        if state.startswith(_FULL):
            return DatabaseFull(self.where, text)
        if state.startswith(_READ_ONLY):
            return ReadOnlyDatabase(self.where, text)
        if state.startswith(_LOCKED):
            return DatabaseBusy(self.where, self.timeout)
        return DatabaseUnavailable(self.where, text)

    # --- tables ---------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        with self._explained():
            if not sqlalchemy.inspect(self._engine).has_table("loopwright_format"):
                if self._is_read_only:
                    raise DatabaseUnavailable(self.where, "it holds no tuning records")
                self._attempt(lambda execute: self._alone(execute, self._create))
            version = self._attempt(lambda execute: execute("SELECT MAX(version) FROM loopwright_format"))[0][0]
        if version > VERSION:
            raise NewerDatabase(self.where, version, VERSION)

    def _create(self, execute: Execute) -> None:
        if self._is_postgres and execute("SELECT to_regclass('loopwright_format')")[0][0] is not None:
            return  # another was faster
        for statement in TABLES:
            execute(statement.format(**_types(self._engine.dialect.name)))
        execute("CREATE TABLE loopwright_format (version INTEGER NOT NULL)")
        execute("INSERT INTO loopwright_format VALUES (:version)", version=VERSION)


def _types(dialect: str) -> dict[str, str]:
    types = {"text": "TEXT", "real": "DOUBLE PRECISION", "integer": "INTEGER", "serial": "INTEGER", "blob": "BLOB"}
    if dialect == "postgresql":
        types |= {"serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY", "blob": "BYTEA"}
    return types


def _with_driver(url: URL) -> URL:
    """A URL of PostgreSQL that names no driver means the one that is installed with Loopwright."""
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    return url


def _waiting(url: URL, timeout: float) -> dict[str, Any]:
    """How long the server is waited for: without this, as long as its network takes to give up."""
    if url.get_backend_name() == "postgresql" and "connect_timeout" not in url.query:
        return {"connect_args": {"connect_timeout": max(2, round(timeout))}}
    return {}


def _state(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None) or "")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


# A connection is a socket, which two processes cannot share: a child forgets those of its parent, and makes its own.
_databases: Final[weakref.WeakSet[SqlAlchemyDatabase]] = weakref.WeakSet()


def _after_fork() -> None:
    for database in list(_databases):
        database._engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
