"""`loopwright cache`: what is kept of compiled programs, for people and as JSON."""

from __future__ import annotations

import json
import os
import re
import time

import pytest
from typer.testing import CliRunner

import loopwright as lw
from loopwright import te
from loopwright.cli import app
from loopwright.codegen.build_key import compiler_digest
from tests.compile_caching import switch_on

runner = CliRunner()


@pytest.fixture
def store(tmp_path, monkeypatch):
    compiler_digest()  # before the cache is on, so that it is not kept there
    return switch_on(monkeypatch, tmp_path)


@pytest.fixture
def full(store):
    """A store of two compiled modules, the second used last, and something that is no module."""
    store.save("e" * 40, {"kind": "sources", "digest": "0"}, {})
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    for name in ("first", "second"):
        lw.build([A, B], name=name)
        for entry in store.entries():
            os.utime(entry.path, (entry.used - 300, entry.used - 300))
    return store


def said(*command: str, status: int = 0) -> str:
    result = runner.invoke(app, ["cache", *command])
    assert result.exit_code == status, result.output
    return result.output


def json_of(*command: str, status: int = 0):
    return json.loads(said(*command, "--json", status=status))


def test_info_of_an_empty_cache(store):
    assert json_of("info") == {
        "folder": str(store.folder),
        "on": True,
        "entries": 0,
        "bytes": 0,
        "limit": 1 << 30,
        "last_used": None,
        "longest_unused": None,
    }
    assert said("info") == f"folder   {store.folder}\nentries  0\nsize     0 B of 1.0 GiB\n"
    assert not store.folder.exists()  # looking makes nothing


def test_info(full, monkeypatch):
    facts = json_of("info")
    assert facts["entries"] == 3
    assert facts["bytes"] == sum(entry.size for entry in full.entries())
    assert facts["longest_unused"] < facts["last_used"] < time.time()
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "2MB")
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "0")
    text = said("info")
    assert re.search(r"size     \d+\.\d KiB of 1\.9 MiB\nused     5 min ago; longest unused 10 min\n", text)
    assert "state    off: LOOPWRIGHT_CACHE is 0" in text


def test_list(full):
    rows = json_of("list")
    assert [row["functions"] for row in rows] == [["second"], ["first"]]
    for row in rows:
        assert row["target"].startswith("llvm") and row["seconds"] > 0 and row["version"] == lw.__version__
        assert (full.folder / f"{row['key']}.lwc").stat().st_size == row["bytes"]
    head, *lines = said("list").splitlines()
    assert head.split() == ["key", "functions", "target", "size", "used", "took"]
    assert len(lines) == 2
    assert re.match(rf"{rows[0]['key'][:12]}  second +\S.* KiB  5 min ago +\d+ ms", lines[0])


def test_list_of_nothing(store):
    assert said("list") == "nothing is kept yet\n"
    assert json_of("list") == []


def test_looking_is_no_use(full):
    before = full.entries()
    for command in ("info", "list", "verify"):
        said(command)
    assert full.entries() == before


def test_clear(full):
    entries = full.entries()
    assert json_of("clear") == {"removed": 3, "bytes": sum(entry.size for entry in entries)}
    assert full.entries() == []
    assert said("clear") == "removed 0 entries, 0 B\n"


def test_prune(full):
    size = {entry.key: entry.size for entry in full.entries()}
    second, first = [row["key"] for row in json_of("list")]
    assert said("prune") == "removed 0 entries, 0 B\n"
    assert json_of("prune", "--size", str(size[second]))["removed"] == 2
    assert [entry.key for entry in full.entries()] == [second]
    assert said("prune", "-s", "0").startswith("removed 1 entry, ")


@pytest.mark.parametrize("size", ["some", "-3", ""])
def test_prune_to_what_is_no_size(full, size):
    text = said("prune", "--size", size, status=1)
    assert f"BadCacheSize: --size: {size!r} is no size" in text
    assert "loopwright explain LW0146" in text
    assert len(full.entries()) == 3


def test_a_bad_limit_is_said(full, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "much")
    assert "LOOPWRIGHT_CACHE_SIZE: 'much' is no size" in said("info", status=1)


def test_verify(full):
    assert said("verify") == "3 entries read, 0 damaged\n"
    key = json_of("list")[0]["key"]
    path = full.folder / f"{key}.lwc"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (full.folder / f"{'0' * 40}.lwc").mkdir()
    found = json_of("verify", status=1)
    assert found["entries"] == 4
    assert {one["key"]: one["problem"] for one in found["damaged"]} == {
        key: "its checksum is wrong",
        "0" * 40: "it is no regular file",
    }
    assert path.exists()
    assert "damaged: its checksum is wrong" in said("list")
    text = said("verify", "--remove", status=1)
    assert text.startswith("4 entries read, 2 damaged\n")
    assert f"{key}: its checksum is wrong (removed)" in text
    assert said("verify") == "2 entries read, 0 damaged\n"


def test_without_a_command_there_is_help():
    result = runner.invoke(app, ["cache"])
    for command in ("info", "list", "clear", "prune", "verify"):
        assert command in result.output
