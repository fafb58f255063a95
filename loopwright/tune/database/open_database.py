"""open_database: a database by its path or URL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from loopwright.tune.database.errors import DatabaseUnavailable
from loopwright.tune.database.interface import Database
from loopwright.tune.database.sqlite_database import MemoryDatabase, SqliteDatabase

_URL: Final = re.compile(r"([A-Za-z][\w+.-]+)://(.*)", re.DOTALL)  # one letter is a drive


def open_database(url_or_path: str | Path, *, read_only: bool = False, timeout: float = 30.0) -> Database:
    """The database of a file (made where there is none), of `sqlite:///path` or of another SQLAlchemy URL.

    `memory://` has none of them. `timeout` is how many seconds a writer waits for others.
    """
    url = _URL.fullmatch(str(url_or_path)) if isinstance(url_or_path, str) else None
    if url is None:
        if str(url_or_path) == ":memory:":
            return MemoryDatabase()
        return SqliteDatabase(url_or_path, read_only=read_only, timeout=timeout)
    scheme, rest = url[1].lower(), url[2]
    if scheme == "memory" or (scheme.partition("+")[0] == "sqlite" and rest in ("", "/", "/:memory:")):
        return MemoryDatabase()
    if scheme.partition("+")[0] == "sqlite":
        return SqliteDatabase(rest.removeprefix("/"), read_only=read_only, timeout=timeout)
    try:
        # Loaded when needed: it takes a third of a second.
        from loopwright.tune.database.sqlalchemy_database import SqlAlchemyDatabase
    except ImportError as error:
        hint = 'install it: pip install "loopwright[tune]"; a file needs nothing'
        raise DatabaseUnavailable(scheme, f"a URL needs SQLAlchemy ({error})", hint) from None
    return SqlAlchemyDatabase(str(url_or_path), read_only=read_only, timeout=timeout)
