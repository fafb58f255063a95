"""Every kind of database, for the tests that hold for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from loopwright.tune.database import Database, MemoryDatabase, SqliteDatabase, open_database
from tests.tune.database.samples import postgres_server

Open: TypeAlias = Callable[[], Database]

KINDS = ("memory", "sqlite", "sqlalchemy", "postgres")
SHARED = KINDS[1:]  # what another process can open, or this one again

_schemas = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    with postgres_server() as url:
        if url is None:
            pytest.skip("there is no PostgreSQL: install it, or name a server in LOOPWRIGHT_TEST_POSTGRES")
        yield url


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    """The URL of an empty schema on it."""
    import psycopg

    name = f"loopwright_test_{next(_schemas)}"
    with psycopg.connect(postgres.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{postgres}{'&' if '?' in postgres else '?'}options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def opener(kind: str, folder: Path, request: pytest.FixtureRequest) -> Open:
    if kind == "memory":
        return MemoryDatabase
    if kind == "sqlite":
        return lambda: SqliteDatabase(folder / "tune.db")
    if kind == "postgres":
        url = request.getfixturevalue("schema")
        return lambda: open_database(url)
    pytest.importorskip("sqlalchemy")
    from loopwright.tune.database.sqlalchemy_database import SqlAlchemyDatabase

    return lambda: SqlAlchemyDatabase(f"sqlite+pysqlite:///{folder}/alchemy.db")


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of each kind."""
    made = opener(request.param, tmp_path, request)()
    yield made
    made.close()


@pytest.fixture(params=SHARED)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same database each time."""
    return opener(request.param, tmp_path, request)
