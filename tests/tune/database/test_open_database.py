"""A path or a URL says what kind of database it is, and nothing is loaded that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loopwright.tune.database import DatabaseUnavailable, MemoryDatabase, SqliteDatabase, open_database
from tests.tune.database.samples import record


@pytest.mark.parametrize("url", ["memory://", ":memory:", "sqlite://", "sqlite:///:memory:"])
def test_memory(url):
    assert isinstance(open_database(url), MemoryDatabase)
    assert repr(open_database(url)) == "MemoryDatabase()"


def test_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "tune.db", "tune.db", "sqlite:///tune.db", f"sqlite:///{tmp_path}/tune.db"):
        database = open_database(path)
        assert isinstance(database, SqliteDatabase) and database.path == tmp_path / "tune.db"
        database.add(record())
        database.close()
    assert [item.name for item in tmp_path.iterdir()] == ["tune.db"]
    assert open_database("tune.db", read_only=True, timeout=1.5).timeout == 1.5
    assert repr(database) == f"SqliteDatabase('{tmp_path}/tune.db')"


def test_a_path_of_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    open_database("~/tune.db").close()
    assert (tmp_path / "tune.db").exists()


@pytest.mark.parametrize(
    ("path", "why"),
    [("x" * 5000, "File name too long"), ("a\0b.db", "embedded null byte"), ("~nobody-of-this-name/t.db", "home")],
)
def test_a_path_that_no_file_can_have(path, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatabaseUnavailable, match=f"(?i){why}"):
        open_database(path)
    assert list(tmp_path.iterdir()) == []


def test_a_url_without_sqlalchemy(monkeypatch):
    monkeypatch.setitem(sys.modules, "loopwright.tune.database.sqlalchemy_database", None)
    with pytest.raises(
        DatabaseUnavailable, match=r'(?s)needs SQLAlchemy.*hint: install it: pip install "loopwright\[tune\]"'
    ):
        open_database("postgresql://host/name")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("nonsense://host/name", "Can't load plugin"),
        ("postgresql+nonsense://host/name", "Can't load plugin"),
        ("postgresql://user:secret@127.0.0.1:1/name", "onnection refused"),
        ("postgresql://user:secret@:::/name", "not parse|invalid literal"),
    ],
)
def test_a_server_that_is_not_there(url, complaint):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    with pytest.raises(DatabaseUnavailable, match=complaint) as caught:
        open_database(url, timeout=2)
    assert "secret" not in str(caught.value)


def test_nothing_heavy_is_loaded():
    code = "import sys, loopwright.tune.database; print(*sorted(set(sys.modules) & set(sys.argv[1:])))"
    heavy = ["sqlalchemy", "psycopg", "xgboost", "onnx", "llvmlite", "islpy"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
